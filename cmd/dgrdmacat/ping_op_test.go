package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

// TestPingOp: each operation is measured, with the flags that there are.
func TestPingOp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory")
	for _, serve := range []string{"", "--no-crc", "--file " + file} {
		p, at := startTCPServer(t, append(strings.Fields("ping --size 100k --serve tcp:127.0.0.1"), strings.Fields(serve)...)...)
		for _, op := range latency.Names() {
			args := serve
			size, says := 64.0, op+" of 64 bytes"
			switch {
			case strings.HasPrefix(serve, "--file"):
				args = "--size 70000"
				size, says = 70000, op+" of 70000 bytes"
				fallthrough
			default:
				if op == "fetchadd" || op == "cmpswap" {
					args = strings.ReplaceAll(args, "--size 70000", "--size 8")
					size, says = 8, op+" of 8 bytes"
				}
			}
			got := runJSON(t, "ping --json --histogram --wait 9s -n 50 --op "+op+" "+args+" --to "+at)
			wantLatencies(t, got, 50)
			if got["op"] != op || got["n"] != 50.0 || got["bytes"] != size || got["crc"] != (serve != "--no-crc") || got["transport"] != "tcp" ||
				(got["persistent"] == true) != (op == "flush" && strings.HasPrefix(serve, "--file")) {
				t.Errorf("%s %s: %v", op, args, got)
			}
			if op == "send" || op == "write" {
				says += ", 100 answered"
			}
			eventually(t, "the server tells of "+says, func() bool { return strings.Contains(p.err.String(), ": "+says+"\n") })
		}
		text := runOK(t, "ping -v -i 5ms --wait 9s -c 3 --op flush --to "+at)
		kind := "global flush over tcp with"
		if strings.HasPrefix(serve, "--file") {
			kind = "persistent flush over tcp with"
		}
		if strings.Count(text, "\nping ") != 2 || !strings.Contains(text, kind) || !strings.Contains(text, "3 times 64 bytes: min ") {
			t.Error(text)
		}
		if text := runOK(t, "ping -c 3 --wait 9s --op send --to "+at); !strings.HasPrefix(text, "send over tcp, one way with") {
			t.Error(text)
		}
	}
	// A file that is there is left alone.
	mine := fileOf(t, []byte("mine"))
	if code, _, stderr := runFor(t, patient(t), "ping", "--serve", "tcp:127.0.0.1", "--file", mine); code != exitError || !strings.Contains(stderr, "it is there, and would be overwritten") {
		t.Errorf("code %d, %s", code, stderr)
	}
	wantFiles(t, filepath.Dir(mine), map[string][]byte{filepath.Base(mine): []byte("mine")})
}

// TestPingOpFile: the file of a server is there until it ends.
func TestPingOpFile(t *testing.T) {
	dir := t.TempDir()
	p, at := startTCPServer(t, "ping", "--once", "--serve", "tcp:127.0.0.1", "--file", filepath.Join(dir, "memory"))
	if info, err := os.Stat(filepath.Join(dir, "memory")); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
	runOK(t, "ping -n 10 --wait 9s --op flush --to "+at)
	if code := p.code(); code != exitOK {
		t.Errorf("code %d, %s", code, &p.err)
	}
	wantFiles(t, dir, map[string][]byte{})
	if code, _, stderr := runFor(t, patient(t), "ping", "--serve", "tcp:127.0.0.1", "--file", filepath.Join(dir, "no", "memory")); code != exitError || !strings.Contains(stderr, "no such file") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// TestPingOpClientsAtOnce: each gets its own answers, beside one that is killed.
func TestPingOpClientsAtOnce(t *testing.T) {
	p, at := startTCPServer(t, "ping", "--serve", "tcp:127.0.0.1")
	killed := asProcess(t, "ping", "-v", "-i", "1ms", "-n", "100000000", "--op", "write", "--to", at).start()
	eventually(t, "one that will be killed has an answer", func() bool { return strings.Contains(killed.out.String(), " us\n") })
	var all sync.WaitGroup
	for _, op := range append(latency.Names(), latency.Names()...) {
		all.Go(func() {
			if code, got, stderr := ping(t, "-n", "50", "--wait", "9s", "--op", op, "--to", at); code != exitOK || got.N != 50 || got.Op != op {
				t.Errorf("%s: code %d, %+v, %s", op, code, got, stderr)
			}
		})
	}
	all.Wait()
	killed.Process.Kill()
	killed.code()
	eventually(t, "the server is through with the one that was killed", func() bool { return strings.Count(p.err.String(), ": write of 64 bytes, ") == 3 })
	if code, got, stderr := ping(t, "-n", "5", "--op", "cmpswap", "--to", at); code != exitOK || got.N != 5 {
		t.Errorf("code %d, %+v, %s", code, got, stderr)
	}
}

// TestPingOpServerKilled: what was measured until then is there.
func TestPingOpServerKilled(t *testing.T) {
	t.Parallel()
	for _, op := range latency.Names() {
		t.Run(op, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			// A busy machine may take long to begin: then it is tried again, with more time.
			for after := 300 * time.Millisecond; ; after *= 2 {
				p, at := startTCPServer(t, "ping", "--serve", "tcp:127.0.0.1")
				time.AfterFunc(after, func() { p.Process.Kill() })
				// At intervals the second ping is measured, and not only the thousandth.
				code, got, stderr := ping(t, "-n", "100000000", "-i", "1ms", "--wait", "9s", "--op", op, "--to", at)
				if got.N == 0 && after < patience/8 {
					continue
				}
				if code != exitError || got.N == 0 || !strings.Contains(stderr, "does the other side say why") {
					t.Errorf("code %d, %+v, %s", code, got, stderr)
				}
				break
			}
		})
	}
}

// TestPingOpLost: an answer that does not come in time is lost, and one that comes then is no other's.
func TestPingOpLost(t *testing.T) {
	reply := append([]byte("DGLT\x01\x01\x00\x00"), make([]byte, verbs.KeySize)...)
	slow := accepting(t, reply, func(q *verbs.QueuePair) {
		for i := 0; ; i++ {
			if n, err := q.Received().Wait(t.Context(), make([]verbs.Completion, 1)); n == 0 || err != nil || q.Err() != nil {
				return
			}
			if i == 3 {
				time.Sleep(500 * time.Millisecond)
			}
			if q.Send(t.Context(), make([]byte, 64)) != nil {
				return
			}
		}
	})
	code, got, stderr := ping(t, "-n", "5", "--wait", "300ms", "--op", "send", "--to", slow)
	if code != exitError || got.Lost == 0 || got.N+int(got.Lost) < 5 || !strings.Contains(stderr, "ping 4: no answer within ") {
		t.Errorf("code %d, %+v, %s", code, got, stderr)
	}
}

// TestPingOpSilent: a server that never answers is given up.
func TestPingOpSilent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	reply := append([]byte("DGLT\x01\x01\x00\x00"), make([]byte, verbs.KeySize)...)
	silent := accepting(t, reply, func(q *verbs.QueuePair) { <-q.Done() })
	began := time.Now()
	code, got, stderr := ping(t, "-n", "5", "--op", "send", "--to", silent)
	if took := time.Since(began); code != exitError || got.N != 0 || got.Lost == 0 || !strings.Contains(stderr, "dgrdmacat ping: "+silent+" answered no ping: nothing has come from it for 10s; is the program there stopped") || took > opGiveUp+3*time.Second {
		t.Errorf("code %d after %v, %+v, %s", code, took, got, stderr)
	}
}

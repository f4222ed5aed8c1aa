package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/link"
)

// What goes over the link, as it has always been: the opcodes of messages, and what
// either side says of itself. The size comes last.
const (
	opData, opEnd, opReceipt = 0, 1, 2
	anySize                  = ^uint64(0)
	sized                    = "\x01\x00"
	summed                   = "\x01\x02"
)

func hello(said string, size uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte(said), size)
}

// forged makes a link as a sender that is not dgrdmacat would.
func forged(t *testing.T, url string, private []byte) *link.Link {
	t.Helper()
	l, err := dial(t, url, private)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t *testing.T, url string, private []byte) (*link.Link, error) {
	t.Helper()
	h, err := link.Open(anyPort, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h.Dial(t.Context(), url, "stream", &link.Options{Directions: link.Both, Buffers: 4, Size: 256, Private: private})
}

func tallyOf(n uint64, more ...byte) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, n), more...)
}

// TestListenDistrusts: whatever a sender says, the file is whole or not there, and
// what it says does nothing to a terminal.
func TestListenDistrusts(t *testing.T) {
	t.Parallel()
	usual := hello(sized, 5)
	type message struct {
		opcode uint8
		bytes  []byte
	}
	for _, c := range []struct {
		name     string
		private  []byte
		messages []message
		abort    string
		says     string
		nothing  bool // was written: it is sent away, and the next one is served (F3)
	}{
		{"too little", usual, []message{{opData, []byte("abc")}, {opEnd, tallyOf(5)}}, "", "cannot|what arrived is not what was sent: 3 bytes here, 5 bytes there", false},
		{"no tally", usual, []message{{opEnd, []byte("x")}}, "", "0 bytes here, nothing that can be read there", true},
		{"a sum nobody asked for", usual, []message{{opEnd, tallyOf(0, make([]byte, 32)...)}}, "", "0 bytes here, 0 bytes with SHA-256 0{64} there", true},
		{"receipt out of place", usual, []message{{opReceipt, tallyOf(0)}}, "", "a message of kind 2 came that is not expected", true},
		{"unknown kind", usual, []message{{77, nil}}, "", "a message of kind 77", true},
		{"end of file too early", usual, []message{{opData, []byte("abc")}}, "", "the sender, " + saysPeer + ", ended before all was there", false},
		{"mischief", usual, []message{{opData, []byte("abc")}}, "\x1b[2J\x07", `the sender, ` + saysPeer + `, gave up: \?\[2J\?`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, url := listenCat(t, []string{"-o", filepath.Join(dir, "out"), anyPort})
			x := forged(t, url, c.private)
			for _, m := range c.messages {
				if err := x.Out.Send(t.Context(), m.opcode, m.bytes); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case c.abort != "":
				x.Abort(t.Context(), c.abort)
			case strings.HasPrefix(c.name, "end"):
				x.Out.Close()
			}
			if c.nothing {
				eventually(t, "it is sent away", func() bool {
					return regexp.MustCompile(` was sent away: [^\n]*(` + c.says + `)[^\n]*\n`).MatchString(l.stderr.String())
				})
				wantFiles(t, dir, nil)
				startCat(t, []string{"send", url}, stdinFrom([]byte("x"))).end(exitOK, saysSent(1))
				l.end(exitOK, `.*`+saysFrom+saysReceived(1))
				x.Close()
				return
			}
			l.end(exitError, saysAccepted+`received \d bytes`+saysTime+`, not whole\ndgrdmacat listen: [^\n]*(`+c.says+`)[^\n]*\n`)
			wantFiles(t, dir, nil)
			x.Close()
		})
	}
}

// TestListenSendsStrangersAway: who introduces himself wrongly does not keep others
// from being served.
func TestListenSendsStrangersAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		private    []byte
		told, says string
	}{
		{nil, "the peer speaks no streams: it said nothing", "the other side is no dgrdmacat"},
		{[]byte("hello"), "the peer speaks version 104 of streams, this is version 1", "the peer speaks version 104 of streams, this is version 1: use the same dgrdmacat at both ends"},
		{[]byte{1, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0}, "the peer speaks no streams: it said 01 ff", "the other side is no dgrdmacat: it introduced itself with 01 ff"},
	} {
		l, url := listenCat(t, []string{anyPort})
		if _, err := dial(t, url, c.private); !errors.Is(err, link.ErrRefused) || !strings.Contains(err.Error(), c.told) {
			t.Errorf("%v, want %s", err, c.told)
		}
		startCat(t, []string{"send", url}, stdinFrom([]byte("x"))).end(exitOK, saysSent(1))
		l.end(exitOK, saysListening+saysPeer+` was sent away: `+c.says+`[^\n]*\n`+saysFrom+saysReceived(1))
	}
}

// TestListenBusyWithMany: with --keep there is a limit, which leaves with who came
// under it. The senders send now and then: one that is silent for silentFor gives way, and all this may take longer.
func TestListenBusyWithMany(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{"--keep", anyPort})
	usual := hello(sized, anySize)
	all := make([]*link.Link, mostSenders)
	for i := range all {
		all[i] = forged(t, url, usual)
		go func() {
			for err := error(nil); err == nil; time.Sleep(time.Second) {
				err = all[i].Out.Send(t.Context(), opData, []byte("x"))
			}
		}()
	}
	eventually(t, "all are served", func() bool { return strings.Count(l.stderr.String(), "receiving from") == mostSenders })
	startCat(t, []string{"send", url}, stdinFrom([]byte("x"))).end(exitError, `dgrdmacat send: .*: refused by the peer: busy with 16 senders: try again later\n`)
	for _, x := range all {
		x.Abort(t.Context(), "enough")
	}
	eventually(t, "all are gone", func() bool { return strings.Count(l.stderr.String(), "gave up: enough") == mostSenders })
	startCat(t, []string{"send", url}, stdinFrom([]byte("x"))).end(exitOK, saysSent(1))
	l.signal(syscall.SIGINT)
	l.end(exitError, `.*\nstreams received: 1, failed: 16\ndgrdmacat listen: 16 streams failed\n`)
}

// TestSendDistrusts: a receipt has to be of what was sent.
func TestSendDistrusts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		private []byte
		receipt []byte
		says    string
	}{
		{"less", hello(sized, anySize), tallyOf(2), "what arrived is not what was sent: 3 bytes here, 2 bytes there"},
		{"no sum", hello(summed, anySize), tallyOf(3), "3 bytes with SHA-256 [0-9a-f]{64} here, 3 bytes there"},
		{"none", hello(sized, anySize), nil, "the receiver, " + saysPeer + ", ended before all was there"},
		{"stranger", []byte("welcome"), nil, "the peer speaks version 119 of streams, this is version 1: use the same dgrdmacat at both ends"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, err := link.Open(anyPort, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			port, err := h.Listen("stream", &link.Options{Directions: link.Both, Private: c.private})
			if err != nil {
				t.Fatal(err)
			}
			s := startCat(t, []string{"send", h.URL()}, stdinFrom([]byte("abc")))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			x, err := port.Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			for m, err := range x.In.Messages(ctx) {
				if err != nil || m.Opcode == opEnd {
					break
				}
			}
			if c.receipt != nil {
				x.Out.Send(ctx, opReceipt, c.receipt)
			} else {
				x.Out.Close()
			}
			s.end(exitError, `sent \d bytes`+saysTime+`, not whole\ndgrdmacat send: [^\n]*`+c.says+`[^\n]*\n`)
		})
	}
}

// TestNothingSentAsJSON: a script that asks for an object gets one where nothing could be sent, with the reason.
func TestNothingSentAsJSON(t *testing.T) {
	t.Parallel()
	const nowhere = "udp:127.0.0.1:9"
	in := fileWith(t, []byte("abc"))
	for _, c := range []struct{ file, to, says string }{
		{filepath.Join(t.TempDir(), "none"), nowhere, "no such file"},
		{in, "udp:192.0.2.1:7100?giveup=100ms", "192.0.2.1"},
	} {
		code, out, stderr := runFor(t, t.Context(), "send", "--json", c.file, c.to)
		var got streamResult
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitError || got.Whole || got.Peer != c.to || got.File != c.file ||
			!strings.Contains(got.Error, c.says) || !strings.HasSuffix(stderr, "dgrdmacat send: "+got.Error+"\n") {
			t.Errorf("%s to %s: code %d, %v: %s%s", c.file, c.to, code, err, out, stderr)
		}
	}
	code, out, stderr := runFor(t, t.Context(), "write", "--json", "--addr", "0", "--file", filepath.Join(t.TempDir(), "none"), "--to", nowhere)
	var got written
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitError || got.Acknowledged || got.To != nowhere || !strings.Contains(got.Error, "no such file") {
		t.Errorf("write: code %d, %v: %s%s", code, err, out, stderr)
	}
}

// TestSummaryAsJSON: one object, for what went well and for what did not.
func TestSummaryAsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, url := listenCat(t, []string{"--json", "--keep", "-o", filepath.Join(dir, "f"), anyPort})
	in := fileWith(t, []byte("abc"))
	s := startCat(t, []string{"send", "--json", "--checksum", in, url})
	s.end(exitOK, "")
	l.saysSoon(&l.out, "f.1")
	forged(t, url, hello(sized, anySize)).Abort(t.Context(), "no more")
	l.saysSoon(&l.stderr, "gave up")
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	check := func(line []byte, want map[string]any) {
		t.Helper()
		var got map[string]any
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s is %v, want %v", k, got[k], v)
			}
		}
		if !regexp.MustCompile(`^`+saysPeer+`$`).MatchString(got["peer"].(string)) || got["seconds"].(float64) < 0 {
			t.Errorf("%v", got)
		}
	}
	check([]byte(s.out.String()), map[string]any{"file": in, "sent": 3.0, "received": 0.0, "whole": true, "confirmed": true, "sent_sha256": abc, "received_sha256": nil, "error": nil})
	l.signal(syscall.SIGINT)
	l.end(exitError, saysAccepted+saysFrom+`dgrdmacat listen: the sender, `+saysPeer+`, gave up: no more\nstreams received: 1, failed: 1\ndgrdmacat listen: 1 stream failed\n`)
	lines := strings.Split(strings.TrimSpace(l.out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%s", l.out.String())
	}
	check([]byte(lines[0]), map[string]any{"file": filepath.Join(dir, "f.1"), "received": 3.0, "whole": true, "received_sha256": abc})
	check([]byte(lines[1]), map[string]any{"file": filepath.Join(dir, "f.2"), "received": 0.0, "whole": false, "confirmed": false})
	wantFiles(t, dir, map[string][]byte{"f.1": []byte("abc")})
}

func TestTargetNames(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ file, first, tenth string }{
		{"f", "f.1", "f.10"},
		{"%d.tar", "1.tar", "10.tar"},
		{"part-%03d.%d", "part-001.%d", "part-010.%d"},
		{"50%.bin", "50%.bin.1", "50%.bin.10"},
		{"%s%5d", "%s%5d.1", "%s%5d.10"},
	} {
		o := &listenOptions{file: filepath.Join(dir, c.file), keep: true}
		n, err := newTargets(o)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := filepath.Base(n.name(1)), filepath.Base(n.name(10)); a != c.first || b != c.tenth {
			t.Errorf("%s: %s, %s", c.file, a, b)
		}
	}
	if n, err := newTargets(&listenOptions{file: "/dev/null", keep: true}); err != nil || n.next() != "/dev/null" {
		t.Errorf("a device got a number, or %v", err)
	}
	os.WriteFile(filepath.Join(dir, "f.1"), nil, 0o644)
	for _, force := range []bool{false, true} {
		n, err := newTargets(&listenOptions{file: filepath.Join(dir, "f"), keep: true, force: force})
		if want := map[bool]string{false: "f.2", true: "f.1"}[force]; err != nil || filepath.Base(n.next()) != want {
			t.Errorf("force %v: not %s, %v", force, want, err)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestRping: both ends in all ways to open a connection, and what they print, which is what rping prints.
func TestRping(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, client, says string }{
		{"", "", "with CRC, verified"},
		{"--no-crc", "--no-crc", "without CRC, verified"},
		{"", "--no-crc", "with CRC"},
		{"--strict", "--strict", "with CRC"},
		{"", "--revision 1", "with CRC"},
		{"", "--peer-to-peer", "with CRC"},
		{"", "--peer-to-peer --ready read", "with CRC"},
		{"--strict", "--peer-to-peer --ready write", "with CRC"},
		{"", "--peer-to-peer --ready send --no-crc --local tcp:127.0.0.1", "with CRC"},
		{"--verify=false", "--verify=false --histogram", ", not verified"},
		{"", "-V -S 64 --wait 20s", "64 bytes"},
	} {
		p, at := startTCPServer(t, append(strings.Fields("rping -v --once --wait 20s --serve tcp:127.0.0.1:0"), strings.Fields(c.server)...)...)
		out := runOK(t, "rping -C 2 -v "+c.client+" --to "+at)
		first := "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\n"
		second := "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs\n"
		if !strings.HasPrefix(out, "ping data: "+first+"ping data: "+second+"2 pings of 64 bytes over tcp ") || !strings.Contains(out, c.says) {
			t.Errorf("%+v: %s", c, out)
		}
		if code := p.code(); code != exitOK || p.out.String() != "server ping data: "+first+"server ping data: "+second || !strings.HasSuffix(p.err.String(), ": 2 pings\n") {
			t.Errorf("%+v: the server: code %d, %s%s", c, code, &p.out, &p.err)
		}
	}
}

// TestRpingAsTheirs: the flags of rdma-core's rping do here what they do there.
func TestRpingAsTheirs(t *testing.T) {
	for _, persistent := range []bool{false, true} {
		at := free(t)
		port := fmt.Sprint(at.Port())
		args := []string{"rping", "-s", "-a", "127.0.0.1", "-p", port}
		if persistent {
			args = append(args, "-P")
		}
		p, serves := startTCPServer(t, args...)
		if serves != "tcp:"+at.String() {
			t.Errorf("%q serves on %s", args, serves)
		}
		for range 2 {
			out := runOK(t, "rping -c -a 127.0.0.1 -p "+port+" -C 2 -v -V")
			if !strings.HasPrefix(out, "ping data: rdma-ping-0: ") || !strings.Contains(out, "2 pings of 64 bytes over tcp ") {
				t.Errorf("%q: %s", args, out)
			}
			if !persistent {
				break
			}
		}
		if persistent {
			p.Process.Signal(os.Interrupt)
		}
		if code := p.code(); code != exitOK || strings.Count(p.err.String(), ": 2 pings\n") == 2 != persistent {
			t.Errorf("%q: code %d, %s", args, code, &p.err)
		}
	}
}

// TestRpingServerUntold: a server that cannot print what it was told to says so, with the exit code of a failure, and no ping is broken for it.
func TestRpingServerUntold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, says string }{
		{" > /dev/full", "no space left on device"},
		{" | head -1", "broken pipe"},
		{" >&-", "standard output is closed"},
	} {
		file := fileOf(t, nil)
		cmd := "exec 3>&1; { " + program(t) + " rping -v --serve tcp:127.0.0.1:0 --url-file " + file + " 2>&3; echo code $? >&3; }" + c.args
		server := exec.Command("sh", "-c", cmd)
		var said lockedBuffer
		server.Stdout, server.Stderr = &said, &said
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		var at string
		eventually(t, "it serves", func() bool {
			b, _ := os.ReadFile(file)
			at = strings.TrimSpace(string(b))
			return at != ""
		})
		code, out, stderr := runFor(t, patient(t), "rping", "--to", at)
		if code != exitError || !strings.Contains(out, " of 64 bytes over tcp with CRC, verified, there and back") || strings.Contains(stderr, "killed") {
			t.Errorf("%s: the client: code %d, %s%s", c.args, code, out, stderr)
		}
		server.Wait()
		if s := said.String(); !strings.Contains(s, "dgrdmacat rping: ended since nobody is told what happens: ") || !strings.Contains(s, c.says) || !strings.Contains(s, "code 1\n") {
			t.Errorf("%s: %s", c.args, s)
		}
	}
}

// TestRpingJSON: one object, whatever happens.
func TestRpingJSON(t *testing.T) {
	_, at := startTCPServer(t, "rping", "--serve", "tcp:127.0.0.1:0")
	got := runJSON(t, "rping --json --histogram --count 100 --size 1000 --to "+at)
	wantLatencies(t, got, 100)
	if got["n"] != 100.0 || got["bytes"] != 1000.0 || got["crc"] != true || got["verified"] != true || got["transport"] != "tcp" || got["error"] != nil {
		t.Errorf("%v", got)
	}
}

// TestRpingVerifiedNothing: what was not transferred is not called verified.
func TestRpingVerifiedNothing(t *testing.T) {
	t.Parallel()
	silent := accepting(t, nil, func(q *verbs.QueuePair) { <-q.Done() })
	for _, at := range []string{silent, nobodyThere} {
		code, out, _ := runFor(t, patient(t), "rping", "--json", "--wait", "300ms", "--to", at)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitError || got["n"] != 0.0 || got["verified"] != false {
			t.Errorf("code %d, %v, %s", code, err, out)
		}
	}
}

// TestRpingClientsAtOnce: each has its own data, beside garbage and silence; a server is there for the next one.
func TestRpingClientsAtOnce(t *testing.T) {
	p, at := startTCPServer(t, "rping", "--wait", "20s", "--serve", "tcp:127.0.0.1:0")
	for _, garbage := range []string{"", "GET / HTTP/1.1\r\n\r\n", "MPA ID Req Frame", strings.Repeat("\xff", 5000)} {
		nc, err := net.Dial("tcp", strings.TrimPrefix(at, "tcp:"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write([]byte(garbage))
	}
	killed := asProcess(t, "rping", "-v", "--to", at).start()
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			code, out, stderr := runFor(t, patient(t), "rping", "--wait", "20s", "-C", "30", "-S", fmt.Sprint(26+1000*i), "--to", at)
			if code != exitOK || !strings.HasPrefix(out, fmt.Sprintf("30 pings of %d bytes", 26+1000*i)) {
				t.Errorf("code %d, %s%s", code, out, stderr)
			}
		})
	}
	all.Wait()
	eventually(t, "the one that is killed has another number of pings behind it than the others", func() bool {
		return strings.Contains(killed.out.String(), "rdma-ping-31:")
	})
	killed.Process.Kill()
	killed.code()
	eventually(t, "the server is through with the one that was killed", func() bool {
		return strings.Count(p.err.String(), " pings\n")+strings.Count(p.err.String(), " pings; then ") == 13
	})
	runOK(t, "rping -C 1 --to "+at)
	if n := strings.Count(p.err.String(), ": 30 pings\n"); n != 12 {
		t.Errorf("%d clients are told of: %s", n, &p.err)
	}
}

// TestRpingTooMany: there is an end to how many are served at once, and who is one too many is told so.
func TestRpingTooMany(t *testing.T) {
	p, at := startTCPServer(t, "rping", "--wait", "1h", "--serve", "tcp:127.0.0.1:0")
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for range mostTCPClients {
		if _, err := h.Dial(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := runFor(t, patient(t), "rping", "--to", at); code != exitError || !strings.Contains(stderr, "256 clients are there already") {
		t.Errorf("code %d, %s", code, stderr)
	}
	// Another host's client does not wait for those of this one.
	runOK(t, "rping -C 1 --local tcp:127.0.0.2 --to "+at)
	h.Close()
	eventually(t, "all are gone", func() bool { return strings.Count(p.err.String(), ": 0 pings") == mostTCPClients })
	runOK(t, "rping -C 1 --wait 20s --to "+at)
}

// TestRpingServerKilled: the client says after how many.
func TestRpingServerKilled(t *testing.T) {
	p, at := startTCPServer(t, "rping", "-v", "--serve", "tcp:127.0.0.1:0")
	go func() {
		for !strings.Contains(p.out.String(), "rdma-ping-2:") && t.Context().Err() == nil { // of which the client has two behind it
			time.Sleep(time.Millisecond)
		}
		p.Process.Kill()
	}()
	code, out, stderr := runFor(t, patient(t), "rping", "--json", "--to", at)
	var got rpingResult
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if code != exitError || got.N == 0 || !strings.Contains(stderr, fmt.Sprintf("ping %d: ", got.N)) || !strings.Contains(stderr, "does the other side say why") || !strings.HasSuffix(stderr, got.Error+"\n") {
		t.Errorf("code %d, %+v, %s", code, got, stderr)
	}
}

// TestRpingWrong: wrong data and silence are told, and end with 1.
func TestRpingWrong(t *testing.T) {
	t.Parallel()
	silent := accepting(t, nil, func(q *verbs.QueuePair) { <-q.Done() })
	code, out, stderr := runFor(t, patient(t), "rping", "--wait", "2s", "--to", silent)
	if code != exitError || stderr != "dgrdmacat rping: ping 0: until the server has read it: no answer of "+silent[4:]+" within 2s; is the program there stopped, or its machine or the network down? --wait is how long it may take\n" || !strings.HasPrefix(out, "0 pings of 64 bytes over tcp with CRC\n") {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
	forgetful := accepting(t, nil, func(q *verbs.QueuePair) {
		for range 2 {
			q.Received().Wait(t.Context(), make([]verbs.Completion, 1))
			q.Send(t.Context(), make([]byte, 16))
		}
		<-q.Done()
	})
	code, out, stderr = runFor(t, patient(t), "rping", "--to", forgetful)
	if code != exitError || !strings.Contains(stderr, "rping: ping 0 has wrong data: byte 0 is 0x00, not 0x72") || !strings.HasPrefix(out, "0 pings") {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
	if code, out, _ := runFor(t, patient(t), "rping", "--verify=false", "-C", "1", "--wait", "2s", "--to", forgetful); code != exitOK || !strings.HasPrefix(out, "1 ping of") {
		t.Errorf("code %d, %s", code, out)
	}
}

// TestRpingServerLimits: a server takes pings of its --size, and has one for one client only with --once, whose faults are its own.
func TestRpingServerLimits(t *testing.T) {
	p, at := startTCPServer(t, "rping", "--once", "--size", "100", "--serve", "tcp:127.0.0.1:0")
	if code, out, stderr := runFor(t, patient(t), "rping", "-S", "101", "--to", at); code != exitError || !strings.Contains(stderr, "ping 0") ||
		!strings.Contains(stderr, "rping: a server takes no pings that are larger than its --size, and these have 101 bytes: ping 0: ") {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
	if code := p.code(); code != exitError || !strings.Contains(p.err.String(), "dgrdmacat rping: ping 0: reading it: wrong size of a ping: the client's has 101 bytes, and 1 to 100 are taken\n") {
		t.Errorf("code %d, %s", code, &p.err)
	}
	_, taken := startTCPServer(t, "rping", "--serve", "tcp:127.0.0.1:0")
	if code, _, stderr := runFor(t, patient(t), "rping", "--serve", taken); code != exitError || !strings.Contains(stderr, "address already in use") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// TestRpingShowsHowFarItIs on a terminal, and is quiet elsewhere.
func TestRpingShowsHowFarItIs(t *testing.T) {
	_, at := startTCPServer(t, "rping", "--serve", "tcp:127.0.0.1:0")
	on := openTerminal(t, 100, 24)
	p := asProcess(t, "rping", "--count", "100000000", "--to", at)
	p.Env, p.Stderr = append(os.Environ(), "TERM=xterm"), on.user
	p.start()
	on.saysSoon(`\r\d+ of 100000000, median [\d.]+ us\x1b\[K`)
	p.Process.Signal(os.Interrupt)
	if code := p.code(); code != exitInterrupted {
		t.Errorf("code %d", code)
	}
}

// TestRpingData: what a peer may send does nothing to a terminal.
func TestRpingData(t *testing.T) {
	var b strings.Builder
	if err := sayData(&b, "ping data", []byte("a\x1b[2J\n\x80\xffb\x00c")); err != nil || b.String() != "ping data: a\\x1b[2J\\n\\x80\\xffb\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errInterrupted)
	if code, _, stderr := runFor(t, ctx, "rping", "--to", accepting(t, nil, func(*verbs.QueuePair) {})); code != exitInterrupted || !strings.Contains(stderr, "interrupted") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// TestRpingServerTakesNoMessage: a server that is none of rping's ends the stream at the first one, and each sentence about that has its end.
func TestRpingServerTakesNoMessage(t *testing.T) {
	_, l := listening(t)
	go func() {
		if r, err := l.Accept(t.Context()); err == nil {
			r.Accept(t.Context(), nil) // without a receive
		}
	}()
	if code, out, stderr := runFor(t, patient(t), "rping", "--to", l.String()); code != exitError ||
		!strings.Contains(stderr, "no buffer for the message (1/2/02), in Send 1 of queue 0 at offset 0: the other side found a fault in what was sent\n") {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
}

// TestRpingGoodbyeFromAfar checks that a client whose way there and back takes 100 ms has the good-bye of a server that ends, and is not told that it may have
// been killed (N1). A server that has waited for all of goodbyeTime, because the machine is busy, may say nothing, and then another one is tried.
func TestRpingGoodbyeFromAfar(t *testing.T) {
	t.Parallel()
	for range 10 {
		ctx, stop := context.WithCancel(t.Context())
		at, end := serving(t, ctx, "rping --serve tcp:127.0.0.1:0")
		ended := make(chan string)
		go func() {
			_, _, stderr := runFor(t, patient(t), "rping", "--to", "tcp:"+afar(t, strings.TrimPrefix(at, "tcp:"), 50*time.Millisecond))
			ended <- stderr
		}()
		time.Sleep(time.Second) // into the pings; if none has begun yet, the client is rejected or served to its end
		stop()
		began := time.Now()
		if code, stderr := end(); code != exitOK {
			t.Errorf("the server: code %d, %s", code, stderr)
		}
		took := time.Since(began)
		stderr := <-ended
		if !strings.Contains(stderr, "killed") {
			return
		}
		if took < goodbyeTime {
			t.Fatalf("the client, after %v: %s", took, stderr)
		}
	}
	t.Error("each server waited in vain")
}

// afar accepts one connection, passes it on to an address, and holds up what each side says.
func afar(t *testing.T, to string, by time.Duration) (at string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		one, err := l.Accept()
		if err != nil {
			return
		}
		other, err := net.Dial("tcp", to)
		if err != nil {
			one.Close()
			return
		}
		var both sync.WaitGroup
		both.Go(func() { passLate(one.(*net.TCPConn), other.(*net.TCPConn), by) })
		both.Go(func() { passLate(other.(*net.TCPConn), one.(*net.TCPConn), by) })
		both.Wait()
		one.Close()
		other.Close()
	}()
	return l.Addr().String()
}

// passLate passes on what a side says, and how that ends.
func passLate(from, to *net.TCPConn, by time.Duration) {
	type said struct {
		data []byte
		err  error
		due  time.Time
	}
	all := make(chan said, 100)
	go func() {
		defer close(all)
		for b := make([]byte, 1<<16); ; {
			n, err := from.Read(b)
			all <- said{bytes.Clone(b[:n]), err, time.Now().Add(by)}
			if err != nil {
				return
			}
		}
	}()
	for s := range all {
		time.Sleep(time.Until(s.due))
		to.Write(s.data)
		switch {
		case errors.Is(s.err, io.EOF):
			to.CloseWrite()
		case s.err != nil:
			to.SetLinger(0) // a reset, as it came
			to.Close()
		}
	}
}

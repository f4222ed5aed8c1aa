package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

// TestRejectedTold: of clients that are rejected a server tells once an hour for each host and reason.
func TestRejectedTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said lockedBuffer
		l := newPeerLog(&said)
		from := func(host byte, port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, host), Port: port} }
		no, never := errors.New("no"), errors.New("never")
		for port := range 1000 {
			l.rejected(from(1, port), no)
			l.rejected(from(2, port), no)
			l.rejected(from(2, port), never)
		}
		if want := "10.0.0.1:0: no\n10.0.0.2:0: no\n10.0.0.2:0: never\n"; said.String() != want {
			t.Errorf("said %s", &said)
		}
		time.Sleep(sameWithin)
		l.rejected(from(1, 7), no)
		if !strings.HasSuffix(said.String(), "never\n10.0.0.1:7: no\n") {
			t.Errorf("an hour later: %s", &said)
		}
	})
}

// TestPeerLogIsBounded checks that however many lines peers cause, a burst of some is printed and then one a second, and that what was left out
// is said each minute, also where nothing follows, and at the end (F14).
func TestPeerLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said lockedBuffer
		l := newPeerLog(&said)
		lines := func() (n, out int) {
			for line := range strings.Lines(said.String()) {
				if left, is := strings.CutSuffix(line, " lines about peers left out: there were too many\n"); is {
					more, err := strconv.Atoi(left)
					if err != nil {
						t.Fatal(line)
					}
					out += more
				} else {
					n++
				}
			}
			return n, out
		}
		const flood = 10 * time.Minute
		caused, began := 0, time.Now()
		for ; time.Since(began) < flood; time.Sleep(10 * time.Millisecond) {
			l.rejected(&net.TCPAddr{IP: net.IPv4(10, byte(caused>>16), byte(caused>>8), byte(caused)), Port: 1}, errors.New("no"))
			caused++
			if len(l.told) > mostLines {
				t.Fatalf("%d are kept", len(l.told))
			}
		}
		n, out := lines()
		if most := mostLines + int(flood/lineEvery); n > most || n < most-2 || strings.Count(said.String(), "left out") > int(flood/summaryEvery)+1 {
			t.Errorf("%d lines of %d within %v, and of %d it is said that they were left out: %s", n, caused, flood, out, &said)
		}
		time.Sleep(summaryEvery)
		if n, out = lines(); n+out != caused {
			t.Errorf("a minute later: %d printed, %d left out, of %d", n, out, caused)
		}
		for range 1000 {
			fmt.Fprintln(l, "what a client did")
		}
		l.close()
		if n, out = lines(); n+out != caused+1000 {
			t.Errorf("at the end: %d printed, %d left out, of %d", n, out, caused+1000)
		}
	})
}

// TestTCPServerRejectsSoMany: a flood of requests that have to be rejected, by peers which do not close their connections, is
// told why, and clients that are there do not notice.
func TestTCPServerRejectsSoMany(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	at, end := serving(t, ctx, "rping --wait 1h --serve tcp:127.0.0.1:0")
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var there []*verbs.QueuePair
	began := time.Now()
	for range mostTCPClients {
		q, err := h.Dial(t.Context(), at, nil)
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, q)
	}
	const rejected = 0x20
	for n := range 3 * verbs.MostTurnedAway {
		nc, err := net.Dial("tcp", strings.TrimPrefix(at, "tcp:"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, "MPA ID Req Frame\x40\x01\x00\x00")
		nc.SetReadDeadline(time.Now().Add(patience))
		said := make([]byte, 20+len("256 clients are there already: try again later"))
		if _, err := io.ReadFull(nc, said[:20]); err == nil && said[16]&rejected == 0 && time.Since(began) >= latency.Patience {
			t.Logf("on a machine this busy, a client was silent long enough to give way to request %d", n+1)
			there = nil
			break
		}
		if _, err := io.ReadFull(nc, said[20:]); err != nil || string(said[20:]) != "256 clients are there already: try again later" {
			t.Fatalf("told %q, %v", said, err)
		}
	}
	for _, q := range there {
		if q.Err() != nil {
			t.Fatal(q.Err())
		}
	}
	stop()
	if code, stderr := end(); code != exitOK {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// TestTCPStrangersTakeNoPlace: strangers that are rejected, and do not close their connections, take nobody's place.
func TestTCPStrangersTakeNoPlace(t *testing.T) {
	for server, client := range map[string]string{
		"rping --serve tcp:127.0.0.1:0": "rping -C 1 --to ",
		"ping --serve tcp:127.0.0.1":    "ping --op read -n 1 --to ",
	} {
		ctx, stop := context.WithCancel(t.Context())
		at, end := serving(t, ctx, server)
		for range mostTCPClients {
			nc, err := net.Dial("tcp", strings.TrimPrefix(at, "tcp:"))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			io.WriteString(nc, "MPA ID Req Frame\x40\x01\x00\x02me")
			nc.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.ReadFull(nc, make([]byte, 20)); err != nil {
				t.Fatal(err)
			}
		}
		runOK(t, client+at)
		stop()
		if code, stderr := end(); code != exitOK {
			t.Errorf("%s: code %d, %s", server, code, stderr)
		}
	}
}

// TestTCPStrangers: servers log whose client they have rejected, and nothing that does something to a terminal.
func TestTCPStrangers(t *testing.T) {
	rpinged, rpings := startTCPServer(t, "rping", "--serve", "tcp:127.0.0.1:0")
	pinged, pings := startTCPServer(t, "ping", "--serve", "tcp:127.0.0.1")
	benched, benches := startTCPServer(t, "bench", "--serve", "tcp:127.0.0.1")
	runFor(t, patient(t), "ping", "--op", "read", "--to", benches)
	runFor(t, patient(t), "rping", "--count", "1", "--to", benches)
	runFor(t, patient(t), "rping", "--count", "1", "--to", benches)
	runFor(t, patient(t), "ping", "--op", "read", "--to", rpings)
	runFor(t, patient(t), "bench", "--op", "read", "--to", rpings)
	runFor(t, patient(t), "bench", "--op", "read", "--to", pings)
	runFor(t, patient(t), "rping", "--count", "1", "--to", pings)
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, private := range []string{"it is me", "\x1b[2Jand me", strings.Repeat("a", 65)} {
		for _, at := range []string{rpings, pings, benches} {
			if q, err := h.Dial(patient(t), at, &verbs.Options{Private: []byte(private)}); err == nil {
				t.Errorf("%s takes %q", at, private)
				q.Abort()
			}
		}
	}
	for _, c := range []struct {
		server *process
		ours   string
		others []string
	}{
		{rpinged, "rping", []string{"it is one of ping --op", "it is one of bench --op"}},
		{pinged, "ping --op", []string{"it is one of bench --op", "it has no private data, as clients of rping"}},
		{benched, "bench --op", []string{"it is one of ping --op", "it has no private data, as clients of rping"}},
	} {
		others := append(c.others, `it comes with private data, "it is me"`, "it comes with private data that is no text, of 10 bytes",
			`it comes with private data, "`+strings.Repeat("a", 64)+`"`)
		eventually(t, "all are told of", func() bool { return strings.Count(c.server.err.String(), ": the client is none of ") >= len(others) })
		said := c.server.err.String()
		for _, other := range others {
			if strings.Count(said, ": the client is none of "+c.ours+": "+other+"\n") != 1 {
				t.Errorf("not once that %s: %s", other, said)
			}
		}
		begins := 1
		if c.server == benched {
			begins = 2
		}
		if strings.Count(said, "\n") != begins+len(others) || strings.ContainsAny(said, "\x1b\\") {
			t.Errorf("%s logs more: %s", c.ours, said)
		}
	}
}

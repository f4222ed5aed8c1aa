package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/link"
)

// TestPingSizes: one server answers pings of each size, also at once, with as many bytes.
func TestPingSizes(t *testing.T) {
	t.Parallel()
	for _, mode := range pingModes {
		t.Run(mode, func(t *testing.T) {
			server, url := startPingServer(t, mode, "udp:127.0.0.1")
			for _, size := range []int{leastPing, 65, 1 << 20, pingBytes, 100_001} {
				args := append(strings.Fields(mode), "-c", "20", "--wait", "9s", "--size", fmt.Sprint(size), "--to", url)
				if code, got, stderr := ping(t, args...); code != exitOK || got.N != 20 || got.Bytes != size {
					t.Errorf("%d bytes: code %d, %+v, %s", size, code, got, stderr)
				}
			}
			said := regexp.MustCompile(`(?m)^peer .*: 40 pings of \d+ bytes\n`).ReplaceAllString(server.err.String(), "")
			if strings.Count(said, "\n") != 2 {
				t.Errorf("the server says %s", said)
			}
		})
	}
}

// TestPingAnswersHaveThatSize: what comes back is as long as what went.
func TestPingAnswersHaveThatSize(t *testing.T) {
	const size = 3000
	var went, came atomic.Int64
	e, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Service: pingService, AcceptAny: true, Memory: newPings(pingMemory, func(p *pingPeer) dgrdma.Memory {
		p.arrived = p.write
		return counting{p, &went}
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	arrived := make(chan struct{}, 1)
	var p *pingPeer
	here, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Service: pingService, Memory: newPings(size, func(x *pingPeer) dgrdma.Memory {
		p = x
		p.agreed.Store(size)
		p.size.Store(size)
		p.asked = func(most uint32) { p.write(1) }
		p.arrived = func(uint32) { arrived <- struct{}{} }
		return counting{p, &came}
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	to, _ := dgrdma.ParsePeer(e.URL())
	to.Size = 1 << 32
	if _, err := here.Connect(to); err != nil {
		t.Fatal(err)
	}
	p.say(size)
	<-arrived
	if went.Load() != size || came.Load() != size {
		t.Errorf("%d bytes went, %d came", went.Load(), came.Load())
	}
}

// counting counts what is admitted.
type counting struct {
	*pingPeer
	bytes *atomic.Int64
}

func (c counting) Admit(src dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	b, err := c.pingPeer.Admit(src, m)
	c.bytes.Add(int64(len(b)))
	return b, err
}

// older is the memory of a server that answers pings of 64 bytes and nothing else.
type older struct{ *pingPeer }

func (o older) Admit(src dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	if m.CompletionAddr == pingSize {
		return nil, errNoPing
	}
	return o.pingPeer.Admit(src, m)
}

// TestPingTooLarge: who cannot be answered is told so soon, and not only when the server is
// given up: how large pings may be, or that the server knows no sizes.
func TestPingTooLarge(t *testing.T) {
	t.Parallel()
	_, small := startPingServer(t, "--size 128k", "udp:127.0.0.1")
	listens := func(memory int, o *link.Options) string {
		h, err := link.Open("udp:127.0.0.1", &link.Config{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		port, err := h.Listen(pingPort, o)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				if _, err := port.Accept(t.Context()); err != nil {
					return
				}
			}
		}()
		return h.URL()
	}
	full := listens(1<<20, pingLinkOptions(0, new(outbox).answer))
	linkBefore := listens(1<<20, &link.Options{Directions: link.Both, Buffers: pingLinkBuffers, Size: pingBytes, Handle: new(outbox).answer})
	before, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Service: pingService, AcceptAny: true, Memory: newPings(pingBytes, func(p *pingPeer) dgrdma.Memory {
		p.arrived = p.write
		return older{p}
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	for _, c := range []struct {
		mode, url string
		code      int
		says      string
	}{
		{"--size 200000", small, exitUsage, "--size 200000: the server takes pings of 131072 bytes at most; give ping --serve as large a --size"},
		{"--size 200000 --busy-poll", small, exitUsage, "--size 200000: the server takes pings of 131072 bytes at most"},
		{"--size 65", before.URL(), exitUsage, "--size 65: the server does not say that it takes other pings than those of 64 bytes; it is an older one"},
		{"--size 65 --busy-poll", before.URL(), exitUsage, "it is an older one"},
		{"--link --size 1M", full, exitError, "does it serve too many at once? --size 1M takes 2097152 bytes of its memory"},
		{"--link --size 65", linkBefore, exitUsage, "--size 65: the server's buffers are for messages of at most 64 bytes; it is an older one"},
	} {
		began := time.Now()
		// A server that falls silent is given up after an hour.
		code, got, stderr := ping(t, append(strings.Fields(c.mode), "-c", "20", "--to", c.url+"?giveup=1h")...)
		if code != c.code || got.N != 0 || got.Lost != 0 || !strings.Contains(stderr, c.says) || time.Since(began) > patience {
			t.Errorf("%+v: code %d after %v, %+v, %s", c, code, time.Since(began), got, stderr)
		}
	}
	for _, url := range []string{small, before.URL()} {
		if code, got, stderr := ping(t, "-c", "20", "--to", url+"?giveup=1h"); code != exitOK || got.N != 20 {
			t.Errorf("code %d, %+v, %s", code, got, stderr)
		}
	}
}

// TestPingAdmits no more than was agreed, and nothing behind that.
func TestPingAdmits(t *testing.T) {
	here := newPings(5000, nil)
	p := newPingPeer(nil, here)
	admits := func(at, n int, want bool) {
		t.Helper()
		m := &frame.Message{CompletionAddr: pingWord, Addr: uint32(at), Len: uint16(n)}
		if b, err := p.Admit(1, m); (err == nil) != want || want && len(b) != n || !want && !errors.Is(err, dgrdma.ErrBounds) {
			t.Errorf("%d bytes at %#x: %d, %v", n, at, len(b), err)
		}
	}
	admits(pingData, pingBytes, true)
	admits(pingData+1, pingBytes, false)
	admits(pingAt-1, 1, false) // nothing was agreed
	for _, agreed := range []uint32{5000, 1000} {
		p.agreed.Store(agreed)
		at := pingAt - int(agreed)
		admits(at, int(agreed), true)
		admits(pingAt-1, 1, true)
		admits(at-1, 2, false)
		admits(pingAt-1, 2, false)
		admits(0, 1, false)
		if p.size.Load() != agreed || p.segment().Addr != uint32(at) || len(p.segment().Bytes) != int(agreed) {
			t.Errorf("answers with %d bytes, want %d", p.size.Load(), agreed)
		}
	}
	if admits(pingData, 10, true); p.size.Load() != pingBytes || p.segment().Addr != pingData {
		t.Errorf("answers with %d bytes", p.size.Load())
	}
	for asked, want := range map[uint32]uint32{0: 0, 4: 4, 5000: 5000, 5001: 5000, 1<<32 - 1: 5000} {
		p.saying.Store(true) // nobody is there to be told
		if p.agree(asked); p.agreed.Load() != want {
			t.Errorf("asked for %d, agreed to %d", asked, p.agreed.Load())
		}
	}
}

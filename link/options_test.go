package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestBoundsOfOptions checks that a port is listened on with the least and with the most of each
// option. With more, or less, neither Listen nor Dial does anything, and the error says what was wrong
// and what is needed.
func TestBoundsOfOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		port string
		o    Options
		says string // "": nothing is wrong
	}{
		{"no name", "", Options{}, `link: port name "": need 1 to 64 bytes`},
		{"a name of a byte", "p", Options{}, ""},
		{"the longest name", strings.Repeat("p", 64), Options{}, ""},
		{"a longer name", strings.Repeat("p", 65), Options{}, `link: port name "` + strings.Repeat("p", 65) + `": need 1 to 64 bytes`},
		{"the most private data", "p", Options{Private: make([]byte, 256)}, ""},
		{"more private data", "p", Options{Private: make([]byte, 257)}, "link: 257 bytes of private data, at most 256"},
		{"less than no buffers", "p", Options{Buffers: -1}, "link: -1 buffers, need 1 to 65536"},
		{"one buffer", "p", Options{Buffers: 1}, ""},
		{"the most buffers", "p", Options{Buffers: 65536}, ""},
		{"more buffers", "p", Options{Buffers: 65537}, "link: 65537 buffers, need 1 to 65536"},
		{"buffers of less than nothing", "p", Options{Size: -1}, "link: buffers of -1 bytes, need 1 to 2097151"},
		{"buffers of a byte", "p", Options{Size: 1}, ""},
		{"the longest buffers", "p", Options{Size: 2097151}, ""},
		{"longer buffers", "p", Options{Size: 2097152}, "link: buffers of 2097152 bytes, need 1 to 2097151"},
		{"both directions", "p", Options{Directions: Both}, ""},
		{"a third direction", "p", Options{Directions: 4}, "link: direction 4, need Send, Receive or Both"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newNet(t, 1).host(1, nil)
				p, err := h.Listen(c.port, &c.o)
				if c.says == "" {
					if err != nil || p.Port() != c.port {
						t.Error(err)
					}
					return
				}
				if err == nil || err.Error() != c.says {
					t.Errorf("Listen: %v", err)
				}
				if _, err := h.Dial(soon(t), at(2), c.port, &c.o); err == nil || err.Error() != c.says {
					t.Errorf("Dial: %v", err)
				}
				if s := h.Stats(); len(s.Ports) != 0 || len(h.ep.Conns()) != 0 {
					t.Errorf("%d ports, %d connections", len(s.Ports), len(h.ep.Conns()))
				}
			})
		})
	}
}

// TestWishes checks that a dialer's wish counts, up to the most there can be, where a listener leaves
// open how many buffers there are, or how long they are. Without a wish there are 64 of 64 KiB. What
// the listener says counts, whatever is wished.
func TestWishes(t *testing.T) {
	for _, c := range []struct {
		name          string
		listener      Options
		wish          half
		buffers, size uint32
	}{
		{"neither says", Options{}, half{}, 64, 65536},
		{"a wish", Options{}, half{Buffers: 3, Size: 5}, 3, 5},
		{"against a wish", Options{Buffers: 7, Size: 9}, half{Buffers: 3, Size: 5}, 7, 9},
		{"the most buffers", Options{Size: 1}, half{Buffers: 65536}, 65536, 1},
		{"more buffers", Options{Size: 1}, half{Buffers: 65537}, 65536, 1},
		{"billions of buffers", Options{Size: 1}, half{Buffers: 1<<32 - 1}, 65536, 1},
		{"the longest buffers", Options{Buffers: 1}, half{Size: 2097151}, 1, 2097151},
		{"longer buffers", Options{Buffers: 1}, half{Size: 2097152}, 1, 2097151},
		{"gigabytes", Options{Buffers: 1}, half{Size: 1<<32 - 1}, 1, 2097151},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, &c.listener, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				yes := s.dial(1, "port", toListener, c.wish, half{})
				if yes.kind != letterAccept || yes.out.Buffers != c.buffers || yes.out.Size != c.size {
					t.Errorf("%+v, want %d buffers of %d bytes", yes, c.buffers, c.size)
				}
			})
		})
	}
}

// TestPlaceOfEverything checks that buffers begin at multiples of a cache line, that flags come after
// all buffers and the word for credits after all flags, and that so much memory is taken.
func TestPlaceOfEverything(t *testing.T) {
	for _, c := range []struct {
		name          string
		o             Options
		d             direction
		pitch         uint32
		flags, credit uint32 // from the beginning
		memory        uint64 // that is taken, in units
	}{
		{"of a byte", Options{Buffers: 100, Size: 1}, toListener, 64, 6400, 0, 6800},
		{"nearly a line", Options{Buffers: 100, Size: 63}, toListener, 64, 6400, 0, 6800},
		{"a line", Options{Buffers: 100, Size: 64}, toListener, 64, 6400, 0, 6800},
		{"more than a line", Options{Buffers: 100, Size: 65}, toListener, 128, 12800, 0, 13200},
		{"two lines", Options{Buffers: 100, Size: 128}, toListener, 128, 12800, 0, 13200},
		{"whole units, one way", Options{Buffers: 32, Size: 124}, toListener, 128, 4096, 0, 4224},
		{"whole units, both ways", Options{Buffers: 32, Size: 124}, toListener | toDialer, 128, 4096, 4224, 4228},
		{"the least", Options{Buffers: 1, Size: 1}, toListener | toDialer, 64, 64, 68, 2048},
		{"the other way", Options{}, toDialer, 0, 0, 0, 2048},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Directions = Both
			withFakePeer(t, &c.o, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				before := h.Stats().Free
				yes := s.dial(1, "port", c.d, half{}, buffers(1, 1))
				l := <-made
				if c.d&toListener != 0 && (yes.out.Pitch != c.pitch || yes.out.Data != uint32(l.memory.At) || yes.out.Flags != yes.out.Data+c.flags || yes.out.FlagPitch != 4) {
					t.Errorf("at %#x: %+v", l.memory.At, yes.out)
				}
				if c.d&toDialer != 0 && yes.back.Credit != uint32(l.memory.At)+c.credit {
					t.Errorf("the word for credits is at %#x of %#x", yes.back.Credit, l.memory.At)
				}
				if taken := before - h.Stats().Free; taken != (c.memory+127)&^127 {
					t.Errorf("%d bytes were taken, want %d", taken, c.memory)
				}
			})
		})
	}
}

// TestNoRoom checks that there is no link without memory for it, whichever side makes it, and that
// nothing of it is left. So it is with a link that needs more than all addresses.
func TestNoRoom(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		conn := h.ep.Conns()[0]
		before := h.Stats()
		for _, o := range []Options{{Buffers: 17, Size: 1 << 20}, {Buffers: mostBuffers, Size: mostSize}} {
			o.Directions = Both
			if l, err := h.Dial(soon(t), at(9), "port", &o); l != nil || !errors.Is(err, ErrNoMemory) || !strings.Contains(err.Error(), "open the host with more memory") {
				t.Errorf("Dial: %v", err)
			}
			if l, _, err := h.Offer(conn, 0, &o); l != nil || !errors.Is(err, ErrNoMemory) {
				t.Errorf("Offer: %v", err)
			}
		}
		full, _, err := h.Offer(conn, 0, &Options{Buffers: int(before.Free / 1028), Size: 1024})
		if err != nil {
			t.Fatal(err)
		}
		if l, _, err := h.Attach(conn, Buffers{N: 4, Size: 8, Pitch: 8}, nil); l != nil || !errors.Is(err, ErrNoMemory) {
			t.Errorf("Attach: %v", err)
		}
		if n := h.Stats().Full.Memory; n != 5 {
			t.Errorf("memory is counted to be full %d times, want 5", n)
		}
		if now := h.Stats(); len(now.Links) != 1 || now.Links[0].Number != full.number {
			t.Errorf("%d links", len(now.Links))
		}
		if got := s.mail(); len(got) != 0 {
			t.Errorf("%d letters, the first %+v", len(got), got[0])
		}
	})
}

// TestGreedyPeer checks that a shape that would cost gigabytes is refused.
func TestGreedyPeer(t *testing.T) {
	h := half{Buffers: 2048, Size: MaxMessage, Pitch: 1 << 21, Data: 0, Flags: 0, FlagPitch: 4}
	if h.isValid() {
		t.Error("4 GiB of buffers are taken for granted")
	}
	h.Buffers = 256
	if !h.isValid() {
		t.Error("512 MiB are refused")
	}
}

// TestOneDialerDoesNotGetItAll checks that a dialer gets half of the memory at most where a listener
// leaves open how many buffers there are, or how long they are. What the listener says itself, the
// dialer gets (attack A14, SECURITY.md).
func TestOneDialerDoesNotGetItAll(t *testing.T) {
	const memory, some, long = 1 << 20, 8, 1 << 16 // 8 of these are half of it, and their flags are more
	for _, c := range []struct {
		name     string
		listener Options
		dialer   Options
		accepted bool
	}{
		{"less than half, all open", Options{}, Options{Buffers: some - 2, Size: long}, true},
		{"more than half, all open", Options{}, Options{Buffers: some + 2, Size: long}, false},
		{"more than half, their number open", Options{Size: long}, Options{Buffers: some + 2, Size: long}, false},
		{"more than half, their length open", Options{Buffers: some + 2}, Options{Buffers: some + 2, Size: long}, false},
		{"more than half, nothing open", Options{Buffers: some + 2, Size: long}, Options{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 0)
				a, b := n.host(1, nil), n.host(2, &Config{Memory: memory})
				l, err := b.Listen("port", &c.listener)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go func() {
					for {
						if _, err := l.Accept(context.Background()); err != nil {
							return
						}
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = dial(ctx, a, 2, "port", &c.dialer)
				if c.accepted != (err == nil) || err != nil && !errors.Is(err, ErrRefused) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

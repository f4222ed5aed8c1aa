package link

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// withOther runs a test of a host and of a scripted peer to which links of another kind are made on
// conn.
func withOther(t *testing.T, test func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer)) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, _ <-chan *Link, s *fakePeer) { test(t, h, h.ep.Conns()[0], s) })
}

// says reports whether an error is a certain one, or none, and has a text.
func says(err, want error, text string) bool {
	return errors.Is(err, want) && (err == nil || strings.Contains(err.Error(), text))
}

// TestPitchOfFlags checks that an offer may have its flags as far from each other as 16 bits say, at
// multiples of a word.
func TestPitchOfFlags(t *testing.T) {
	for _, c := range []struct {
		asked, got uint32
		says       string
	}{
		{0, 4, ""}, {4, 4, ""}, {8, 8, ""}, {80, 80, ""}, {65532, 65532, ""},
		{1, 0, "link: offer: flags every 1 bytes, need a multiple of 4 up to 65535: "}, {2, 0, "every 2 bytes"}, {6, 0, "every 6 bytes"},
		{65535, 0, "every 65535 bytes"}, {65536, 0, "every 65536 bytes"}, {1<<32 - 4, 0, "every 4294967292 bytes"},
	} {
		withOther(t, func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer) {
			var want error
			if c.got == 0 {
				want = ErrLayout
			}
			_, to, err := h.Offer(conn, c.asked, &Options{Buffers: 2, Size: 8})
			if to.FlagPitch != c.got || !says(err, want, c.says) {
				t.Errorf("flags every %d bytes: every %d, %v", c.asked, to.FlagPitch, err)
			}
			if links := len(h.Stats().Links); (links == 1) != (want == nil) {
				t.Errorf("flags every %d bytes: %d links", c.asked, links)
			}
		})
	}
}

// TestWholeWords checks that buffers end with a whole word, because peers of other kinds may write
// whole words.
func TestWholeWords(t *testing.T) {
	withOther(t, func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer) {
		for size := 1; size <= 17; size++ {
			l, to, err := h.Offer(conn, 80, &Options{Buffers: 3, Size: size})
			if err != nil {
				t.Fatal(err)
			}
			want := Buffers{N: 3, Size: uint32(size+3) / 4 * 4, Data: uint32(l.memory.At), Pitch: 64, Flags: uint32(l.memory.At) + 3*64, FlagPitch: 80}
			if to != want {
				t.Errorf("buffers of %d bytes: %+v, want %+v", size, to, want)
			}
		}
	})
}

// TestLayoutOfConsumers checks that a host attaches to any buffers that lie within 32 bits of
// addresses and not over each other, with flags at multiples of a word, and to no others.
func TestLayoutOfConsumers(t *testing.T) {
	fits := Buffers{N: 4, Size: 8, Data: 1 << 20, Pitch: 8, Flags: 1 << 16, FlagPitch: 4}
	with := func(change func(*Buffers)) Buffers { b := fits; change(&b); return b }
	const data, flags = "buffers of ", "flags of "
	for _, c := range []struct {
		name string
		to   Buffers
		says string // "": it can be written to
	}{
		{"fits", fits, ""},
		{"no buffers", with(func(b *Buffers) { b.N = 0 }), "link: attach: 0 buffers, need 1 to 65536: "},
		{"one", with(func(b *Buffers) { b.N = 1 }), ""},
		{"most", with(func(b *Buffers) { b.N = 65536 }), ""},
		{"more", with(func(b *Buffers) { b.N = 65537 }), "65537 buffers, need 1 to 65536"},
		{"no bytes", with(func(b *Buffers) { b.Size = 0 }), "link: attach: 4 buffers of 0 bytes at 0x100000, every 8: "},
		{"one byte", with(func(b *Buffers) { b.Size = 1 }), ""},
		{"over each other", with(func(b *Buffers) { b.Pitch = 7 }), data},
		{"one, not over itself", with(func(b *Buffers) { b.N, b.Pitch = 1, 0 }), ""},
		{"two over each other", with(func(b *Buffers) { b.N, b.Pitch = 2, 7 }), data},
		{"to the top", with(func(b *Buffers) { b.Data = 1<<32 - 32 }), ""},
		{"past the top", with(func(b *Buffers) { b.Data = 1<<32 - 31 }), data},
		{"far past the top", with(func(b *Buffers) { b.Pitch = 1 << 31 }), data},
		{"one to the top", with(func(b *Buffers) { b.N, b.Data, b.Pitch = 1, 1<<32-8, 1<<32-1 }), ""},
		{"one past the top", with(func(b *Buffers) { b.N, b.Data = 1, 1<<32-7 }), data},
		{"flags at half a word", with(func(b *Buffers) { b.Flags += 2 }), "link: attach: flags of 4 buffers at 0x10002, every 4 bytes: "},
		{"flags at odd addresses", with(func(b *Buffers) { b.Flags++ }), flags},
		{"flags at words", with(func(b *Buffers) { b.Flags += 4 }), ""},
		{"flags every half word", with(func(b *Buffers) { b.FlagPitch = 6 }), flags},
		{"one for all", with(func(b *Buffers) { b.FlagPitch = 0 }), ""},
		{"one flag", with(func(b *Buffers) { b.N, b.FlagPitch = 1, 3 }), ""},
		{"two flags", with(func(b *Buffers) { b.N, b.FlagPitch = 2, 3 }), flags},
		{"flags to the top", with(func(b *Buffers) { b.Flags = 1<<32 - 16 }), ""},
		{"flags past the top", with(func(b *Buffers) { b.Flags = 1<<32 - 12 }), flags},
		{"flags far past the top", with(func(b *Buffers) { b.FlagPitch = 1 << 31 }), flags},
	} {
		t.Run(c.name, func(t *testing.T) {
			withOther(t, func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer) {
				out, words, err := h.Attach(conn, c.to, nil)
				if c.says != "" {
					if !says(err, ErrLayout, c.says) || out != nil || len(h.Stats().Links) != 0 {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if links := len(h.Stats().Links); links != 1 {
					t.Errorf("%d links are listed", links)
				}
				if words.Pitch != 4 || words.Addr != uint32(out.memory.At) || out.memory.N != max(uint64(c.to.N)*4, leastMemory) {
					t.Errorf("words at %#x, every %d; memory at %#x, %d bytes", words.Addr, words.Pitch, out.memory.At, out.memory.N)
				}
				if n, size := out.Out.Buffers(); n != int(c.to.N) || size != int(c.to.Size) {
					t.Errorf("%d buffers of %d bytes", n, size)
				}
				// The last buffer and its flag are written where they are.
				last := c.to.N - 1
				if last > 4 {
					return // too many to wait for
				}
				for range c.to.N {
					if err := out.Out.Send(soon(t), 7, []byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				s.wait(20 * time.Millisecond)
				s.mu.Lock()
				defer s.mu.Unlock()
				if at := c.to.Flags + last*c.to.FlagPitch; s.words[at] != uint32(PackFlag(1, 7, false)) {
					t.Errorf("the flag of buffer %d at %#x: %#x of %v", last, at, s.words[at], s.words)
				}
			})
		})
	}
}

// TestLongBuffersOfAConsumer checks that of buffers longer than a flag can state, as much is used as
// it can state.
func TestLongBuffersOfAConsumer(t *testing.T) {
	withOther(t, func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer) {
		for _, size := range []uint32{MaxMessage - 1, MaxMessage, MaxMessage + 1, 1 << 28} {
			out, _, err := h.Attach(conn, Buffers{N: 4, Size: size, Pitch: size}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := out.Out.Buffers(); got != int(min(size, MaxMessage)) {
				t.Errorf("%d bytes of buffers of %d are used", got, size)
			}
		}
	})
}

// TestLayoutOfProducers checks that a link of Offer is told once where its producer hears of free
// buffers, which is any words within 32 bits of addresses.
func TestLayoutOfProducers(t *testing.T) {
	const n = 4
	for _, c := range []struct {
		name  string
		n     int
		flags EmptyFlags
		says  string // "": it can be written to
	}{
		{"fits", n, EmptyFlags{1 << 16, 4}, ""},
		{"one for all", n, EmptyFlags{1 << 16, 0}, ""},
		{"at the next word", n, EmptyFlags{1<<16 + 4, 4}, ""},
		{"at half a word", n, EmptyFlags{1<<16 + 2, 4}, "link: connect peer 9 at 02:00:00:00:00:09: empty flags of 4 buffers at 0x10002, every 4 bytes: "},
		{"at an odd address", n, EmptyFlags{1<<16 + 1, 4}, "at 0x10001"},
		{"to the top", n, EmptyFlags{1<<32 - 16, 4}, ""},
		{"past the top", n, EmptyFlags{1<<32 - 12, 4}, "at 0xfffffff4"},
		{"past the top by half a word", 2, EmptyFlags{1<<32 - 4, 2}, "at 0xfffffffc"},
		{"far past the top", n, EmptyFlags{1 << 16, 1 << 31}, "every 2147483648"},
		{"one to the top", 1, EmptyFlags{1<<32 - 4, 1<<32 - 1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			withOther(t, func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer) {
				in, to, err := h.Offer(conn, 80, &Options{Buffers: c.n, Size: 8})
				if err != nil {
					t.Fatal(err)
				}
				err = in.Connect(c.flags)
				if c.says != "" {
					if !says(err, ErrLayout, c.says) {
						t.Error(err)
					}
					c.flags = EmptyFlags{1 << 14, 4}
					err = in.Connect(c.flags) // which can still be called
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := in.Connect(c.flags); !says(err, ErrLayout, "it is connected already") {
					t.Errorf("twice: %v", err)
				}
				for i := range uint32(c.n) {
					s.frame(s.word(to.Flags+i*80, uint32(PackFlag(1, 0, false))))
					m, err := in.In.Recv(soon(t))
					if err != nil {
						t.Fatal(err)
					}
					in.In.Release(m)
				}
				s.wait(20 * time.Millisecond)
				s.mu.Lock()
				defer s.mu.Unlock()
				if at := c.flags.Addr + uint32(c.n-1)*c.flags.Pitch; s.words[at] != 1 {
					t.Errorf("the producer was not told at %#x: %v", at, s.words)
				}
			})
		})
	}
}

// TestConnectWhatWasNotOffered checks that Connect fails for a link that Offer did not make.
func TestConnectWhatWasNotOffered(t *testing.T) {
	withFakePeer(t, &Options{Directions: Both, Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		s.dial(1, "port", toListener|toDialer, half{Credit: 1 << 15}, buffers(4, 8))
		attached, _, err := h.Attach(h.ep.Conns()[0], Buffers{N: 4, Size: 8, Pitch: 8}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*Link{<-made, attached} {
			if err := l.Connect(EmptyFlags{}); !says(err, ErrLayout, "it is not one that was offered") {
				t.Error(err)
			}
		}
	})
}

// TestPlainNeedsAConnection checks that plain links need a connection of the host's endpoint, options
// that are possible, and a host that is open.
func TestPlainNeedsAConnection(t *testing.T) {
	withOther(t, func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer) {
		other, err := s.n.host(1, nil).ep.Connect(dgrdma.Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		closed := s.n.host(3, nil)
		closed.Close()
		to := Buffers{N: 4, Size: 8, Pitch: 8}
		for _, c := range []struct {
			name string
			h    *Host
			conn *dgrdma.Conn
			o    *Options
			want error
			says string
		}{
			{"good", h, conn, nil, nil, ""},
			{"a host that was closed", closed, conn, nil, ErrClosed, ""},
			{"another's connection", h, other, nil, nil, "link: the connection to peer 2 at 02:00:00:00:00:02 is not one of the host's endpoint"},
			{"no options", h, conn, &Options{Buffers: -1}, nil, "link: -1 buffers, need 1 to 65536"},
		} {
			_, _, offered := c.h.Offer(c.conn, 0, c.o)
			_, _, attached := c.h.Attach(c.conn, to, c.o)
			for _, err := range []error{offered, attached} {
				if c.want != nil && !errors.Is(err, c.want) || (err == nil) != (c.name == "good") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
	})
}

// TestEndOfAPlainLink checks that a link without letters tells no peer of its end, and keeps its
// memory until the connection ends: a write may be in flight. But what comes there from then on is
// refused.
func TestEndOfAPlainLink(t *testing.T) {
	withOther(t, func(t *testing.T, h *Host, conn *dgrdma.Conn, s *fakePeer) {
		in, to, err := h.Offer(conn, 80, &Options{Buffers: 2, Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		if l := h.Stats().Links; len(l) != 1 || l[0].Port != "" || l[0].Dialing {
			t.Errorf("%+v", l)
		}
		if err := in.Abort(soon(t), "enough"); err != nil {
			t.Errorf("Abort waited for the peer to hear of it: %v", err)
		}
		if got := s.mail(); len(got) != 0 {
			t.Errorf("%d letters, the first %+v", len(got), got[0])
		}
		if s := h.Stats(); s.Free == s.Memory || len(s.Links) != 1 || !s.Links[0].Closing {
			t.Errorf("%+v", s)
		}
		if conn.Err() != nil {
			t.Fatal(conn.Err())
		}
		none := ^uint32(0)
		s.frame(s.write(to.Data, []byte("data"), none, none), s.word(to.Flags, uint32(PackFlag(4, 0, false))))
		s.wait(20 * time.Millisecond)
		if memory := h.block.Bytes(in.memory); !bytes.Equal(memory, make([]byte, len(memory))) || in.Stats().In.Waiting != 0 {
			t.Errorf("a closed link was written to: %+v", *in.Stats().In)
		}
		conn.Close()
		in.connectionLost() // as a call that waits would notice
		nothingLeft(t, h)
	})
}

// TestReleaseBeforeConnect checks that the producer is told of buffers of a plain link that came back
// before it was known where that is told.
func TestReleaseBeforeConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		toB, err := a.ep.Connect(dgrdma.Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		toA, err := b.ep.Connect(dgrdma.Peer{ID: 1, Addr: simnet.Addr(1)})
		if err != nil {
			t.Fatal(err)
		}
		in, consumer, err := b.Offer(toA, 80, &Options{Buffers: 3, Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		out, flow, err := a.Attach(toB, consumer, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for k := range 20 {
			if k == 2 {
				if err := in.Connect(flow); err != nil {
					t.Fatal(err)
				}
				if err := in.Connect(flow); !errors.Is(err, ErrLayout) {
					t.Errorf("connected twice: %v", err)
				}
			}
			if err := out.Out.Send(ctx, uint8(k), []byte{byte(k)}); err != nil {
				t.Fatalf("message %d: %v", k, err)
			}
			m, err := in.In.Recv(ctx)
			if err != nil || m.Opcode != uint8(k) {
				t.Fatalf("message %d: %v", k, err)
			}
			if err := in.In.Release(m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

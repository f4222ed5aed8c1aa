package link

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// withFakePeer runs a test of a host that listens at "port", and of a scripted peer.
func withFakePeer(t *testing.T, o *Options, test func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 4)
		h := n.host(2, nil)
		made := h.serve(t, "port", o)
		test(t, h, made, n.fakePeer(9, h))
	})
}

// soon returns a context that bounds a call which must not wait.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestOnlyWhatThisPeerWrote checks that, whatever a peer does to have a buffer declared full, the
// application gets exactly the bytes that this peer wrote with the flag, or an error, and never what
// another peer left there (attack A7, SECURITY.md).
func TestOnlyWhatThisPeerWrote(t *testing.T) {
	secret := bytes.Repeat([]byte("password"), 12)
	const size = 96
	flag := func(n int) uint32 { return uint32(PackFlag(n, 1, false)) }
	type script struct {
		name  string
		send  func(s *fakePeer, in *half)
		want  string // "": it is against the rules
		count int    // messages that are delivered; 0: one if want is not empty
	}
	for _, c := range []script{
		{"honest", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("hello"), in.Flags, flag(5)))
		}, "hello", 0},
		{"in pieces, out of order", func(s *fakePeer, in *half) {
			for _, i := range []uint16{2, 4, 1, 3} {
				s.frame(s.message(0, 4, i, in.Data+uint32(i-1)*2, []byte("abcdefgh")[2*i-2:][:2], in.Flags, flag(8)))
			}
			s.txn++
		}, "abcdefgh", 0},
		{"flag without data", func(s *fakePeer, in *half) {
			s.frame(s.word(in.Flags, flag(size)))
		}, "", 0},
		{"flag of more than came", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("x"), in.Flags, flag(size)))
		}, "", 0},
		{"flag of less than came", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("xyz"), in.Flags, flag(2)))
		}, "", 0},
		{"cut flag without data", func(s *fakePeer, in *half) {
			s.frame(s.word(in.Flags, flag(size)|flagTruncated))
		}, "", 0},
		{"end of file with the bytes of another", func(s *fakePeer, in *half) {
			s.frame(s.word(in.Flags, flag(size)|flagEOF))
		}, "", 0},
		{"the same bytes again and again", func(s *fakePeer, in *half) {
			for i := range uint16(size / 8) {
				s.frame(s.message(0, size/8, i+1, in.Data, make([]byte, 8), in.Flags, flag(size)))
			}
			s.txn++
		}, "", 0},
		{"overlap as long as the hole", func(s *fakePeer, in *half) {
			s.frame(s.message(0, 3, 1, in.Data, make([]byte, 8), in.Flags, flag(24)),
				s.message(0, 3, 2, in.Data, make([]byte, 8), in.Flags, flag(24)),
				s.message(0, 3, 3, in.Data+16, make([]byte, 8), in.Flags, flag(24)))
			s.txn++
		}, "", 0},
		{"data that completes nowhere, then a flag", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, make([]byte, size), ^uint32(0), ^uint32(0)), s.word(in.Flags, flag(size)))
		}, "", 0},
		{"data that completes elsewhere, then a flag", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, make([]byte, size), in.Flags+4, 0), s.word(in.Flags, flag(size)))
		}, "", 0},
		{"flag as data", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Flags, put32(flag(size)), ^uint32(0), ^uint32(0)))
			s.frame(s.write(in.Flags, put32(flag(size)), letterBells, 0))
			s.frame(s.write(in.Data, []byte("after"), in.Flags, flag(5)))
		}, "after", 0},
		{"flag at an odd address", func(s *fakePeer, in *half) {
			s.frame(s.word(in.Flags+1, flag(size)))
			s.frame(s.word(in.Flags+2, flag(size)))
			s.frame(s.write(in.Data, []byte("after"), in.Flags, flag(5)))
		}, "after", 0},
		{"flag beyond the last", func(s *fakePeer, in *half) {
			s.frame(s.word(in.Flags+in.Buffers*4, flag(size)))
			s.frame(s.write(in.Data, []byte("after"), in.Flags, flag(5)))
		}, "after", 0},
		{"flag that is not full", func(s *fakePeer, in *half) {
			s.frame(s.word(in.Flags, flag(size)&^1))
		}, "", 0},
		{"flag that is not full, of what came", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("hello"), in.Flags, flag(5)&^1))
		}, "", 0},
		{"longer than a buffer", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, make([]byte, size), in.Flags, flag(size+1)))
		}, "", 0},
		{"a byte past the end of its buffer", func(s *fakePeer, in *half) {
			s.frame(s.message(0, 2, 1, in.Data, make([]byte, size), in.Flags, flag(size)), s.message(0, 2, 2, in.Data+size, []byte("x"), in.Flags, flag(size)))
		}, "", 0},
		{"a byte of a transaction that counts none", func(s *fakePeer, in *half) {
			s.frame(s.message(0, 0, 1, in.Data, []byte("x"), in.Flags, flag(1)))
		}, "", 0},
		{"data past the end of its buffer", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, make([]byte, size+1), in.Flags, flag(size)))
		}, "", 0},
		{"data of the next buffer", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data+in.Pitch, []byte("x"), in.Flags, flag(1)))
		}, "", 0},
		{"data of the buffer before", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("x"), in.Flags+4, flag(1)))
		}, "", 0},
		{"data outside of the link", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data-1, []byte("x"), in.Flags, flag(1)))
		}, "", 0},
		{"a buffer that is full", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("first"), in.Flags, flag(5)))
			s.frame(s.write(in.Data, []byte("later"), in.Flags, flag(5)))
		}, "first", 1},
		{"a buffer that is full, in one frame", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("first"), in.Flags, flag(5)), s.write(in.Data, []byte("later"), in.Flags, flag(5)))
		}, "first", 1},
		{"a full buffer declared full again", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("first"), in.Flags, flag(5)), s.word(in.Flags, flag(0)))
			s.frame(s.word(in.Flags, flag(0)))
		}, "first", 1},
		{"data of a transaction that counts none, twice", func(s *fakePeer, in *half) {
			s.frame(s.message(0, 0, 1, in.Data, []byte("first"), in.Flags, flag(5)), s.message(0, 0, 2, in.Data, []byte("later"), in.Flags, flag(5)))
		}, "", 0},
		{"a transaction that goes on when another declared its buffer full", func(s *fakePeer, in *half) {
			s.frame(s.message(1, 2, 1, in.Data, []byte("first"), in.Flags, flag(5)))
			s.frame(s.message(0, 0, 2, 0, nil, in.Flags, flag(5)), s.message(1, 2, 2, in.Data, []byte("later"), in.Flags, flag(5)))
		}, "", 0},
		{"two transactions that fill one buffer", func(s *fakePeer, in *half) {
			s.frame(s.message(0, 2, 1, in.Data, []byte("ab"), in.Flags, flag(4)), s.message(1, 2, 1, in.Data+2, []byte("cd"), in.Flags, flag(4)))
			s.frame(s.message(0, 2, 2, in.Data+2, []byte("cd"), in.Flags, flag(4)), s.message(1, 2, 2, in.Data, []byte("ab"), in.Flags, flag(4)))
		}, "abcd", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, &Options{Buffers: 2, Size: size}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				before := leaveSecret(t, s.n, h, made, secret)
				yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
				if yes.kind != letterAccept || yes.out.Data != before {
					t.Fatalf("%+v, want the memory at %#x", yes, before)
				}
				in := <-made
				c.send(s, &yes.out)
				s.wait(10 * time.Millisecond)
				if c.want != "" {
					m, err := in.In.Recv(soon(t))
					if err != nil || string(m.Bytes) != c.want {
						t.Fatalf("%q, %v; want %q", m.Bytes, err, c.want)
					}
					if c.count == 0 {
						if in.Err() != nil {
							t.Errorf("the link failed: %v", in.Err())
						}
						return
					}
				}
				if m, err := in.In.Recv(soon(t)); !errors.Is(err, ErrProtocol) {
					t.Errorf("%d bytes that no peer sent: %.20q, %v", len(m.Bytes), m.Bytes, err)
				}
			})
		})
	}
}

// leaveSecret lets an honest client send what the next one must not get, and returns where it is.
func leaveSecret(t *testing.T, n *net, h *Host, made <-chan *Link, secret []byte) (at uint32) {
	t.Helper()
	client := n.host(1, nil)
	out, err := dial(soon(t), client, uint16(h.ep.ID()), "port", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := <-made
	at = uint32(in.memory.At)
	for range 2 {
		if err := out.Out.Send(soon(t), 0, secret); err != nil {
			t.Fatal(err)
		}
		m, err := in.In.Recv(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		in.In.Release(m)
	}
	if err := errors.Join(out.Close(), in.Close()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	return at
}

// TestPlainMemoryIsCleared checks that the buffers of a plain link hold nothing of earlier messages:
// nothing says whether a peer of another kind wrote all of a message (attack A7, SECURITY.md).
func TestPlainMemoryIsCleared(t *testing.T) {
	secret := bytes.Repeat([]byte("password"), 12)
	withFakePeer(t, &Options{Buffers: 2, Size: 96}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		leaveSecret(t, s.n, h, made, secret)
		var conn *dgrdma.Conn
		for _, c := range h.ep.Conns() {
			if c.Name().ID == s.id {
				conn = c
			}
		}
		in, d, err := h.Offer(conn, 80, &Options{Buffers: 2, Size: 96})
		if err != nil {
			t.Fatal(err)
		}
		s.frame(s.word(d.Flags, uint32(PackFlag(96, 0, false))))
		s.wait(time.Millisecond)
		m, err := in.In.Recv(soon(t))
		if err != nil || !bytes.Equal(m.Bytes, make([]byte, 96)) {
			t.Errorf("%.20q, %v", m.Bytes, err)
		}
	})
}

// TestPlainFilledTwice checks that the link of a plain peer that fills a buffer before it was given
// back, by a word or by data, fails, and that what came before is received.
func TestPlainFilledTwice(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(s *fakePeer, at, flag uint32)
	}{
		{"word", func(s *fakePeer, at, flag uint32) { s.frame(s.word(at, flag)) }},
		{"data", func(s *fakePeer, at, flag uint32) { s.frame(s.write(at, put32(flag), ^uint32(0), ^uint32(0))) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				in, d, err := h.Offer(h.ep.Conns()[0], 80, &Options{Buffers: 2, Size: 8})
				if err != nil {
					t.Fatal(err)
				}
				c.send(s, d.Flags, uint32(PackFlag(4, 7, false)))
				c.send(s, d.Flags, uint32(PackFlag(8, 9, false)))
				s.wait(time.Millisecond)
				if m, err := in.In.Recv(soon(t)); err != nil || m.Opcode != 7 || len(m.Bytes) != 4 {
					t.Errorf("%+v, %v", m, err)
				}
				if _, err := in.In.Recv(soon(t)); !errors.Is(err, ErrProtocol) {
					t.Error(err)
				}
			})
		})
	}
}

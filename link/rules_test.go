package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
	"github.com/dgrdma/dgrdma/frame"
)

// TestCreditsOfAStranger: credits are believed for messages that were sent, at the
// word that is for them, and not otherwise.
func TestCreditsOfAStranger(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(s *stranger, at uint32)
		free int // of 4 buffers, 2 of them sent
		want error
	}{
		{"for both", func(s *stranger, at uint32) { s.frame(s.word(at, 2)) }, 4, nil},
		{"again", func(s *stranger, at uint32) { s.frame(s.word(at, 1), s.word(at, 1)) }, 3, nil},
		{"for one more than was sent", func(s *stranger, at uint32) { s.frame(s.word(at, 3)) }, 2, ErrProtocol},
		{"for billions", func(s *stranger, at uint32) { s.frame(s.word(at, 1<<31)) }, 2, ErrProtocol},
		{"taken back", func(s *stranger, at uint32) { s.frame(s.word(at, 2)); s.frame(s.word(at, 1)) }, 4, ErrProtocol},
		{"with data", func(s *stranger, at uint32) { s.frame(s.write(at, put32(2), at, 2)) }, 2, nil},
		{"as data", func(s *stranger, at uint32) { s.frame(s.write(at, put32(2), ^uint32(0), ^uint32(0))) }, 2, nil},
		{"at the end of the word", func(s *stranger, at uint32) { s.frame(s.word(at+4, 2)) }, 2, nil},
		{"before the word", func(s *stranger, at uint32) { s.frame(s.word(at-4, 2)) }, 2, nil},
		{"within the word", func(s *stranger, at uint32) { s.frame(s.word(at+1, 2)) }, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			withStranger(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
				credit := s.dial(1, "port", toDialer, half{}, buffers(4, 8)).back.Credit
				both := map[*Link]uint32{<-made: credit}
				dialed, err := s.dialed(soon(t), nil, func(open letter) letter {
					credit = open.out.Credit
					return letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, out: buffers(4, 8)}
				})
				if err != nil {
					t.Fatal(err)
				}
				both[dialed] = credit
				for out, credit := range both {
					for range 2 {
						if err := out.Out.Send(soon(t), 0, []byte("x")); err != nil {
							t.Fatal(err)
						}
					}
					s.wait(20 * time.Millisecond)
					c.send(s, credit)
					s.wait(20 * time.Millisecond)
					if got := out.Stats().Out.Free; got != c.free || !errors.Is(out.Err(), c.want) {
						t.Errorf("%d buffers are free, want %d; %v, want %v", got, c.free, out.Err(), c.want)
					}
				}
			})
		})
	}
}

// TestHalvesOfAStranger: memory that cannot be is not written to.
func TestHalvesOfAStranger(t *testing.T) {
	fits := half{Buffers: 4, Size: 16, Pitch: 32, Data: 0, Flags: 1 << 16, FlagPitch: 4}
	with := func(change func(*half)) half { h := fits; change(&h); return h }
	for _, c := range []struct {
		name string
		h    half
		want bool
	}{
		{"fits", fits, true},
		{"no buffers", with(func(h *half) { h.Buffers = 0 }), false},
		{"too many", with(func(h *half) { h.Buffers, h.Size, h.Pitch = mostBuffers+1, 1, 1 }), false},
		{"most", with(func(h *half) { h.Buffers, h.Size, h.Pitch = mostBuffers, 1, 1 }), true},
		{"no bytes", with(func(h *half) { h.Size = 0 }), false},
		{"too long", with(func(h *half) { h.Size, h.Pitch = mostSize+1, mostSize+1 }), false},
		{"over each other", with(func(h *half) { h.Pitch = 15 }), false},
		{"far from each other", with(func(h *half) { h.Pitch = 1 << 22 }), false},
		{"to the top", with(func(h *half) { h.Data = -4 * 32 & 0xFFFFFFFF }), true},
		{"past the top", with(func(h *half) { h.Data = 1<<32 - 127 }), false},
		{"flags to the top", with(func(h *half) { h.Flags = 1<<32 - 16 }), true},
		{"flags past the top", with(func(h *half) { h.Flags = 1<<32 - 15 }), false},
		{"flags over each other", with(func(h *half) { h.FlagPitch = 3 }), false},
		{"flags as far as can be", with(func(h *half) { h.FlagPitch = 1<<16 - 1 }), true},
		{"flags far from each other", with(func(h *half) { h.FlagPitch = 1 << 16 }), false},
		{"gigabytes", with(func(h *half) { h.Buffers, h.Size, h.Pitch = 1024, 1<<20+1, 1<<21 }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			withStranger(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
				yes := s.dial(1, "port", toDialer, half{}, c.h)
				if got := yes.kind == letterAccept; got != c.want {
					t.Fatalf("%+v", yes)
				}
				// The same, said by a listener.
				_, err := s.dialed(soon(t), nil, func(open letter) letter {
					return letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, out: c.h}
				})
				if (err == nil) != c.want || err != nil && !errors.Is(err, ErrProtocol) {
					t.Errorf("dialed: %v", err)
				}
			})
		})
	}
}

// TestAdmitEveryLength: at the edges of a link's memory,
// whatever length a message has, nothing is written outside and nothing panics.
func TestAdmitEveryLength(t *testing.T) {
	withStranger(t, &Options{Directions: Both, Buffers: 2, Size: 64}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener|toDialer, half{Credit: 1 << 15}, buffers(2, 64))
		l := <-made
		in := yes.out
		p := l.peer
		end := in.Data + uint32(l.memory.N)
		plain, _, err := h.Offer(p.conn, 80, &Options{Buffers: 2, Size: 64})
		if err != nil {
			t.Fatal(err)
		}
		at := uint32(plain.memory.At)
		for _, x := range []*Link{l, plain} {
			owns := func(at uint64) bool { owner, _ := p.grants.Find(at); return owner == x }
			if m := x.memory; !owns(m.At) || !owns(m.At+m.N-1) || owns(m.At+m.N) || owns(m.At-1) {
				t.Errorf("memory at %#x, %d bytes: more or less is granted", m.At, m.N)
			}
		}
		places := []uint32{0, letterBell, letterBox, letterBox + boxSize - 1, letterBox + boxSize, reserved - 1, in.Data, in.Data + 63, in.Data + 64,
			in.Flags - 1, in.Flags, in.Flags + 4, yes.back.Credit, end - 1, end, at, at + 127, at + 128, at + 128 + 80, at + uint32(plain.memory.N) - 1, 1<<32 - 1}
		words := append([]uint32{in.Flags + 8, in.Flags + 1, at + 128, at + 208, at + 288}, places...)
		memory := h.block.Bytes(space.Span{At: reserved, N: h.block.Size()})
		before := bytes.Clone(memory)
		for _, addr := range places {
			for _, n := range []uint16{0, 1, 3, 4, 5, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 65535} {
				for _, word := range words {
					m := frame.Message{Txn: s.txn, Count: 1, Index: 1, Addr: addr, Len: n, CompletionAddr: word, CompletionValue: 1}
					dst, err := p.Admit(s.id, &m)
					if err == nil && len(dst) != int(n) {
						t.Fatalf("%d bytes for %d at %#x", len(dst), n, addr)
					}
					if err == nil && n > 0 && int(addr) >= reserved && n != 4 && &dst[0] != &memory[int(addr)-reserved] {
						t.Fatalf("%#x is somewhere else", addr)
					}
					owned := word >= in.Flags && word < in.Flags+8 && addr >= in.Data && uint64(addr)+uint64(n) <= uint64(in.Data)+128 ||
						(word == at+128 || word == at+208 || word == 1<<32-1) &&
							(addr >= at && uint64(addr)+uint64(n) <= uint64(at)+128 || n == 4 && (addr == at+128 || addr == at+208))
					isWord := word == in.Flags || word == in.Flags+4 || word == yes.back.Credit
					if err == nil && uint64(word) >= l.memory.At && uint64(word) < l.memory.At+l.memory.N && !isWord {
						t.Fatalf("%d bytes are admitted with a word at %#x, where none is", n, word)
					}
					if err == nil && n > 0 && !owned {
						t.Fatalf("%d bytes at %#x are admitted with a word at %#x", n, addr, word)
					}
				}
			}
		}
		if string(before) != string(memory) {
			t.Error("admitting changed memory")
		}
	})
}

// TestDeadPeerIsClosed: what a peer that was given up still sends is not let in, by
// closing the connection to it.
func TestDeadPeerIsClosed(t *testing.T) {
	withStranger(t, &Options{Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		l := <-made
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		s.wait(2 * h.ep.GiveUp())
		if !errors.Is(l.Err(), dgrdma.ErrPeerDown) || l.Peer().Err() == nil {
			t.Fatalf("%v, and the connection: %v", l.Err(), l.Peer().Err())
		}
		for _, c := range h.ep.Conns() {
			if c == l.Peer() {
				t.Error("the connection to a dead peer is still there")
			}
		}
		l.Close()
		s.frame(s.write(yes.out.Data, []byte("x"), yes.out.Flags, uint32(PackFlag(1, 0, false))))
		s.wait(time.Millisecond)
		nothingLeft(t, h)
	})
}

// TestEndWaitsForWords: the memory of a link that is closed, and its closing letter,
// wait for what is under way.
func TestEndWaitsForWords(t *testing.T) {
	withStranger(t, &Options{Directions: Both, Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener|toDialer, half{Credit: 1 << 15}, buffers(4, 8))
		l := <-made
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		s.frame(s.write(yes.out.Data, []byte("x"), yes.out.Flags, uint32(PackFlag(1, 0, false))))
		m, err := l.In.Recv(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		l.In.Release(m) // a credit is under way
		l.Out.Send(soon(t), 0, []byte("message"))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		l.CloseContext(ctx)
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if st := h.Stats(); len(st.Links) != 1 || st.Free == st.Memory {
			t.Error("memory was given back while words of the link are under way")
		}
		for _, m := range s.mail() {
			if m.kind == letterClose {
				t.Error("the peer was told that nothing comes any more, and something is under way")
			}
		}
		s.mu.Lock()
		s.mute = false
		s.mu.Unlock()
		s.wait(time.Second)
		closed := 0
		for _, m := range s.mail() {
			if m.kind == letterClose && m.from == yes.from {
				closed++
			}
		}
		if closed != 1 {
			t.Errorf("%d closing letters", closed)
		}
		nothingLeft(t, h)
	})
}

// TestEachCreditOnce: a plain buffer that is given back again before the peer has
// acknowledged the word for the time before is told of twice.
func TestEachCreditOnce(t *testing.T) {
	withStranger(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		in, d, err := h.Offer(h.ep.Conns()[0], 80, &Options{Buffers: 1, Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Connect(EmptyFlags{Addr: 512, Pitch: 4}); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		for k := range uint8(2) {
			s.frame(s.word(d.Flags, uint32(PackFlag(0, k, false))))
			m, err := in.In.Recv(soon(t))
			if err != nil || m.Opcode != k {
				t.Fatal(m, err)
			}
			in.In.Release(m)
		}
		s.mu.Lock()
		s.mute, s.count = false, 0
		s.mu.Unlock()
		s.wait(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.count != 2 || s.words[512] != 1 { // the first one again, and the second
			t.Errorf("%d words came, want two", s.count)
		}
	})
}

// TestEndWithoutTheRest: a peer that closes, and whose end of file came but not all
// before it, closed too early: nobody waits for the rest.
func TestEndWithoutTheRest(t *testing.T) {
	withStranger(t, &Options{Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		s.frame(s.write(yes.out.Data, []byte("x"), yes.out.Flags, uint32(PackFlag(1, 0, false))))
		s.frame(s.word(yes.out.Flags+8, uint32(PackFlag(0, 0, true))))
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if m, err := in.In.Recv(soon(t)); err != nil || string(m.Bytes) != "x" {
			t.Error(m, err)
		}
		if _, err := in.In.Recv(soon(t)); !errors.Is(err, ErrPeerClosed) {
			t.Errorf("a message that never comes: %v", err)
		}
	})
}

// TestTwoEnds: what comes behind end of file is not received, be it data or another
// end.
func TestTwoEnds(t *testing.T) {
	withStranger(t, &Options{Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		for i, f := range []Flag{PackFlag(0, 0, true), PackFlag(1, 0, false), PackFlag(0, 0, true)} {
			b := make([]byte, f.Length())
			s.frame(s.write(yes.out.Data+uint32(i)*yes.out.Pitch, b, yes.out.Flags+4*uint32(i), uint32(f)))
		}
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		for range 2 {
			if m, err := in.In.Recv(soon(t)); err != io.EOF {
				t.Errorf("behind the end: %q, %v", m.Bytes, err)
			}
		}
		in.Close()
		s.wait(time.Second)
		nothingLeft(t, h)
	})
}

// TestNextLifeHasNothing: what a peer was granted in one life it may not write in the
// next, also while the application is not through with the link.
func TestNextLifeHasNothing(t *testing.T) {
	withStranger(t, &Options{Directions: Both, Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener|toDialer, half{Credit: 1 << 15}, buffers(4, 8))
		l := <-made
		fill := func(i uint32) {
			s.frame(s.write(yes.out.Data+i*yes.out.Pitch, []byte("data"), yes.out.Flags+4*i, uint32(PackFlag(4, 0, false))))
		}
		fill(0)
		if err := l.Out.Send(soon(t), 0, nil); err != nil {
			t.Fatal(err)
		}
		s.wait(20 * time.Millisecond)
		s.restart()
		fill(1)
		s.frame(s.word(yes.back.Credit, 1))
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1, text: "not mine any more"})
		if m, err := l.In.Recv(soon(t)); err != nil || string(m.Bytes) != "data" {
			t.Errorf("%q, %v", m.Bytes, err)
		}
		if m, err := l.In.Recv(soon(t)); !errors.Is(err, dgrdma.ErrPeerRestarted) {
			t.Errorf("of the next life: %q, %v", m.Bytes, err)
		}
		if st := l.Stats().Out; st.Filled != 1 {
			t.Errorf("a credit of the next life counts: %+v", *st)
		}
		l.Close()
		s.wait(time.Second)
		nothingLeft(t, h)
	})
}

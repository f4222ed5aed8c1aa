package link

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
	"github.com/dgrdma/dgrdma/frame"
)

// TestAdmitEveryLength checks that at the edges of a link's memory, whatever length a message has,
// nothing is written outside and nothing panics.
func TestAdmitEveryLength(t *testing.T) {
	withFakePeer(t, &Options{Directions: Both, Buffers: 2, Size: 64}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
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
		places := []uint32{0, letterBells, letterBox, letterBox + boxSize - 1, letterBox + boxSize, reserved - 1, in.Data, in.Data + 63, in.Data + 64,
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

// TestHalvesOfAFakePeer checks that impossible memory is not written to.
func TestHalvesOfAFakePeer(t *testing.T) {
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
			withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
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

// TestNextLifeHasNothing checks that a peer may not write in one life what it was granted in the one
// before, also while the application has not ended the link.
func TestNextLifeHasNothing(t *testing.T) {
	withFakePeer(t, &Options{Directions: Both, Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
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

// TestFlagsOfOtherKinds checks that a flag of a peer of another kind counts if it says full. One that
// says that the message was cut may state more bytes than there is room for. Data may reach the last
// byte of the last buffer.
func TestFlagsOfOtherKinds(t *testing.T) {
	const none = ^uint32(0)
	long := strings.Repeat("abcdefgh", 8)
	for _, c := range []struct {
		name      string
		write     func(s *fakePeer, in *Buffers)
		want      string
		truncated bool
	}{
		{"not full, then full", func(s *fakePeer, in *Buffers) {
			for _, v := range []uint32{uint32(PackFlag(8, 9, true)) &^ flagFull, 0} {
				s.frame(s.word(in.Flags, v))
				s.frame(s.write(in.Flags, put32(v), none, none))
			}
			s.frame(s.write(in.Data, []byte("data"), in.Flags, uint32(PackFlag(4, 0, false))))
		}, "data", false},
		{"cut", func(s *fakePeer, in *Buffers) {
			s.frame(s.write(in.Data, []byte(long), in.Flags, uint32(PackFlag(100, 0, false))|flagTruncated))
		}, long, true},
		{"cut and short", func(s *fakePeer, in *Buffers) {
			s.frame(s.write(in.Data, []byte("data"), in.Flags, uint32(PackFlag(4, 0, false))|flagTruncated))
		}, "data", true},
		{"past the last buffer, then to its end", func(s *fakePeer, in *Buffers) {
			s.frame(s.write(in.Data, []byte("data"), in.Flags, uint32(PackFlag(4, 0, false))))
			s.frame(s.write(in.Data+64, []byte(long+"x"), none, none))
			s.frame(s.write(in.Data+64, []byte(strings.ToUpper(long)), in.Flags+4, uint32(PackFlag(64, 0, false))))
		}, "data" + strings.ToUpper(long), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				l, d, err := h.Offer(h.ep.Conns()[0], 4, &Options{Buffers: 2, Size: 64})
				if err != nil {
					t.Fatal(err)
				}
				if d.Pitch != 64 {
					t.Fatalf("buffers every %d bytes", d.Pitch)
				}
				c.write(s, &d)
				s.wait(time.Millisecond)
				got := ""
				for len(got) < len(c.want) {
					m, err := l.In.Recv(soon(t))
					if err != nil {
						t.Fatal(err)
					}
					if got += string(m.Bytes); m.Truncated != c.truncated || m.Opcode != 0 || m.EOF {
						t.Errorf("%+v", m)
					}
				}
				if got != c.want || l.Err() != nil {
					t.Errorf("%q, %v; want %q", got, l.Err(), c.want)
				}
			})
		})
	}
}

// TestWordsLapByLap checks that a word gives its buffer back once, each time that it was filled.
func TestWordsLapByLap(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		const n = 4
		l, flags, err := h.Attach(h.ep.Conns()[0], Buffers{N: n, Size: 8, Data: 1 << 20, Pitch: 8, Flags: 1 << 16, FlagPitch: 4}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for range n {
				if err := l.Out.Send(soon(t), 0, nil); err != nil {
					t.Fatal(err)
				}
			}
			for i, free := range []int{0, 2, 2, 4} { // buffers 1 and 3 come back before those before them
				s.frame(s.word(flags.Addr+4*(uint32(i)^1), 1))
				s.wait(20 * time.Millisecond)
				if got := l.Stats().Out.Free; got != free {
					t.Errorf("%d buffers are free after %d words, want %d", got, i+1, free)
				}
			}
		}
	})
}

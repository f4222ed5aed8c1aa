package link

import (
	"strings"
	"testing"
	"time"
)

// TestFlagsOfOtherKinds: a flag of a peer of another kind counts if it says full; one
// that says that the message was cut may state more bytes than there is room for; and
// data may reach the last byte of the last buffer.
func TestFlagsOfOtherKinds(t *testing.T) {
	const none = ^uint32(0)
	long := strings.Repeat("abcdefgh", 8)
	for _, c := range []struct {
		name      string
		write     func(s *stranger, in *Buffers)
		want      string
		truncated bool
	}{
		{"not full, then full", func(s *stranger, in *Buffers) {
			for _, v := range []uint32{uint32(PackFlag(8, 9, true)) &^ flagFull, 0} {
				s.frame(s.word(in.Flags, v))
				s.frame(s.write(in.Flags, put32(v), none, none))
			}
			s.frame(s.write(in.Data, []byte("data"), in.Flags, uint32(PackFlag(4, 0, false))))
		}, "data", false},
		{"cut", func(s *stranger, in *Buffers) {
			s.frame(s.write(in.Data, []byte(long), in.Flags, uint32(PackFlag(100, 0, false))|flagTruncated))
		}, long, true},
		{"cut and short", func(s *stranger, in *Buffers) {
			s.frame(s.write(in.Data, []byte("data"), in.Flags, uint32(PackFlag(4, 0, false))|flagTruncated))
		}, "data", true},
		{"past the last buffer, then to its end", func(s *stranger, in *Buffers) {
			s.frame(s.write(in.Data, []byte("data"), in.Flags, uint32(PackFlag(4, 0, false))))
			s.frame(s.write(in.Data+64, []byte(long+"x"), none, none))
			s.frame(s.write(in.Data+64, []byte(strings.ToUpper(long)), in.Flags+4, uint32(PackFlag(64, 0, false))))
		}, "data" + strings.ToUpper(long), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			withStranger(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
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

// TestWordsLapByLap: a word gives its buffer back once, each time that it was filled.
func TestWordsLapByLap(t *testing.T) {
	withStranger(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
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

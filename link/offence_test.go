package link

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestOffenceOfAPeer: the error of a link whose peer broke the rules says which one, and
// of which buffer.
func TestOffenceOfAPeer(t *testing.T) {
	flag := func(n int) uint32 { return uint32(PackFlag(n, 1, false)) }
	for _, c := range []struct {
		says string
		send func(s *stranger, in *half)
	}{
		{"buffer 1 was filled before it was given back", func(s *stranger, in *half) {
			s.frame(s.write(in.Data+in.Pitch, []byte("first"), in.Flags+4, flag(5)))
			s.frame(s.write(in.Data+in.Pitch, []byte("later"), in.Flags+4, flag(5)))
		}},
		{"buffer 1 is filled by two transactions", func(s *stranger, in *half) {
			s.frame(s.message(0, 2, 1, in.Data+in.Pitch, []byte("ab"), in.Flags+4, flag(4)), s.message(1, 2, 1, in.Data+in.Pitch+2, []byte("cd"), in.Flags+4, flag(4)))
		}},
		{"buffer 0 gets data that its transaction does not count", func(s *stranger, in *half) {
			s.frame(s.message(0, 0, 1, in.Data, []byte("first"), in.Flags, flag(5)))
		}},
		{"buffer 0 completes with data that is not in it, at 0x", func(s *stranger, in *half) {
			s.frame(s.write(in.Data+in.Pitch, []byte("x"), in.Flags, flag(1)))
		}},
		{"buffer 0 was declared full with 2 bytes, and others came", func(s *stranger, in *half) {
			s.frame(s.write(in.Data, []byte("xyz"), in.Flags, flag(2)))
		}},
		{"a message of 97 bytes in a buffer of 96", func(s *stranger, in *half) {
			s.frame(s.word(in.Flags, flag(97)))
		}},
	} {
		t.Run(c.says, func(t *testing.T) {
			withStranger(t, &Options{Buffers: 2, Size: 96}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
				yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
				in := <-made
				c.send(s, &yes.out)
				s.wait(10 * time.Millisecond)
				if err := in.Err(); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), c.says) {
					t.Error(err)
				}
			})
		})
	}
}

package inspect

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// TestWorkOfLeapingIDs checks that the work for a frame has a bound, wherever its id leaps, its sender begins again or a record says that frames are hidden (F8).
func TestWorkOfLeapingIDs(t *testing.T) {
	for name, id := range map[string]func(i int) (id int, segments int){
		"by 4000":                   func(i int) (int, int) { return 4000 * i, 0 },
		"by 129":                    func(i int) (int, int) { return 129 * i, 0 },
		"between two places":        func(i int) (int, int) { return 30_000*(i/3%2) + i%3, 0 },
		"three, and one far behind": func(i int) (int, int) { return 20_000*(i/4) + []int{1000, 1001, 1002, 1}[i%4], 0 },
		"back to the first ids":     func(i int) (int, int) { return 5000*(i%2) + i%4 + 1, 0 },
		"past many hidden ones":     func(i int) (int, int) { return 4096 * i, 4096 },
		"hidden ones at one place":  func(i int) (int, int) { return i, 4096 },
	} {
		looked := func(frames int) (n int) {
			a := New()
			for i := range frames {
				seq, segments := id(i)
				b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize)
				(&frame.Header{Src: 1, Dst: 2, Seq: frame.Seq(seq), Flags: frame.FlagMessages}).Put(b)
				(&frame.Message{Txn: uint32(i), Count: 1, Index: 1, Addr: uint32(i)}).Put(b[frame.HeaderSize:])
				p := &captured.Packet{Packet: capture.Packet{Record: i + 1, Time: time.Unix(1, int64(i)*1000), Data: b, Length: len(b)}}
				p.Src.MAC, p.Dst.MAC = [6]byte{2, 1}, [6]byte{2, 2}
				if segments > 0 {
					p.Segment, p.Segments = 1, segments
				}
				a.Add(p)
			}
			for _, f := range a.order {
				n += f.ids.looked
			}
			return n
		}
		const frames = 3000
		a, b := looked(frames), looked(2*frames)
		if most := 2*maxJump + 3*earnedJump*frames; a > most || b > most+3*earnedJump*frames {
			t.Errorf("%s: %d frames looked at %d slots, and twice as many at %d: want %d for each at most", name, frames, a, b, 3*earnedJump)
		}
	}
}

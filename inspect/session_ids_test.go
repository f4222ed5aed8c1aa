package inspect

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// TestWorkOfSessions checks that the work for a frame of a session has a bound, whatever its ACK claims, wherever its id leaps, and however
// often sessions follow each other.
func TestWorkOfSessions(t *testing.T) {
	type step struct {
		id, tag, upTo, first uint32
		count                int
	}
	for name, of := range map[string]func(i uint32) step{
		"all of the window, again and again": func(i uint32) step { return step{id: i, first: i % 3, count: 65535} },
		"ranges that begin elsewhere":        func(i uint32) step { return step{id: i, upTo: i % 7, first: i%7 + 2 + i%5, count: 30_000} },
		"up to what was not sent":            func(i uint32) step { return step{id: i, upTo: i + 4000} },
		"up to one and another":              func(i uint32) step { return step{id: i, upTo: 100 + 10*i*(i%2)} },
		"ids that leap":                      func(i uint32) step { return step{id: 4000 * i, upTo: 4000 * i} },
		"other sessions":                     func(i uint32) step { return step{id: 4000 * (i % 2), tag: i / 2, upTo: 4000} },
	} {
		looked := func(frames uint32) (n int) {
			a := New()
			b := make([]byte, 256)
			add := func(b []byte, from byte) {
				p := &captured.Packet{Packet: capture.Packet{Record: a.capture.Frames + 1, Time: time.Unix(1, int64(a.capture.Frames)*1000), Data: b, Length: len(b)}}
				p.Src.MAC, p.Dst.MAC = [6]byte{2, from}, [6]byte{2, 3 - from}
				a.Add(p)
			}
			for i := range frames {
				s := of(i)
				for range 2 { // a tag is believed the second time
					h := frame.SessionHeader{Src: 1, Dst: 2, ID: s.id, Tag: s.tag}
					h.Put(b)
					(&frame.Message{Txn: i, Count: 1, Addr: i}).Put(b[frame.SessionHeaderSize:])
					add(b[:frame.SessionHeaderSize+frame.MessageHeaderSize], 1)
					h = frame.SessionHeader{Src: 2, Dst: 1, ID: s.id, Tag: s.tag, Ack: s.upTo}
					var ranges []frame.Range
					if s.count > 0 {
						ranges = []frame.Range{{First: s.upTo + max(2, s.first), Count: s.count}}
					}
					add(b[:frame.PutSessionAckFrame(b, &h, false, 0, 0, ranges)], 2)
				}
			}
			for _, f := range a.order {
				n += f.ids.looked
			}
			return n
		}
		const frames = 3000
		const each = 4 * (earnedLooks + 3*earnedJump)
		a, b := looked(frames), looked(2*frames)
		if most := mostLooks + 2*maxJump + each*frames; a > most || b > most+each*frames {
			t.Errorf("%s: %d frames looked at %d slots, and twice as many at %d: want %d for each at most", name, 4*frames, a, b, each/4)
		}
	}
}

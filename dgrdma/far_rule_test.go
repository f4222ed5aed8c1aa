package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// farStep is a frame of a foreign peer.
type farStep struct {
	after time.Duration // the one before
	id    int
	txn   int   // after the first one of the table
	what  uint8 // it is; 0: a transaction of one message
	taken bool  // its data
}

const (
	alone = 1 + iota // no data
	part1            // the first of two messages
	part2            // and the other one
)

// TestFarAhead checks that frames further ahead than the profile's Ahead are taken or refused by
// the rule: the network may have held them back for half of all ids, or much before them may be
// lost.
func TestFarAhead(t *testing.T) {
	dg1, legacy, anywhere := OpenCPI(false), Legacy(false), OpenCPI(false)
	anywhere.Ahead = 0
	next := OpenCPI(false)
	next.Ahead = 1
	const far, ms = 258, time.Millisecond // 257 after the first id, one more than Ahead
	for _, x := range []struct {
		name  string
		prof  Profile
		txn   uint32
		steps []farStep
	}{
		{"within reach", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, 257, -5, 0, true}}},
		{"any distance", anywhere, life, []farStep{{0, 1, 0, 0, true}, {0, 32000, -5, 0, true}}},
		{"but the next", next, life, []farStep{{0, 1, 0, 0, true}, {0, 3, -5, 0, false}, {0, 4, -6, 0, false}}},
		{"younger", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, far, 5, 0, false}, {0, far + 1, 6, 0, true}}},
		{"younger by one", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, far, 1, 0, false}, {0, far + 1, 1, 0, true}}},
		{"older", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, far, -5, 0, false}, {0, far + 1, -6, 0, false}, {0, far + 1, -6, 0, false}}},
		{"a second later", dg1, life, []farStep{{0, 1, 0, 0, true}, {500 * ms, far, -5, 0, false}, {500*ms - 1, far + 1, -6, 0, false}, {1, far + 2, -7, 0, true}}},
		{"of the youngest", dg1, life, []farStep{{0, 1, 0, part1, true}, {0, far, 0, part2, false}, {0, far + 1, 0, part2, false}, {0, far + 1, 0, part2, true}}},
		{"of the youngest, which is over", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, far, 0, 0, false}, {0, far + 1, 0, 0, false}, {0, far + 1, 0, 0, true}}},
		{"of the youngest but one, open", dg1, life, []farStep{{0, 1, 0, part1, true}, {0, 2, 3, 0, true},
			{0, far + 1, 0, part2, false}, {0, far + 2, 0, part2, false}, {0, far + 2, 0, part2, true}}},
		{"behind the youngest, out of order", dg1, life, []farStep{{0, 1, 5, 0, true}, {0, 2, 3, 0, true}, {0, far + 1, 4, 0, false}, {0, far + 2, 4, 0, false}}},
		{"not the first is the youngest", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, 2, 5, 0, true}, {0, far + 1, 3, 0, false}, {0, far + 2, 4, 0, false}}},
		{"the youngest by one", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, 2, 1, 0, true}, {0, far + 1, 1, 0, false}, {0, far + 2, 1, 0, false}}},
		{"transactions from 2^31 on", dg1, 1<<31 + 5, []farStep{{0, 1, 0, 0, true}, {0, far, 1, 0, false}, {0, far + 1, 2, 0, true}}},
		{"id 0", dg1, life, []farStep{{0, 65000, 0, part1, true}, {0, 65001, 3, 0, true}, {0, 65537, 0, alone, false}, {0, 65536, 0, part2, false}}},
		{"ids of transactions are kept", legacy, life, []farStep{{0, 1, 0, 0, true}, {0, far, 5, 0, false}, {0, far + 1, 6, 0, false}, {0, far + 1, 6, 0, true}}},
		{"witnessed by an acknowledgement", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, far, 0, alone, false}, {0, far + 1, 5, 0, true}}},
		{"two acknowledgements", dg1, life, []farStep{{0, 1, 0, 0, true}, {0, 32000, 0, alone, false}, {0, 32001, 0, alone, false}, {0, 2, 1, 0, true}}},
		{"two acknowledgements, ids kept", legacy, life, []farStep{{0, 1, 0, 0, true}, {0, 32000, 0, alone, false}, {0, 32001, 0, alone, false}, {0, 2, 1, 0, false}}},
		{"two acknowledgements, later", dg1, life, []farStep{{0, 1, 0, 0, true}, {time.Second, 32000, 0, alone, false}, {0, 32001, 0, alone, false}, {0, 2, 1, 0, false}}},
		{"one acknowledgement twice, later", dg1, life, []farStep{{0, 1, 0, 0, true}, {time.Second, 32000, 0, alone, false}, {0, 32000, 0, alone, false}, {0, 2, 1, 0, true}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			withFakePeer(t, Config{}, x.prof, func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				refused := uint64(0)
				for i, step := range x.steps {
					s.recv(step.after)
					before := c.Stats().DataPlaced
					txn, id := x.txn+uint32(step.txn), frame.Seq(step.id)
					switch step.what {
					case alone:
						s.send(id)
					case part1, part2:
						s.send(id, data(txn, 2, uint16(step.what-part1)+1, 64, pattern(1, 8)))
					default:
						s.send(id, data(txn, 1, 1, 64, pattern(1, 8)))
					}
					s.recv(0)
					if taken := c.Stats().DataPlaced > before; taken != step.taken {
						t.Fatalf("frame %d is taken: %v; refused %v", i, taken, c.Stats().Refused)
					}
					if !step.taken && step.what != alone {
						refused++
					}
				}
				if n := c.Stats().RefusedBy(RefusedForeign); n != refused {
					t.Errorf("%d refused as foreign, want %d", n, refused)
				}
			})
		})
	}
}

// TestHeldBackAckIsNoGap checks that an acknowledgement that the network held back does not have
// the ids before it told as missing, of a peer that never sends again.
func TestHeldBackAckIsNoGap(t *testing.T) {
	missed := 0
	cfg := Config{OnEvent: func(ev Event) {
		if ev.Kind == FramesMissed {
			missed += ev.Frames
		}
	}}
	withFakePeer(t, cfg, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(1, data(life, 1, 1, 64, pattern(1, 16)))
		s.recv(2 * time.Second)
		s.send(20000)
		s.recv(time.Minute)
		s.send(2, data(life+1, 1, 1, 64, pattern(1, 16)))
		s.recv(time.Minute)
		if missed != 0 || c.Stats().Completions != 2 {
			t.Errorf("%d frames are missing; %d completions", missed, c.Stats().Completions)
		}
	})
}

package foreign_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
)

// bare is a message that only completes.
func bare(txn uint32, count, index uint16) frame.Message {
	return frame.Message{Txn: txn, Count: count, Index: index, CompletionValue: 1}
}

// place has a frame with one message come that is new, counts the message, and ends the batch.
func (p *peer) place(id frame.Seq, m frame.Message) {
	p.Helper()
	f := &frame.Frame{Header: frame.Header{Seq: id, Flags: frame.FlagMessages}}
	if v := p.Judge(p.now, f, &m, false); v != foreign.New {
		p.Fatalf("frame %d is %d", id, v)
	}
	p.Begins(&m, id)
	if m.Count > 1 {
		in := p.open.Find(m.Txn)
		if in == nil {
			in = p.open.Add(&m)
		}
		p.Mark(in, &m, id)
		if in.Count(&m); in.Got == m.Count {
			p.open.Remove(in)
		}
	}
	p.Applied(p.now, f)
	over := p.Overcounted()
	for in := over.Next(); in != nil; in = over.Next() {
		p.open.Remove(in)
	}
}

// TestNoFrameIsLookedAtTwice checks that what waits for a frame that is missing goes on from there.
func TestNoFrameIsLookedAtTwice(t *testing.T) {
	p := newPeer(t, foreign.FPGA())
	p.place(5, bare(1, 3, 1))
	p.place(6, bare(1, 3, 2))
	p.place(9, bare(2, 1, 1))
	for _, x := range []struct{ came, next frame.Seq }{{7, 8}, {10, 8}} {
		p.place(x.came, bare(3, 1, 1))
		if in := p.open.Find(1); in == nil || in.Overcount.First != x.next {
			t.Fatalf("after frame %d: %+v, want to wait for frame %d", x.came, in, x.next)
		}
	}
	p.place(8, bare(3, 1, 1))
	if n := p.open.Len(); n != 0 {
		t.Errorf("%d transactions are open, all frames came", n)
	}
}

// TestWhatEndsAnOverCountedTransaction checks what ends a transaction: of the hardware engine's, that one message is
// missing, its data is whole, and all frames came from its first message to a younger
// transaction (quirk F16); of others nothing but their last message.
func TestWhatEndsAnOverCountedTransaction(t *testing.T) {
	type came struct {
		seq frame.Seq
		m   frame.Message
	}
	// part is the message with that index of transaction txn, of three that are announced:
	// 16 bytes in their place.
	part := func(txn uint32, index uint16) frame.Message {
		m := bare(txn, 3, index)
		m.Addr, m.Len = 64*txn+16*uint32(index), 16
		return m
	}
	alone := func(txn uint32) frame.Message { return bare(txn, 1, 1) }
	two := []came{{5, part(1, 1)}, {6, part(1, 2)}}
	for _, x := range []struct {
		name   string
		kind   foreign.Profile
		frames []came
		open   int
		then   []came // all are over behind these
	}{
		{"all frames came", foreign.FPGA(), append(two, came{7, alone(2)}), 0, nil},
		{"nothing younger began", foreign.FPGA(), two, 1, []came{{7, alone(2)}}},
		{"only an older one began", foreign.FPGA(), append(two, came{7, alone(0)}), 1, []came{{8, alone(2)}}},
		{"a younger one came first", foreign.FPGA(), append([]came{{7, alone(2)}}, two...), 0, nil},
		{"a frame between its messages is missing", foreign.FPGA(), []came{{5, part(1, 1)}, {7, part(1, 2)}, {8, alone(2)}}, 1, []came{{6, alone(3)}}},
		{"a frame before its messages is missing", foreign.FPGA(), []came{{3, alone(0)}, {5, part(1, 1)}, {6, part(1, 2)}, {7, alone(2)}}, 0, nil},
		{"a frame before the younger one is missing", foreign.FPGA(), append(two, came{8, alone(2)}), 1, []came{{7, alone(3)}}},
		{"a frame behind the younger one is missing", foreign.FPGA(), []came{{5, part(1, 1)}, {7, alone(2)}, {9, alone(3)}, {6, part(1, 2)}}, 0, nil},
		{"its first message is missing", foreign.FPGA(), []came{{65535, alone(10)}, {0, alone(0)}, {1, alone(0)}, {2, alone(0)}, {3, part(11, 2)}, {4, part(11, 3)}, {5, alone(12)}}, 1,
			[]came{{6, part(11, 1)}}},
		{"two messages are missing", foreign.FPGA(), []came{{5, part(1, 1)}, {6, alone(2)}}, 1, []came{{7, part(1, 2)}}},
		{"its data has a hole", foreign.FPGA(), []came{{5, part(1, 1)}, {6, part(1, 3)}, {7, alone(2)}}, 1, []came{{8, part(1, 2)}}},
		{"one began before another, that is over", foreign.FPGA(),
			[]came{{5, part(1, 1)}, {8, alone(0)}, {9, alone(0)}, {10, part(2, 1)}, {11, part(2, 2)}, {7, part(1, 2)}, {12, alone(3)}}, 1,
			[]came{{6, alone(4)}}},
		{"one began behind another, that is over", foreign.FPGA(),
			[]came{{4, part(1, 1)}, {6, part(1, 2)}, {7, part(2, 1)}, {9, part(2, 2)}, {10, alone(3)}, {5, alone(0)}}, 1,
			[]came{{8, alone(4)}}},
		{"of one that announces what it sends", foreign.OpenCPI(false), append([]came{{7, alone(2)}}, two...), 1, []came{{8, part(1, 3)}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPeer(t, x.kind)
			for _, y := range []struct {
				frames []came
				open   int
			}{{x.frames, x.open}, {x.then, 0}} {
				for _, z := range y.frames {
					p.place(z.seq, z.m)
				}
				if n := p.open.Len(); n != y.open {
					t.Errorf("%d transactions are open, want %d", n, y.open)
				}
			}
		})
	}
}

// TestOverCountedAfterReset checks that what began before Reset is not younger than what begins since.
func TestOverCountedAfterReset(t *testing.T) {
	p := newPeer(t, foreign.FPGA())
	p.place(50, bare(1000, 1, 1))
	p.Receiver.Forget()
	for i, x := range []struct {
		m    frame.Message
		open int
	}{{bare(1, 3, 1), 1}, {bare(1, 3, 2), 1}, {bare(2, 1, 1), 0}} {
		if p.place(frame.Seq(1+i), x.m); p.open.Len() != x.open {
			t.Errorf("frame %d: %d transactions are open, want %d", 1+i, p.open.Len(), x.open)
		}
	}
}

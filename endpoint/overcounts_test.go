package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
)

// TestOverCountedWaitsForOvertakenFrames: a younger transaction that arrives
// first says nothing about frames between it and the older one (quirk F19).
func TestOverCountedWaitsForOvertakenFrames(t *testing.T) {
	withStranger(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		mem := e.memory.(*Region)
		part := pattern(1, 16)
		s.send(8, data(2, 1, 1, 256, part))
		s.send(5, data(1, 3, 1, 64, part))
		s.send(6, data(1, 3, 2, 80, part))
		s.recv(10 * time.Millisecond)
		if got := c.Stats().Completions; got != 1 {
			t.Fatalf("%d completions before the last message came, want 1", got)
		}
		s.send(7, data(1, 3, 3, 96, part))
		s.recv(10 * time.Millisecond)
		if st := c.Stats(); st.Completions != 2 || st.Open != 0 || mem.Load32(0) != 2 {
			t.Errorf("%d completions, %d open, word %d", st.Completions, st.Open, mem.Load32(0))
		}
	})
}

// TestOverCountedHasAllData: a transaction of which one message does not come is complete
// when its frames came and their data has no hole, in whatever order they came (quirk F16).
func TestOverCountedHasAllData(t *testing.T) {
	for _, x := range []struct {
		at   []uint32 // of 16 bytes each, in frames in this order
		over bool
	}{
		{[]uint32{64, 80}, true},
		{[]uint32{80, 64}, true},
		{[]uint32{0, 16}, true},
		{[]uint32{96, 64, 80}, true},
		{[]uint32{64, 96}, false},
		{[]uint32{96, 64}, false},
		{[]uint32{64, 64}, false},
		{[]uint32{64, 80, 112}, false},
	} {
		withStranger(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			n := len(x.at)
			for i, at := range x.at {
				s.send(frame.Seq(1+i), data(1, uint16(n+1), uint16(1+i), at, pattern(1, 16)))
			}
			s.send(frame.Seq(1+n), data(2, 1, 1, 256, pattern(1, 16)))
			s.recv(10 * time.Millisecond)
			if st := c.Stats(); (st.Completions == 2) != x.over || (st.Open == 0) != x.over {
				t.Errorf("data at %d: %d completions, %d open", x.at, st.Completions, st.Open)
			}
		})
	}
}

// TestNoFrameIsLookedAtTwice: what waits for a frame that is missing goes on from there.
func TestNoFrameIsLookedAtTwice(t *testing.T) {
	f := newFeed(t, Config{})
	prof := FPGA()
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
	if err != nil {
		t.Fatal(err)
	}
	f.give(encode(1, 5, bare(1, 3, 1)))
	f.give(encode(1, 6, bare(1, 3, 2)))
	f.give(encode(1, 9, bare(2, 1, 1)))
	for _, x := range []struct{ came, next frame.Seq }{{7, 8}, {10, 8}} {
		f.give(encode(1, x.came, bare(3, 1, 1)))
		if in := c.rx.open.find(1); in == nil || in.first != x.next {
			t.Fatalf("after frame %d: %+v, want to wait for frame %d", x.came, in, x.next)
		}
	}
	f.give(encode(1, 8, bare(3, 1, 1)))
	if n := c.rx.open.len(); n != 0 {
		t.Errorf("%d transactions are open, all frames came", n)
	}
}

// TestWhatEndsAnOverCountedTransaction: of the hardware engine's, that one message is
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
		kind   Profile
		frames []came
		open   int
		then   []came // all are over behind these
	}{
		{"all frames came", FPGA(), append(two, came{7, alone(2)}), 0, nil},
		{"nothing younger began", FPGA(), two, 1, []came{{7, alone(2)}}},
		{"only an older one began", FPGA(), append(two, came{7, alone(0)}), 1, []came{{8, alone(2)}}},
		{"a younger one came first", FPGA(), append([]came{{7, alone(2)}}, two...), 0, nil},
		{"a frame between its messages is missing", FPGA(), []came{{5, part(1, 1)}, {7, part(1, 2)}, {8, alone(2)}}, 1, []came{{6, alone(3)}}},
		{"a frame before its messages is missing", FPGA(), []came{{3, alone(0)}, {5, part(1, 1)}, {6, part(1, 2)}, {7, alone(2)}}, 0, nil},
		{"a frame before the younger one is missing", FPGA(), append(two, came{8, alone(2)}), 1, []came{{7, alone(3)}}},
		{"a frame behind the younger one is missing", FPGA(), []came{{5, part(1, 1)}, {7, alone(2)}, {9, alone(3)}, {6, part(1, 2)}}, 0, nil},
		{"its first message is missing", FPGA(), []came{{65535, alone(10)}, {0, alone(0)}, {1, alone(0)}, {2, alone(0)}, {3, part(11, 2)}, {4, part(11, 3)}, {5, alone(12)}}, 1,
			[]came{{6, part(11, 1)}}},
		{"two messages are missing", FPGA(), []came{{5, part(1, 1)}, {6, alone(2)}}, 1, []came{{7, part(1, 2)}}},
		{"its data has a hole", FPGA(), []came{{5, part(1, 1)}, {6, part(1, 3)}, {7, alone(2)}}, 1, []came{{8, part(1, 2)}}},
		{"one began before another, that is over", FPGA(),
			[]came{{5, part(1, 1)}, {8, alone(0)}, {9, alone(0)}, {10, part(2, 1)}, {11, part(2, 2)}, {7, part(1, 2)}, {12, alone(3)}}, 1,
			[]came{{6, alone(4)}}},
		{"one began behind another, that is over", FPGA(),
			[]came{{4, part(1, 1)}, {6, part(1, 2)}, {7, part(2, 1)}, {9, part(2, 2)}, {10, alone(3)}, {5, alone(0)}}, 1,
			[]came{{8, alone(4)}}},
		{"of one that announces what it sends", OpenCPI(false), append([]came{{7, alone(2)}}, two...), 1, []came{{8, part(1, 3)}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFeed(t, Config{})
			c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &x.kind})
			if err != nil {
				t.Fatal(err)
			}
			for _, y := range []struct {
				frames []came
				open   int
			}{{x.frames, x.open}, {x.then, 0}} {
				for _, z := range y.frames {
					f.give(encode(1, z.seq, z.m))
				}
				if st := c.Stats(); st.Open != y.open {
					t.Errorf("%d transactions are open, want %d", st.Open, y.open)
				}
			}
			if st := c.Stats(); len(st.RefusedReasons()) > 0 {
				t.Errorf("refused %v", st.RefusedReasons())
			}
		})
	}
}

// TestOverCountedAfterReset: what began before Reset is not younger than what begins since.
func TestOverCountedAfterReset(t *testing.T) {
	f := newFeed(t, Config{})
	prof := FPGA()
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
	if err != nil {
		t.Fatal(err)
	}
	f.give(encode(1, 50, bare(1000, 1, 1)))
	c.Reset(0)
	for i, x := range []struct {
		m    frame.Message
		open int
	}{{bare(1, 3, 1), 1}, {bare(1, 3, 2), 1}, {bare(2, 1, 1), 0}} {
		if f.give(encode(1, frame.Seq(1+i), x.m)); c.Stats().Open != x.open {
			t.Errorf("frame %d: %d transactions are open, want %d", 1+i, c.Stats().Open, x.open)
		}
	}
}

// TestForeignTransactionsGoOnWithoutRoom: where no indexes are kept, the messages of what is
// open take nothing, and are not refused when there is nothing left.
func TestForeignTransactionsGoOnWithoutRoom(t *testing.T) {
	f := newFeed(t, Config{OpenMemory: settings.LeastOpenMemory})
	prof := OpenCPI(false)
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
	if err != nil {
		t.Fatal(err)
	}
	const n = settings.LeastOpenMemory / openSize
	part := func(index uint16) []frame.Message {
		return times(n, func(i int) frame.Message { return bare(uint32(i), 3, index) })
	}
	f.give(encode(1, 1, part(1)...))
	f.give(encode(1, 2, bare(n, 3, 1)))
	f.give(encode(1, 3, part(3)...))
	f.give(encode(1, 4, part(2)...))
	if st := c.Stats(); st.Completions != n || st.Open != 0 || st.RefusedBy(RefusedOpenMemory) != 1 {
		t.Errorf("%d of %d completed, %d are open, refused %v", st.Completions, n, st.Open, st.RefusedReasons())
	}
}

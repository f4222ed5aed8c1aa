package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
)

// TestOverCountedWaitsForOvertakenFrames: a younger transaction that arrives
// first says nothing about frames between it and the older one (quirk F19).
func TestOverCountedWaitsForOvertakenFrames(t *testing.T) {
	withFakePeer(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
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
		withFakePeer(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
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

// TestForeignTransactionsGoOnWithoutRoom: where no indexes are kept, the messages of what is
// open take nothing, and are not refused when there is nothing left.
func TestForeignTransactionsGoOnWithoutRoom(t *testing.T) {
	f := newFeed(t, Config{OpenMemory: settings.LeastOpenMemory})
	prof := OpenCPI(false)
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
	if err != nil {
		t.Fatal(err)
	}
	const n = settings.LeastOpenMemory / reassembly.Size
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

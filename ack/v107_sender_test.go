package ack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

func TestSenderWindow(t *testing.T) {
	for _, window := range []int{1, 32, 255, MaxHistory - 1} {
		t.Run(fmt.Sprintf("window=%d", window), func(t *testing.T) {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				cfg.Window = window
				s := newSenderTest(t, cfg)
				s.wantIdle()
				s.send(window)
				s.wantLimit(WindowFull)
				s.advance(10 * ms)
				s.ack(1, 1)
				s.wantAcked(1)
				s.send(1)
				s.wantLimit(WindowFull)
				s.ack(2, window+1)
				s.wantAckedRun(2, window+1)
				s.wantIdle()
			})
		})
	}
}

// Frames acknowledged out of order leave the window, not the span.
func TestSenderWindowCountsFramesInFlight(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span = 4, 8
		s := newSenderTest(t, cfg)
		s.send(4)
		s.batch(3, 4)
		s.wantAcked(3, 4)
		s.wantLost(1)
		s.resend(1)
		s.send(2)
		s.wantLimit(WindowFull)
		s.batch(5, 6)
		s.wantAcked(5, 6)
		s.wantLost(2)
		s.resend(2)
		s.send(2)
		s.batch(7, 8)
		s.wantAcked(7, 8)
		s.wantLost(1)
		s.resend(1)
		s.wantLimit(WindowFull) // id 9 is more than the span away from id 1
		s.batch(1)
		s.wantAcked(1)
		s.send(1)
		s.wantLimit(WindowFull)
		s.batch(2, 9)
		s.wantAcked(2, 9)
		s.wantIdle()
	})
}

// The ids of acknowledgement-only frames count for the peer's history
// (DGRDMA-014, DGRDMA-033): when they run ahead of a lost frame, its
// retransmission would be taken for an old copy (DGRDMA-034).
func TestSenderSpanCountsAloneIDs(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span = 4, 8
		s := newSenderTest(t, cfg)
		s.send(1)
		s.alone(7)
		s.wantLimit(WindowFull)
		for range 3 {
			if q, ok := s.s.Alone(s.now); !ok || q != s.id(8) {
				t.Fatalf("alone got id %d, %v, want %d again", q, ok, s.id(8))
			}
		}
		s.ack(1, 1)
		s.wantAcked(1)
		s.wantIdle()
		s.alone(20) // nothing is in flight: they are free
		s.wantIdle()
		s.send(1)
		s.ack(29, 29)
		s.wantAcked(29)
	})
}

// Peers that remember the ids of such frames, or abort on a second use, get a
// fresh one or none (quirks D1-4, D2-3, L4).
func TestSenderFreshAlone(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span, cfg.FreshAlone = 4, 8, true
		s := newSenderTest(t, cfg)
		s.send(1)
		s.alone(7)
		if q, ok := s.s.Alone(s.now); ok {
			t.Fatalf("alone got id %d, want none", q)
		}
		s.ack(1, 1)
		s.wantAcked(1)
		s.alone(1)
	})
}

// An id that belongs to a frame with messages is never used for another.
func TestSenderAloneWithoutID(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span = 8, 8
		s := newSenderTest(t, cfg)
		s.send(8)
		if q, ok := s.s.Alone(s.now); ok {
			t.Fatalf("alone got id %d, want none", q)
		}
	})
}

// Ids are contiguous and wrap through 0 (DGRDMA-013); a range may lie across
// the wrap (DGRDMA-016).
func TestSenderWrap(t *testing.T) {
	s := newSenderTest(t, SenderConfig{
		First: 65530, Window: 32, Span: 255, MinRTO: 10 * ms, MaxRTO: sec, GiveUp: 10 * sec,
	})
	s.send(5)
	s.alone(3) // 65535, 0, 1
	s.send(2)
	if next := s.s.Next(); next != 4 {
		t.Fatalf("next id %d, want 4", next)
	}
	s.apply(Range{65534, 6}, true)
	s.wantAcked(5, 9, 10)
	s.apply(Range{65530, 255}, false)
	s.apply(Range{65530, 10}, true)
	s.wantAcked(1, 2, 3, 4)
	s.wantIdle()
}

// Every range is applied once; what it names again is no event.
func TestSenderRepeatedRanges(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(10)
		s.advance(10 * ms)
		for _, r := range []struct {
			from, to int
			want     []int
		}{
			{1, 4, []int{1, 2, 3, 4}},
			{1, 4, nil},
			{3, 6, []int{5, 6}},
			{1, 6, nil},
			{-100, 0, nil},
			{-200, 7, []int{7}},
			{9, 10, []int{9, 10}},
			{1, 10, []int{8}},
			{1, 10, nil},
		} {
			s.apply(Range{s.id(r.from), uint8(r.to - r.from + 1)}, true)
			s.wantAcked(r.want...)
		}
		s.apply(Range{s.id(1), 0}, true) // DGRDMA-016: count 0 says nothing
		s.apply(Range{s.id(5000), 0}, true)
		s.wantIdle()
	})
}

// A range that names an id which was never used is not believed, whole.
func TestSenderRefusesUnused(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.refuse(Range{s.id(1), 1})
		s.send(4)
		for _, r := range []struct{ from, count int }{
			{5, 1}, {4, 2}, {1, 5}, {1, 255}, {-200, 255}, {100, 1}, {16385, 1}, {1 << 14, 255}, {32000, 255},
			// Ids half the space away are neither before nor after.
			{1<<15 - 300, 255}, {1<<15 - 20, 20}, {1<<15 - 20, 30}, {1<<15 - 1, 4}, {1 << 15, 1}, {1 << 15, 255},
		} {
			t.Run(fmt.Sprintf("%d+%d", r.from, r.count), func(t *testing.T) {
				s.t = t
				s.refuse(Range{s.id(r.from), uint8(r.count)})
			})
		}
		s.t = t
		s.ack(1, 4)
		s.wantAcked(1, 2, 3, 4)
		s.wantIdle()
	})
}

// Quirk F3: an FPGA may acknowledge id 0 before it was sent.
func TestSenderRefusesUnsentZero(t *testing.T) {
	s := newSenderTest(t, SenderConfig{
		First: 65535, Window: 32, Span: 128, Cumulative: true, FreshAlone: true, MinRTO: 10 * ms, MaxRTO: sec, GiveUp: 10 * sec,
	})
	s.send(1)
	s.refuse(Range{65535, 2})
	s.apply(Range{65535, 1}, true)
	s.wantAcked(1)
	s.wantIdle()
}

// Quirk F2: everything before AckStart was received too, also with count 0.
func TestSenderCumulative(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span, cfg.Cumulative, cfg.FreshAlone = 32, 128, true, true
		s := newSenderTest(t, cfg)
		s.apply(Range{s.id(1), 0}, true) // before anything was sent
		s.send(10)
		s.advance(10 * ms)
		s.apply(Range{s.id(1), 0}, true)
		s.wantAcked()
		s.apply(Range{s.id(4), 0}, true)
		s.wantAcked(1, 2, 3)
		s.apply(Range{s.id(4), 2}, true)
		s.wantAcked(4, 5)
		s.apply(Range{s.id(2), 2}, true) // overtaken
		s.wantAcked()
		s.refuse(Range{s.id(12), 0})
		s.refuse(Range{s.id(11), 1})
		s.refuse(Range{s.id(1 << 15), 0})
		s.apply(Range{s.id(8), 1}, true)
		s.wantAcked(6, 7, 8)
		s.apply(Range{s.id(11), 0}, true)
		s.wantAcked(9, 10)
		s.wantIdle()
	})
}

// A DG1 peer looks ids up by remainder, and frames without messages leave no
// trace there: an id that was the last one with messages in its place would be
// taken for a copy. So would id 0, where the table starts (quirk D1-3).
func TestSenderSlotTable(t *testing.T) {
	cfg := testConfig()
	cfg.First, cfg.Window, cfg.Span, cfg.FreshAlone, cfg.SlotTable = 1, 128, 255, true, 256
	var s Sender
	s.Init(0, cfg, new(FixedWindow))
	lap := func(messages ...frame.Seq) (used map[frame.Seq]bool) {
		used = make(map[frame.Seq]bool)
		for before := frame.Seq(0); ; {
			var q frame.Seq
			if slices.Contains(messages, s.Next()) {
				q = s.Track(0, 1)
				if _, ok := s.AppendAcked(nil, 0, Range{q, 1}); !ok {
					t.Fatalf("acknowledgement of %d refused", q)
				}
			} else {
				q, _ = s.Alone(0)
			}
			used[q] = true
			if s.Next() < before || s.Next() == 65535 {
				return used
			}
			before = s.Next()
		}
	}
	lap(10, 11, 12, 300)
	s.Alone(0)
	if q, _ := s.Alone(0); q != 1 {
		t.Fatalf("id %d after 65535, want 1: 0 looks known to the peer", q)
	}
	used := lap(20, 256)
	for _, q := range []frame.Seq{10, 11, 12, 300} {
		if used[q] {
			t.Errorf("id %d was used again", q)
		}
	}
	if len(used) != 65534-1-4 {
		t.Errorf("%d ids used, want all but 4", len(used))
	}
	s.Alone(0)
	if q, _ := s.Alone(0); q != 0 {
		t.Fatalf("id %d after 65535, want 0: its place was used since", q)
	}
	if used = lap(); used[20] || used[256] || used[10] {
		t.Error("an id whose place no message used since was used again")
	}
}

// Whatever is sent, a DG1 peer's table (DG1.cc:436-462) never takes a new frame
// for a copy, nor is one more than the span from the oldest in flight.
func TestSenderSlotTableModel(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cfg := testConfig()
		cfg.First, cfg.Window, cfg.Span, cfg.FreshAlone, cfg.SlotTable = 1, 128, 255, true, 256
		var s Sender
		s.Init(0, cfg, new(FixedWindow))
		var table [256]frame.Seq
		var flight []frame.Seq
		busy := rnd.IntN(100)
		for i := range 300000 {
			if i%1000 == 0 {
				busy = []int{0, 0, 1, 5, 90}[rnd.IntN(5)]
			}
			if len(flight) > 0 && rnd.IntN(4) == 0 {
				k := rnd.IntN(len(flight))
				acked, _ := s.AppendAcked(nil, 0, Range{flight[k], 1})
				if len(acked) != 1 {
					t.Fatalf("seed %d: acknowledgement of %d did nothing", seed, flight[k])
				}
				flight = slices.Delete(flight, k, k+1)
			}
			var q frame.Seq
			messages := rnd.IntN(100) < busy
			if messages {
				if s.Limit(0, 1) != Open {
					continue
				}
				q = s.Track(0, 1)
				flight = append(flight, q)
			} else if fresh, ok := s.Alone(0); ok {
				q = fresh
			} else {
				continue
			}
			if table[q%256] == q {
				t.Fatalf("seed %d, step %d: id %d looks known to the peer", seed, i, q)
			}
			if messages {
				table[q%256] = q
			}
			if len(flight) > 0 && q.Diff(s.Oldest()) >= cfg.Span {
				t.Fatalf("seed %d, step %d: id %d is %d after the oldest", seed, i, q, q.Diff(s.Oldest()))
			}
		}
		checkSender(t, &s)
	}
}

// Skipped ids count in the span.
func TestSenderSlotTableSpan(t *testing.T) {
	cfg := testConfig()
	cfg.First, cfg.Window, cfg.Span, cfg.FreshAlone, cfg.SlotTable = 1, 255, 255, true, 256
	var s Sender
	s.Init(0, cfg, new(FixedWindow))
	for s.Next() != 65535 {
		if s.Next() >= 240 && s.Next() <= 300 {
			s.AppendAcked(nil, 0, Range{s.Track(0, 1), 1})
		} else {
			s.Alone(0)
		}
	}
	oldest := s.Track(0, 1)
	for s.Limit(0, 1) == Open {
		if q := s.Track(0, 1); q.Diff(oldest) >= cfg.Span {
			t.Fatalf("id %d is %d after the oldest", q, q.Diff(oldest))
		}
	}
	if q, ok := s.Alone(0); ok {
		t.Fatalf("alone got id %d, want none", q)
	}
	checkSender(t, &s)
	// When nothing is in flight, however many may be left out.
	s.AppendAcked(nil, 0, Range{oldest, uint8(s.Next().Diff(oldest))})
	if q, ok := s.Alone(0); !ok || q != 255 {
		t.Fatalf("alone got id %d, %v, want 255: those from 240 on look known", q, ok)
	}
}

// Quirk D2-2: a peer that never acknowledges.
func TestSenderSettle(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(3)
		s.s.Settle(s.now, s.id(2))
		s.s.Settle(s.now, s.id(2))
		s.advance(ms)
		s.s.Settle(s.now, s.id(1))
		s.s.Settle(s.now, s.id(3))
		s.wantIdle()
		for _, rtt := range s.ctl.rtts {
			if rtt >= 0 {
				t.Fatal("a settled frame was taken for a measure of the round trip")
			}
		}
		// A transport that takes its time must not make it be sent again.
		s.send(1)
		s.advance(firstTimeout)
		s.wantProbed(4)
		s.s.Settle(s.now, s.id(4))
		s.wantIdle()
	})
}

// The ring of slots grows with what is in use and keeps what it holds.
func TestSenderGrowth(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window = MaxHistory - 1
		s := newSenderTest(t, cfg)
		s.send(8)
		s.advance(10 * ms)
		s.ack(4, 8)
		s.wantAcked(4, 5, 6, 7, 8)
		s.wantLost(1, 2, 3)
		capacity := s.s.Capacity()
		for n := 16; s.last+n < cfg.Span; n *= 2 {
			s.alone(n / 4)
			s.send(n / 2)
			if c := s.s.Capacity(); c < capacity || c&(c-1) != 0 || c < s.last {
				t.Fatalf("%d slots for %d ids, %d before", c, s.last, capacity)
			} else {
				capacity = c
			}
		}
		if capacity != MaxHistory {
			t.Fatalf("%d slots, want %d", capacity, MaxHistory)
		}
		s.resend(1, 2, 3)
		s.advance(10 * ms)
		s.ack(1, s.last)
		s.acked = nil
		s.wantIdle()
		// A new life does not start small.
		s.s.Init(s.now, cfg, s.ctl)
		if s.s.Capacity() != capacity {
			t.Fatalf("%d slots after Init, want %d", s.s.Capacity(), capacity)
		}
		s.last = 0
		s.alone(3)
		s.send(3)
		s.ack(1, 6)
		s.wantAcked(4, 5, 6)
		s.wantIdle()
		s.s.Shrink()
		if c := s.s.Capacity(); c != 0 {
			t.Fatalf("%d slots after Shrink, want none", c)
		}
		s.send(1)
		s.ack(7, 7)
		s.wantAcked(7)
	})
}

// The controller bounds bytes, paces, and lets one frame go in any case.
func TestSenderController(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.ctl.window = 12 // frame n has n bytes
		s.send(5)
		s.wantLimit(Congested)
		s.advance(10 * ms)
		s.ack(5, 5)
		s.wantAcked(5)
		s.wantLost(1, 2)
		s.ctl.window = 7
		s.wantLost()
		s.wantLimit(Congested)
		s.wantNextLost(false)
		s.ctl.window = 8
		s.wantLimit(Open)
		s.wantNextLost(true)
		s.ctl.paced = s.now.Add(ms)
		s.wantLimit(Paced)
		s.wantNextLost(false)
		if at := s.s.PacedUntil(s.now, 1); at != s.ctl.paced {
			t.Fatalf("paced until %v, want %v", at, s.ctl.paced)
		}
		s.advance(ms / 2)
		s.ack(3, 4)
		s.wantAcked(3, 4)
		s.advance(ms / 2)
		s.ctl.window = 1
		s.wantNextLost(true) // nothing is on the wire
		s.s.Resend(s.now, s.id(1))
		s.wantNextLost(false)
		s.ack(1, 2)
		s.wantAcked(1, 2)
		s.wantNextLost(false)
		s.wantIdle()
	})
}

func (s *senderTest) wantNextLost(want bool) {
	s.t.Helper()
	if q, ok := s.s.NextLost(s.now); ok != want {
		s.t.Fatalf("lost frame %d may leave: %v, want %v", q, ok, want)
	}
}

// What a timeout sends again leaves however full the wire seems (RFC 9002
// section 7.5), and nothing else does.
func TestSenderProbesPassCongestion(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(4)
		s.ctl.window = 1
		s.advanceToTimer()
		s.wantProbed(1, 4)
		s.wantNextLost(true)
		s.resend(1, 4)
		s.wantLimit(Congested)
		s.advance(10 * ms)
		s.ack(4, 4)
		s.wantAcked(4)
		s.advanceToTimer()
		s.wantLost(2, 3, 1)
		s.wantNextLost(true) // nothing is on the wire
		s.s.Resend(s.now, s.id(2))
		s.wantNextLost(false)
	})
}

// Yet it keeps to the pace.
func TestSenderProbesKeepPace(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(4)
		s.advanceToTimer()
		s.wantProbed(1, 4)
		s.ctl.paced = s.now.Add(ms)
		s.wantNextLost(false)
		s.stall(ms)
		s.wantNextLost(true)
		s.resend(1, 4)
	})
}

// One frame can go whatever a controller returns, also less than nothing.
func TestSenderWindowBelowZero(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.ctl.window = -1
		s.send(1)
		s.wantLimit(Congested)
		s.advance(ms)
		s.ack(1, 1)
		s.wantAcked(1)
		s.wantLimit(Open)
	})
}

func TestSenderCounts(t *testing.T) {
	s := newSenderTest(t, testConfig())
	s.send(2)
	s.alone(3)
	if used := s.s.NextWide().Diff(testConfig().First); used != 5 || s.s.InFlight() != 2 || s.s.Timeouts() != 0 {
		t.Fatalf("%d ids used, %d in flight, %d timeouts; want 5, 2, 0", used, s.s.InFlight(), s.s.Timeouts())
	}
	s.advance(firstTimeout)
	s.wantProbed(1, 2)
	if s.s.Lost() != 2 || s.s.InFlight() != 2 || s.s.Timeouts() != 1 {
		t.Fatalf("%d lost, %d in flight, %d timeouts; want 2, 2, 1", s.s.Lost(), s.s.InFlight(), s.s.Timeouts())
	}
	for l, want := range map[Limit]string{Open: "open", WindowFull: "window full", Congested: "congested", Paced: "paced"} {
		if l.String() != want {
			t.Errorf("limit %d is %q, want %q", l, l, want)
		}
	}
}

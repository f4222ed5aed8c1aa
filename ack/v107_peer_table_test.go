package ack

import (
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// tableTest is a Sender to a peer with a table of 256 places, of whose ids every
// one is acknowledged at once.
type tableTest struct {
	t   *testing.T
	s   Sender
	now Instant
}

func newTableTest(t *testing.T, first frame.Seq) *tableTest {
	cfg := testConfig()
	cfg.First, cfg.Window, cfg.Span, cfg.SlotTable = Wide(first), 90, 255, 256
	tt := &tableTest{t: t, now: Instant(sec)}
	tt.s.Init(tt.now, cfg, new(FixedWindow))
	return tt
}

func (tt *tableTest) send() frame.Seq {
	tt.t.Helper()
	if l := tt.s.Limit(tt.now, 1); l != Open {
		tt.t.Fatalf("id %d: %v, want open", tt.s.Next(), l)
	}
	return tt.s.Track(tt.now, 1)
}

func (tt *tableTest) ack(q frame.Seq) {
	tt.t.Helper()
	if acked, _ := tt.s.AppendAcked(nil, tt.now, Range{q, 1}); len(acked) != 1 {
		tt.t.Fatalf("acknowledgement of %d did nothing", q)
	}
	tt.s.EndBatch(tt.now)
}

// sendAgain loses a frame and sends it again; what overtook it is acknowledged.
func (tt *tableTest) sendAgain() frame.Seq {
	tt.t.Helper()
	q := tt.send()
	for range reorderThreshold {
		tt.ack(tt.send())
	}
	if got, ok := tt.s.NextLost(tt.now); !ok || got != q {
		tt.t.Fatalf("lost is %d (%v), want %d", got, ok, q)
	}
	tt.s.Resend(tt.now, q)
	return q
}

// lap sends and acknowledges until the id or a later one was used, and reports
// whether it was that one.
func (tt *tableTest) lap(to frame.Seq) bool {
	tt.t.Helper()
	for {
		q := tt.send()
		tt.ack(q)
		if !q.Before(to) {
			return q == to
		}
	}
}

// Attack A2 (SECURITY.md): a frame was sent again and acknowledged; its first
// copy may still be under way. The peer knows it by the id in its place, so the
// place is left to that id as long as copies may come.
func TestSenderSlotTableLateCopy(t *testing.T) {
	for _, first := range testFirsts {
		tt := newTableTest(t, first)
		q := tt.sendAgain()
		tt.ack(q)
		for lap := 1; lap <= 3; lap++ {
			if tt.lap(q.Add(256 * lap)) {
				t.Errorf("id %d was used in lap %d, when a copy of id %d could still come", q.Add(256*lap), lap, q)
			}
		}
		tt.now = tt.now.Add(lateCopy)
		if !tt.lap(q.Add(4 * 256)) {
			t.Errorf("id %d was left out, when no copy of id %d could come any more", q.Add(4*256), q)
		}
		checkSender(t, &tt.s)
	}
}

// The time counts from the last sending, not from the acknowledgement.
func TestSenderSlotTableLateCopyFromResend(t *testing.T) {
	tt := newTableTest(t, 1)
	q := tt.sendAgain()
	tt.now = tt.now.Add(lateCopy - 1)
	tt.ack(q)
	if tt.lap(q.Add(256)) {
		t.Errorf("id %d was used too early", q.Add(256))
	}
	tt.now++
	if !tt.lap(q.Add(512)) {
		t.Errorf("id %d was left out too long", q.Add(512))
	}
}

// When every place waits, so do new frames: until the first is free, no longer.
func TestSenderSlotTableAllPlacesWait(t *testing.T) {
	tt := newTableTest(t, 1)
	began := tt.now
	for range 256 {
		q := tt.send()
		tt.s.lose(tt.now, q, false)
		tt.s.Resend(tt.now, q)
		tt.ack(q)
		tt.now++
	}
	if l := tt.s.Limit(tt.now, 1); l != Paced {
		t.Fatalf("limit %v, want paced", l)
	}
	if q, ok := tt.s.Alone(tt.now); ok {
		t.Fatalf("alone got id %d", q)
	}
	until := tt.s.PacedUntil(tt.now, 1)
	if until != began.Add(lateCopy) {
		t.Fatalf("paced for %v, want %v", until.Sub(began), lateCopy)
	}
	tt.now = until
	if tt.s.PacedUntil(tt.now, 1) > tt.now {
		t.Error("paced at the moment until which it was")
	}
	if q := tt.send(); q != 257 {
		t.Errorf("id %d, want 257, whose place is free", q)
	}
	if l := tt.s.Limit(tt.now, 1); l != WindowFull {
		t.Errorf("limit %v, want window full: an acknowledgement is awaited", l)
	}
	checkSender(t, &tt.s)
}

// A whole lap of the table may be left out, if it was the last one with messages
// before the ids wrapped.
func TestSenderSlotTableWholeLapKnown(t *testing.T) {
	tt := newTableTest(t, 300)
	for range 256 {
		tt.ack(tt.send())
	}
	for tt.s.Next() != 300 {
		if _, ok := tt.s.Alone(tt.now); !ok {
			t.Fatalf("no id after %d", tt.s.Next())
		}
	}
	if q := tt.send(); q != 556 {
		t.Errorf("id %d, want 556: those from 300 on are known", q)
	}
}

// Ids that are left out while one is in flight do not push it out of the places.
func TestSenderSlotTableSkipsMany(t *testing.T) {
	cfg := testConfig()
	cfg.First, cfg.Window, cfg.Span, cfg.FreshAlone, cfg.SlotTable = 1, 128, 255, true, 256
	var s Sender
	s.Init(0, cfg, new(FixedWindow))
	for s.Next() != 65535 {
		if s.Next() >= 20 && s.Next() <= 100 {
			s.AppendAcked(nil, 0, Range{s.Track(0, 1), 1})
		} else {
			s.Alone(0)
		}
	}
	for s.Next() != 10 {
		s.Alone(0)
	}
	s.Shrink()
	var flight []frame.Seq
	for s.Next() != 20 {
		flight = append(flight, s.Track(0, 1))
	}
	if q := s.Track(0, 1); q != 101 {
		t.Fatalf("id %d, want 101: those from 20 on look known", q)
	}
	checkSender(t, &s)
	acked, ok := s.AppendAcked(nil, 0, Range{10, 92})
	if want := append(flight, 101); !ok || !slices.Equal(acked, want) {
		t.Fatalf("acknowledged %d (%v), want %d", acked, ok, want)
	}
	if s.InFlight() != 0 {
		t.Errorf("%d frames in flight, want none", s.InFlight())
	}
}

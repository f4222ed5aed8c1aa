package ack

import (
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// ledger is a controller that adds up what it is told, and has a window.
type ledger struct {
	window                   int
	sent, acked, lost, timed int // frames
}

func (l *ledger) Window() int                                 { return l.window }
func (l *ledger) NextSend(now Instant, _ int) Instant         { return now }
func (l *ledger) OnSent(Instant, uint32, int)                 { l.sent++ }
func (l *ledger) OnAcked(Instant, uint32, int, time.Duration) { l.acked++ }
func (l *ledger) OnAppLimited(Instant)                        {}
func (l *ledger) OnSpurious(Instant)                          {}
func (l *ledger) EndBatch(Instant)                            {}
func (l *ledger) OnLost(_ Instant, _ uint32, _ int, timeout bool) {
	l.lost++
	if timeout {
		l.timed++
	}
}

// untakenFlight has frames 1 to n on the wire, of 1000 bytes, which fill the controller's window.
func untakenFlight(n int) (f *Flight, l *ledger, now Instant) {
	f, l, now = new(Flight), &ledger{window: 1000 * n}, Instant(time.Hour)
	f.Init(now, FlightConfig{Window: 64, MinRTO: flightRTO, MaxRTO: time.Second, GiveUp: 10 * time.Second}, l)
	for range n {
		f.Track(now, 1000)
	}
	return f, l, now
}

// resends returns the lost frames that leave.
func resends(f *Flight, now Instant) (ids []uint32) {
	for id, ok := f.NextLost(now); ok; id, ok = f.NextLost(now) {
		f.Resend(now, id)
		ids = append(ids, id)
	}
	return ids
}

// TestUntakenFramesLeaveAgain checks that frames that arrived before the peer had the session leave again when it has it, at once and in
// their order, however full the wire is, and that the controller hears of no loss and of no transmission more.
func TestUntakenFramesLeaveAgain(t *testing.T) {
	f, l, now := untakenFlight(5)
	for _, id := range []uint32{4, 2, 2, 9, 0} {
		f.Untaken(id, 0)
	}
	f.Untaken(5, 1)
	if ids := resends(f, now); ids != nil {
		t.Fatalf("%v left before the peer had the session", ids)
	}
	f.TakeUntaken()
	if ids := resends(f, now); !slices.Equal(ids, []uint32{2, 4}) {
		t.Errorf("%v left again, want 2 and 4", ids)
	}
	f.TakeUntaken()
	if ids := resends(f, now); ids != nil {
		t.Errorf("%v left once more", ids)
	}
	if f.InFlight() != 5 || l.sent != 5 || l.lost != 0 || f.Limit(now, 1000) != Congested {
		t.Errorf("%d in flight; the controller heard of %+v", f.InFlight(), l)
	}
	now = now.Add(time.Millisecond)
	ids, ok := f.AppendAcked(nil, now, &Acknowledgement{UpTo: 5})
	if f.EndBatch(now); !ok || len(ids) != 5 || l.acked != 5 || l.lost != 0 || f.Limit(now, 1000) != Open {
		t.Errorf("%v acknowledged; the controller heard of %+v", ids, l)
	}
}

// TestUntakenAfterATimeout checks a frame that was sent again by the timer: only a RESET of the last copy says that it was not taken.
func TestUntakenAfterATimeout(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after []uint8 // copies that are untaken, before the timer and after it
		again         []uint32
	}{
		{"the first, before", []uint8{0}, nil, nil},
		{"the first, after", nil, []uint8{0}, nil},
		{"the last", nil, []uint8{1}, []uint32{1}},
		{"both", []uint8{0}, []uint8{1, 0}, []uint32{1}},
		{"one that never left", nil, []uint8{2}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, l, now := untakenFlight(1)
			for _, n := range c.before {
				f.Untaken(1, n)
			}
			now = now.Add(time.Minute)
			f.Expire(now, now)
			if ids := resends(f, now); len(ids) != 1 || l.timed != 1 || l.sent != 2 {
				t.Fatalf("%v left by the timer; %+v", ids, l)
			}
			for _, n := range c.after {
				f.Untaken(1, n)
			}
			f.TakeUntaken()
			if ids := resends(f, now); !slices.Equal(ids, c.again) {
				t.Errorf("%v left again, want %v", ids, c.again)
			}
		})
	}
}

// TestUntakenOfManyCopies checks that nothing is believed of a copy whose number stands for all later ones as well.
func TestUntakenOfManyCopies(t *testing.T) {
	f, _, now := untakenFlight(1)
	for range frame.MostCopies {
		now = now.Add(time.Second)
		f.Expire(now, now)
		resends(f, now)
	}
	f.Untaken(1, frame.MostCopies)
	f.TakeUntaken()
	if ids := resends(f, now); ids != nil {
		t.Errorf("%v left again", ids)
	}
}

// TestUntakenIsAcknowledged checks a frame of which the network made a copy, which arrived when the peer had the session: it is done
// before it leaves again, and says nothing of how the network reorders.
func TestUntakenIsAcknowledged(t *testing.T) {
	f, l, now := untakenFlight(2)
	f.Untaken(1, 0)
	f.TakeUntaken()
	now = now.Add(time.Millisecond)
	if ids, ok := f.AppendAcked(nil, now, &Acknowledgement{UpTo: 2}); !ok || len(ids) != 2 || f.InFlight() != 0 || f.late != 0 || *l != (ledger{2000, 2, 2, 0, 0}) {
		t.Errorf("%v acknowledged, %d in flight, late by %v; the controller heard of %+v", ids, f.InFlight(), f.late, l)
	}
	if f.Limit(now, 1000) != Open || f.bytes != 0 {
		t.Errorf("%d bytes are in flight", f.bytes)
	}
}

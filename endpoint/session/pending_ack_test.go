package session

import (
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// put returns the ACK that is pending.
func (h *halves) put(t *testing.T, now ack.Instant, most int) *frame.SessionFrame {
	t.Helper()
	b := make([]byte, most)
	return from(t, b[:h.s.PutAck(b, now, most)])
}

// TestScheduleAck checks when what arrived is acknowledged by itself, and whether data may take it along: in order after the delay, at the last of every frames at
// once, and at once and alone where a frame is missing or came twice.
func TestScheduleAck(t *testing.T) {
	const delay, every, now = 20 * time.Millisecond, 4, ack.Instant(1000)
	first := uint32(there) + 1
	for name, x := range map[string]struct {
		come  []uint32
		quick bool
		is    bool
		at    ack.Instant
		alone bool
	}{
		"nothing":         {},
		"one":             {come: []uint32{0}, is: true, at: now.Add(delay)},
		"three":           {come: []uint32{0, 1, 2}, is: true, at: now.Add(delay)},
		"four":            {come: []uint32{0, 1, 2, 3}, is: true, at: now},
		"one, quick":      {come: []uint32{0}, quick: true, is: true, at: now},
		"one missing":     {come: []uint32{1}, is: true, at: now, alone: true},
		"one twice":       {come: []uint32{0, 0}, is: true, at: now, alone: true},
		"one came late":   {come: []uint32{1, 0}, is: true, at: now, alone: true},
		"nothing, quick":  {quick: true},
		"before, missing": {come: []uint32{3, 0, 1, 2}, is: true, at: now, alone: true},
	} {
		h := newHalves(false)
		for _, i := range x.come {
			if f := data(first + i); h.r.Check(now, f) == ack.Fresh {
				h.r.Arrived(now, f)
			}
		}
		ScheduleAck(now, &h.s, &h.r, delay, every, x.quick)
		if at, is := h.s.AckAt(); is != x.is || is && at != x.at {
			t.Errorf("%s: it leaves: %v, at %d, want %v, %d", name, is, at, x.is, x.at)
		}
		if got := h.s.Piggyback(); got != (x.is && !x.alone) {
			t.Errorf("%s: data takes it along: %v", name, got)
		}
		if _, is := h.s.AckAt(); is != x.alone {
			t.Errorf("%s: it leaves by itself after data: %v", name, is)
		}
	}
}

// TestOweKeepsTheTime checks that what comes later delays no acknowledgement, and that frames of several batches count together, until one has left.
func TestOweKeepsTheTime(t *testing.T) {
	const delay, every = 20 * time.Millisecond, 4
	h := newHalves(false)
	owe := func(now ack.Instant, n int) (ack.Instant, bool) {
		h.r.ArrivedRun(now, n)
		ScheduleAck(now, &h.s, &h.r, delay, every, false)
		return h.s.AckAt()
	}
	if at, is := owe(1000, 2); !is || at != ack.Instant(1000).Add(delay) {
		t.Errorf("after two: %d, %v", at, is)
	}
	if at, is := owe(2000, 1); !is || at != ack.Instant(1000).Add(delay) {
		t.Errorf("after a third: %d, %v", at, is)
	}
	if at, is := owe(3000, 1); !is || at != 3000 {
		t.Errorf("after the fourth: %d, %v", at, is)
	}
	for _, leave := range []func(){func() { h.put(t, 3000, 100) }, func() { h.s.Head(make([]byte, 64), 1, 0) }, func() { h.s.HeadAgain(make([]byte, 64), 1) }} {
		leave()
		if at, is := h.s.AckAt(); is {
			t.Errorf("it has left, and leaves at %d", at)
		}
		if at, is := owe(5000, 3); !is || at != ack.Instant(5000).Add(delay) {
			t.Errorf("three after it has left: %d, %v", at, is)
		}
	}
}

// TestPutAck checks what an ACK says: the cumulative acknowledgement, the runs of ids that fit, of more the lowest and the highest, the frame that
// arrived last, and for how long that has waited.
func TestPutAck(t *testing.T) {
	first := uint32(there) + 1
	h := newHalves(true)
	h.r.Arrived(1000, data(first))
	var all []frame.Range
	for i := range uint32(10) {
		id := first + 2 + 2*i
		h.r.Arrived(2000, data(id))
		all = append(all, frame.Range{First: id, Count: 1})
	}
	for _, most := range []int{1500, frame.LeastSessionAck + 3*frame.RangeSize} {
		h.r.urgent = true
		ScheduleAck(3000, &h.s, &h.r, time.Second, 4, false)
		f := h.put(t, ack.Instant(3000).Add(50*time.Microsecond), most)
		a, ok := f.SessionAck()
		var ranges []frame.Range
		for i := range a.Ranges.Len() {
			ranges = append(ranges, a.Ranges.At(i))
		}
		want := all
		if most < 1500 {
			want = []frame.Range{all[0], all[1], all[9]}
		}
		if !ok || f.Ack != first || f.ID != first+20 || a.Again || f.Tag != Tag(there, here) || f.Dst != 1 || f.Src != 2 || !slices.Equal(ranges, want) {
			t.Errorf("%d bytes: %+v, %v, want %v", most, f.SessionHeader, ranges, want)
		}
		if least := int(50 + (3000-2000)/time.Microsecond); int(a.Delay) < least || int(a.Delay) > least+1 {
			t.Errorf("it has waited for %d us, want %d", a.Delay, least)
		}
	}
}

// TestAckNow checks that an acknowledgement leaves at once where this side is asked for one, though nothing came, and none where the session has ended.
func TestAckNow(t *testing.T) {
	h := newHalves(false)
	h.s.AckNow()
	if at, is := h.s.AckAt(); !is || at != 0 || h.s.Piggyback() {
		t.Errorf("at %d, %v", at, is)
	}
	if f := h.put(t, 0, 100); f.Ack != uint32(there) || f.ID != uint32(there) {
		t.Errorf("%+v: nothing came", f.SessionHeader)
	}
	h.s.AckNow()
	h.s.DropAck()
	if _, is := h.s.AckAt(); is {
		t.Error("something leaves after the end")
	}
}

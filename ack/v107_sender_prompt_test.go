package ack

import (
	"testing"
	"time"
)

// What a late frame taught about reordering is forgotten half by half, when frames are
// really lost again and again (RFC 8985 section 6.2): with the largest threshold on a short
// path every loss would be noticed a millisecond late.
func TestSenderForgetsReordering(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.s.reorder = maxReorder
		lose := func() {
			first := s.last + 1
			s.send(1 + int(s.s.reorder))
			s.advance(10 * ms)
			s.ack(first+1, s.last)
			s.acked = nil
			s.wantLost(first)
			s.resend(first)
			s.advance(10 * ms)
			s.ack(first, first)
			s.wantAcked(first)
		}
		for want := uint32(maxReorder); want > reorderThreshold; {
			for range reorderKeeps - 1 {
				lose()
			}
			if s.s.reorder != want {
				t.Fatalf("threshold %d after %d losses, want %d", s.s.reorder, reorderKeeps-1, want)
			}
			lose()
			if want = max(want/2, reorderThreshold); s.s.reorder != want {
				t.Fatalf("threshold %d after %d losses, want %d", s.s.reorder, reorderKeeps, want)
			}
		}

		// One that is late begins again.
		for range reorderKeeps - 1 {
			lose()
		}
		s.send(4)
		first := s.last - 3
		s.advance(10 * ms)
		s.ack(first+1, s.last)
		s.acked = nil
		s.wantLost(first)
		s.ack(first, first) // it had only been slow
		s.wantAcked(first)
		for range reorderKeeps - 1 {
			lose()
		}
		if s.s.reorder != 2*reorderThreshold {
			t.Errorf("threshold %d, want %d", s.s.reorder, 2*reorderThreshold)
		}
	})
}

// A copy that left a moment ago is not lost yet, though others that wait longer are, and
// though it is the oldest.
func TestSenderSparesWhatLeftJustNow(t *testing.T) {
	const way = 100 * time.Microsecond
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(way)
		s.send(10) // 2 to 11
		s.advance(way)
		s.ack(5, 7)
		s.wantAcked(5, 6, 7)
		s.wantLost(2, 3, 4)
		s.advance(9900 * time.Microsecond) // the timeout is after 10 ms
		s.resend(2, 3, 4)
		s.advanceToTimer()
		s.wantProbed(8) // the newest is one of those
		s.resend(8)
		s.advanceToTimer()
		s.wantProbed(2, 8)
	})
}

// That the copy of the oldest frame is acknowledged tells nothing of those after it: it was the
// first copy, perhaps, and they follow. When nothing follows the newest one until the next timeout, they were overtaken.
func TestSenderNewestProbeTells(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(20) // 2 to 21
		s.advanceToTimer()
		s.wantProbed(2, 21)
		s.resend(2, 21)
		s.advance(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		s.wantLost()
		s.ack(3, 4) // they follow
		s.wantAcked(3, 4)
		s.wantLost()
		if s.s.RTT().Smoothed() <= 10*ms {
			t.Error("what was sent once is no sample")
		}
		s.advance(ms)
		s.ack(21, 21)
		s.wantAcked(21)
		s.wantLost()
		s.advanceToTimer()
		s.wantLost(5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	})
}

// oldestAlone sends frames 2 to 10 on a path of 10 ms, of which a timeout sends the oldest and
// the newest again, and only the oldest is acknowledged.
func oldestAlone(t *testing.T, cfg SenderConfig) *senderTest {
	s := newSenderTest(t, cfg)
	s.measure(10 * ms)
	s.send(9) // 2 to 10
	s.advanceToTimer()
	s.wantProbed(2, 10)
	s.resend(2, 10)
	s.advance(10 * ms)
	s.ack(2, 2)
	s.wantAcked(2)
	return s
}

// When nothing that left behind the first copy of the oldest follows until the next timeout, it
// was the second that arrived, and what it overtook is lost, whole: a receiver with room for one
// datagram drops the newest every time.
func TestSenderOldestTellsInTheEnd(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := oldestAlone(t, cfg)
		s.wantLost()
		s.advanceToTimer()
		s.wantLost(3, 4, 5, 6, 7, 8, 9)
		s.wantProbed(10)
		s.resend(3, 4, 5, 6, 7, 8, 9, 10)
		s.advance(10 * ms)
		s.ack(3, 10)
		s.acked = nil
		s.wantIdle()
	})
}

// Nothing is left to probe then, if the oldest left behind all others.
func TestSenderOldestTellsAll(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(3) // 2 to 4
		at, _ := s.s.Deadline()
		s.advance(at.Sub(s.now) - ms)
		s.send(1) // 5
		s.advanceToTimer()
		s.wantProbed(2)
		s.resend(2)
		s.advance(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		s.wantLost()
		s.advanceToTimer()
		s.wantLost(3, 4, 5)
		s.ctl.window = 1
		s.wantNextLost(true) // nothing is on the wire
		s.s.Resend(s.now, s.id(3))
		s.wantNextLost(false)
		s.ack(3, 5)
		s.wantAcked(3, 4, 5)
		s.wantIdle()
	})
}

// What was sent once and came meanwhile was the sign that it was the first.
func TestSenderOldestToldOtherwise(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := oldestAlone(t, cfg)
		s.batch()
		s.ack(3, 3)
		s.wantAcked(3)
		s.wantLost()
		s.advanceToTimer()
		s.wantLost()
		s.wantProbed(4, 10)
	})
}

// A copy that is acknowledged with what left before it tells nothing of the rest.
func TestSenderCopyAmongOthers(t *testing.T) {
	for _, order := range [][]int{{2, 6}, {6, 2}} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.measure(100 * time.Microsecond)
			s.send(10) // 2 to 11
			s.advance(100 * time.Microsecond)
			s.ack(3, 5)
			s.wantAcked(3, 4, 5)
			s.wantLost(2)
			s.resend(2)
			s.advance(100 * time.Microsecond)
			s.batch(order...)
			s.wantAcked(order...)
			s.wantLost()
		})
	}
}

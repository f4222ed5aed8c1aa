package ack

import (
	"testing"
)

// When nothing but copies is acknowledged until a timeout passes, the latest of them tells what it
// overtook, in whatever order they are named, and however many frames were sent before.
func TestSenderLatestCopyTells(t *testing.T) {
	for _, before := range []uint32{1, 1<<31 - 3, 1<<32 - 15, 1<<32 - 9, 1<<32 - 3} {
		for _, swapped := range []bool{false, true} {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				s := newSenderTest(t, cfg)
				s.s.order, s.s.reached = before, before-1
				s.measure(10 * ms) // 1
				s.send(2)          // 2, 3
				s.advanceToTimer()
				s.wantProbed(2, 3)
				s.s.Resend(s.now, s.id(2))
				s.send(4) // 4 to 7
				s.s.Resend(s.now, s.id(3))
				s.send(1) // 8
				s.advance(10 * ms)
				if swapped {
					s.batch(3, 2)
					s.wantAcked(3, 2)
				} else {
					s.batch(2, 3)
					s.wantAcked(2, 3)
				}
				s.wantLost() // they may be the first copies, and others follow
				s.advanceToTimer()
				s.wantLost(4, 5, 6, 7)
				s.wantProbed(8)
			})
		}
	}
}

// A frame that others overtook, and whose copy is acknowledged at once, had been
// slow: the copy tells nothing.
func TestSenderSlowFrameTellsNothing(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(10) // 2 to 11
		s.advance(10 * ms)
		s.ack(3, 5)
		s.wantAcked(3, 4, 5)
		s.wantLost(2)
		s.resend(2)
		s.stall(ms)
		s.batch(2)
		s.wantAcked(2)
		s.wantLost()
	})
}

// A batch that acknowledges nothing new leaves what is known to have arrived, however
// much was sent before.
func TestSenderEmptyBatch(t *testing.T) {
	for _, before := range []uint32{1, 1 << 31, 1<<32 - 100} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.s.order, s.s.reached = before+1, before
			s.measure(10 * ms)
			s.batch()
			s.send(4) // 2 to 5
			s.advance(10 * ms)
			s.batch(5)
			s.wantAcked(5)
			s.wantLost(2)
		})
	}
}

// A copy that was taken for lost when its acknowledgement came tells nothing of what
// left before it.
func TestSenderLostCopyTellsNothing(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(5) // 2 to 6
		s.advanceToTimer()
		s.wantProbed(2, 6)
		s.resend(2, 6)
		s.advanceToTimer()
		s.wantProbed(2, 6)
		s.batch(6)
		s.wantAcked(6)
		s.wantLost()
	})
}

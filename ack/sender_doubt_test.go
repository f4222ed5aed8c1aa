package ack

import "testing"

// When nothing but copies is acknowledged, the latest of them tells what it
// overtook, in whatever order they are named, and however many frames were sent
// before.
func TestSenderLatestCopyTells(t *testing.T) {
	for _, before := range []uint32{1, 1<<31 - 3, 1<<32 - 15} {
		for _, swapped := range []bool{false, true} {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				s := newSenderTest(t, cfg)
				s.s.order, s.s.reached = before, before-1
				s.measure(10 * ms) // 1
				s.send(2)          // 2, 3
				s.advanceToTimer()
				s.wantProbed(2, 3)
				s.s.Resend(s.now, s.id(2))
				s.send(5) // 4 to 8
				s.s.Resend(s.now, s.id(3))
				s.advance(10 * ms)
				if swapped {
					s.batch(3, 2)
					s.wantAcked(3, 2)
				} else {
					s.batch(2, 3)
					s.wantAcked(2, 3)
				}
				s.wantLost(4, 5, 6)
			})
		}
	}
}

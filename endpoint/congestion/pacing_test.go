package congestion

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestPacing checks that frames leave at the rate, however late the sender comes, and no more at once than a millisecond's worth.
func TestPacing(t *testing.T) {
	p := pacing{rate: 1e6, free: -ack.Instant(ms)}
	sent := 0
	now := ack.Instant(0)
	for now < ack.Instant(100*ms) {
		burst := 0
		for p.next(now) <= now {
			p.sent(now, 100)
			burst += 100
		}
		if sent += burst; burst > 1100 {
			t.Fatalf("%d bytes at once", burst)
		}
		now = p.next(now).Add(ms / 3)
	}
	if sent < 95_000 || sent > 101_100 {
		t.Errorf("%d bytes in 100 ms at a million a second", sent)
	}
}

// TestMissedTimes checks that a sender that gets its processor late sends what it could have sent since the frame that waits was free to leave, up to a
// bound, and that one that had nothing to send does not.
func TestMissedTimes(t *testing.T) {
	for _, c := range []struct {
		late, most time.Duration
		held       bool
		want       int
	}{
		{10 * ms, 20 * ms, true, 11_100},
		{10 * ms, 5 * ms, true, 6100},
		{10 * ms, 20 * ms, false, 1100},
		{0, 20 * ms, true, 1100},
	} {
		p := pacing{rate: 1e6, most: c.most, free: -ack.Instant(ms)}
		for p.free <= 0 {
			p.sent(0, 100)
		}
		if c.held {
			p.next(0)
		}
		now, burst := p.free.Add(c.late), 0
		for p.next(now) <= now {
			p.sent(now, 100)
			burst += 100
		}
		if burst > c.want || burst < c.want-1000 {
			t.Errorf("%v late, most %v, held %v: %d bytes at once, want %d", c.late, c.most, c.held, burst, c.want)
		}
	}
}

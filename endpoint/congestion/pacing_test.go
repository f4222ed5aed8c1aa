package congestion

import (
	"testing"

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

package congestion

import (
	"testing"

	"github.com/dgrdma/dgrdma/ack"
)

func near(got, want float64) bool { return got > want*.999 && got < want*1.001 }

// TestDeliveryRate checks that a sample is what was delivered from the moment in which the newest frame left, over the longer of the times in
// which that was sent and acknowledged: acknowledgements that come at once make no rate that was never sent.
func TestDeliveryRate(t *testing.T) {
	var d deliveryRates
	d.begin()
	at := func(n int) ack.Instant { return ack.Instant(n) * ack.Instant(ms) }
	for i := range 10 {
		d.sent(at(i), uint32(i+1), 1000, false)
	}
	for i := range 10 {
		d.acked(at(30), uint32(i+1), 1000, 20*ms) // all at once
	}
	s := d.sample(20 * ms)
	if !near(s.rate, 10_000/.030) || s.acked != 10_000 || s.delivered != 10_000 || s.inFlight != 10_000 {
		t.Errorf("%+v", s)
	}
	d.begin()
	// What left later is measured from the last delivery on.
	d.sent(at(30), 11, 1000, false)
	d.sent(at(40), 12, 1000, false)
	d.lostFrame(11, 1000)
	d.acked(at(60), 12, 1000, 20*ms)
	if s = d.sample(20 * ms); !near(s.rate, 1000/.030) || s.lostSince != 1000 || s.lost != 1000 {
		t.Errorf("%+v", s)
	}
	d.begin()
	// A sample of less than the shortest round trip says nothing.
	d.sent(at(60), 13, 1000, false)
	d.acked(at(61), 13, 1000, -1)
	if s = d.sample(20 * ms); s.rate != 0 || s.rtt >= 0 {
		t.Errorf("%+v", s)
	}
}

// TestAppLimited checks that samples are marked of frames that left when the application had no more, and no others.
func TestAppLimited(t *testing.T) {
	var d deliveryRates
	d.begin()
	d.sent(0, 1, 1000, false)
	d.appLimited()
	d.sent(1, 2, 1000, false)
	for i, want := range []bool{false, true, false} {
		order := uint32(i + 1)
		if order == 3 {
			d.sent(2, 3, 1000, false) // all that left before is delivered
		}
		d.acked(ack.Instant(ms), order, 1000, ms)
		if s := d.sample(0); s.appLimited != want {
			t.Errorf("frame %d: limited by the application: %v", order, s.appLimited)
		}
		d.begin()
	}
}

// TestTransmissionsAreFew checks that memory is for what is in flight.
func TestTransmissionsAreFew(t *testing.T) {
	var d deliveryRates
	d.begin()
	for order := range uint32(10_000) {
		d.sent(0, order, 1, false)
		if order >= 100 {
			d.acked(1, order-100, 1, 1)
		}
	}
	if len(d.frames) > 256 {
		t.Errorf("%d places for 100 frames in flight", len(d.frames))
	}
}

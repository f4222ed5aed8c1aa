package ack

import (
	"testing"
	"time"
)

// TestControllerState: each controller says what it does, and of that nothing that it does not know.
func TestControllerState(t *testing.T) {
	const mtu = 1000
	a := NewAdaptive(mtu)
	if got := a.Inspect(); got != (ControllerState{Controller: "adaptive"}) {
		t.Errorf("before the first frame: %+v", got)
	}
	now := Instant(time.Second)
	for i := range uint32(1000) {
		a.OnSent(now, i, mtu)
		now = now.Add(time.Millisecond)
		a.OnAcked(now, i, mtu, time.Millisecond)
		a.EndBatch(now)
	}
	if got := a.Inspect(); got.Bandwidth < 0.99e6 || got.Bandwidth > 1.01e6 || got.MinRTT != time.Millisecond || got.InflightLongTerm != 0 || got.PacingRate != 0 {
		t.Errorf("a frame of %d bytes each millisecond: %+v", mtu, got)
	}
	for i := range uint32(1000) {
		a.OnSent(now, i, mtu)
		now = now.Add(time.Millisecond)
		a.OnLost(now, i, mtu, false)
		a.EndBatch(now)
	}
	if got := a.Inspect(); got.InflightLongTerm == 0 || got.InflightLongTerm != a.Cap() {
		t.Errorf("all is lost: %+v", got)
	}
	if got := NewPacer(1<<20, 5000).Inspect(); got != (ControllerState{Controller: "paced", PacingRate: 5000}) {
		t.Errorf("%+v", got)
	}
	if got := (&FixedWindow{}).Inspect(); got != (ControllerState{Controller: "fixed"}) {
		t.Errorf("%+v", got)
	}
}

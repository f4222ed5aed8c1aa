package ack

import "testing"

// farPath is a controller of a path that is far, or not.
type farPath struct {
	FixedWindow
	far bool
}

func (p *farPath) IsFar() bool { return p.far }

// TestFarWindow checks that more frames may wait where the controller says that the path is far, and only there.
func TestFarWindow(t *testing.T) {
	ctl := &farPath{}
	var f Flight
	f.Init(0, FlightConfig{Epoch: 1, Window: 10, Far: 50}, ctl)
	for _, step := range []struct {
		far  bool
		want int
	}{{false, 10}, {true, 50}, {false, 50}} {
		ctl.far = step.far
		f.EndBatch(0)
		for f.Limit(0, 100) == Open {
			f.Track(0, 100)
		}
		if f.InFlight() != step.want || f.Limit(0, 100) != WindowFull {
			t.Errorf("far %v: %d frames wait, want %d", step.far, f.InFlight(), step.want)
		}
	}
}

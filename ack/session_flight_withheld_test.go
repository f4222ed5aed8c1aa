package ack

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// newFarWorld is a flightWorld whose path is far.
func newFarWorld(t *testing.T, seed uint64, epoch uint32, window int) *flightWorld {
	w := newFlightWorld(t, seed, epoch, window)
	cfg := w.f.cfg
	cfg.Random, cfg.GiveUp = w.r.Uint32, time.Minute
	w.f.Init(0, cfg, &farPath{far: true})
	w.f.EndBatch(0)
	return w
}

// TestWithheldIdsArrive checks that ids are withheld on a far path, that each of them arrives after all, and that no peer which acknowledges what
// came is taken for one that lies, whatever the network does, over the end of the ids.
func TestWithheldIdsArrive(t *testing.T) {
	for _, epoch := range []uint32{0, 0xFFFFFFFF - 300, 0x7FFFFFFF - 300} {
		for _, loss := range []float64{0, .01, .1, .4} {
			for _, jitter := range []time.Duration{0, 100 * time.Microsecond, 5 * time.Millisecond} {
				seed := rand.Uint64()
				w := newFarWorld(t, seed, epoch, 100)
				w.delay = func() time.Duration {
					if w.r.Float64() < loss {
						return -1
					}
					return time.Millisecond + time.Duration(w.r.Int64N(int64(jitter+1)))
				}
				w.batch = time.Duration(w.r.Int64N(int64(200 * time.Microsecond)))
				w.send(5000)
				if len(w.done) != 5000+w.late || w.f.InFlight() != 0 || w.f.bytes != 0 || w.f.Lied() {
					t.Errorf("seed %d: %d of %d done, %d in flight, %d bytes, lied %v", seed, len(w.done), 5000+w.late, w.f.InFlight(), w.f.bytes, w.f.Lied())
				}
				if w.late < 2 || w.late > 25 {
					t.Errorf("seed %d: %d ids were withheld, of 5000", seed, w.late)
				}
				for id, n := range w.arrived {
					if n != 1 {
						t.Errorf("seed %d: frame %d was applied %d times", seed, id, n)
					}
				}
			}
		}
	}
}

// TestNothingIsWithheld checks that no id is withheld on a near path, nor where few frames are in flight.
func TestNothingIsWithheld(t *testing.T) {
	for name, w := range map[string]*flightWorld{
		"near": newFlightWorld(t, 1, 0, 100),
		"few":  newFarWorld(t, 1, 0, withholdFrom-1),
	} {
		w.delay = func() time.Duration { return time.Millisecond }
		if w.send(5000); w.late != 0 {
			t.Errorf("%s: %d ids were withheld", name, w.late)
		}
	}
}

// TestPretendedNearness checks that no delay for which a peer says that it held an acknowledgement back makes a round trip shorter than the shortest one took, and that none hides a queue.
func TestPretendedNearness(t *testing.T) {
	ctl := &tripRange{}
	var f Flight
	f.Init(0, FlightConfig{Epoch: 7, Window: 100, MinRTO: time.Hour, MaxRTO: time.Hour, GiveUp: time.Hour}, ctl)
	const took = 40 * time.Millisecond
	for round := range 20 {
		now := Instant(round) * Instant(time.Second)
		for range 50 {
			f.Track(now, 100)
		}
		now = now.Add(took + time.Duration(round)*time.Millisecond)
		f.AppendAcked(nil, now, &Acknowledgement{UpTo: f.Next() - 1, HasEcho: true, Echo: Echo{ID: f.Next() - 1, Delay: 39 * time.Millisecond}})
		f.EndBatch(now)
	}
	if ctl.shortest != took {
		t.Errorf("the shortest round trip is %v, want %v", ctl.shortest, took)
	}
	if want := took + 19*time.Millisecond; ctl.longest != want {
		t.Errorf("the longest round trip is %v, want %v, which waited in a queue", ctl.longest, want)
	}
}

// tripRange is a controller that notes the shortest and the longest round trip.
type tripRange struct {
	FixedWindow
	shortest, longest time.Duration
}

func (c *tripRange) OnAcked(_ Instant, _ uint32, _ int, rtt time.Duration) {
	if rtt > 0 && (c.shortest == 0 || rtt < c.shortest) {
		c.shortest = rtt
	}
	c.longest = max(c.longest, rtt)
}

// TestFalseAcknowledgements checks that a receiver which acknowledges a part of what is in flight before it came is found, however small that part is, and
// in which form it says so, and that what it says from then on acknowledges nothing (RFC 9000 section 21.4).
func TestFalseAcknowledgements(t *testing.T) {
	forms := map[string]func(upTo, top uint32) Acknowledgement{
		"cumulative": func(_, top uint32) Acknowledgement { return Acknowledgement{UpTo: top} },
		"range": func(upTo, top uint32) Acknowledgement {
			return Acknowledgement{UpTo: upTo, Ranges: []frame.Range{{First: upTo + 1, Count: int(top - upTo)}}}
		},
		"echo": func(upTo, top uint32) Acknowledgement {
			return Acknowledgement{UpTo: upTo, Echo: Echo{ID: upTo + 1}, HasEcho: true}
		},
	}
	const window, trip = 100, 100 // in frames: one leaves in each turn
	for name, form := range forms {
		for _, part := range []int{10, 50, 80} { // of what is in flight, in percent
			for seed := range uint64(20) {
				var f Flight
				f.Init(0, FlightConfig{Epoch: 7, Window: window * 2, MinRTO: time.Hour, MaxRTO: time.Hour, GiveUp: time.Hour, Random: rand.New(rand.NewPCG(seed, 7)).Uint32}, &farPath{far: true})
				f.EndBatch(0)
				claims := max(trip*(100-part)/100, 1) // how many turns after a frame left it is said to have come
				var left []uint32                     // by turn
				turns := 0
				for ; turns < 20_000 && !f.Lied(); turns++ {
					now := Instant(turns) * Instant(time.Millisecond)
					if f.Withheld() {
						f.TrackWithheld(now, 20)
					}
					if f.Limit(now, 1000) == Open {
						left = append(left, f.Track(now, 1000))
					}
					if n := len(left) - claims; n > 0 && f.InFlight() > 0 {
						// The liar answers as if that frame, and all before it, had come.
						if top := left[n-1]; int32(top-f.Oldest()) >= 0 {
							a := form(f.Oldest()-1, top)
							f.AppendAcked(nil, now, &a)
							f.EndBatch(now)
						}
					}
				}
				if !f.Lied() || turns > 300 {
					t.Fatalf("%s, %d %% ahead, seed %d: found %v after %d round trips", name, part, seed, f.Lied(), turns/trip)
				}
				before, next := f.InFlight(), f.Next()
				a := Acknowledgement{UpTo: next - 1}
				if ids, ok := f.AppendAcked(nil, Instant(time.Hour), &a); ok || len(ids) > 0 || f.InFlight() != before {
					t.Errorf("%s: a lie acknowledged %d frames", name, len(ids))
				}
			}
		}
	}
}

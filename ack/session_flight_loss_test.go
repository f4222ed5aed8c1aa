package ack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// flightTest drives a Flight. Frames are named by the place of their id: 1 is the first one of the session, whatever the id.
// Each loss must be asked for by wantLost before the next action, else the test fails.
type flightTest struct {
	t     *testing.T
	f     Flight
	ctl   *recorder
	epoch uint32
	now   Instant
	last  int // place of the last frame
}

// flightTests runs a script with ids that pass the end of 32 bits, or half of them, and with usual ones.
func flightTests(t *testing.T, script func(s *flightTest)) {
	for _, epoch := range []uint32{0, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0x7FFFFFFE} {
		t.Run(fmt.Sprintf("epoch=%#x", epoch), func(t *testing.T) {
			s := &flightTest{t: t, ctl: &recorder{t: t, onWire: make(map[int]int)}, epoch: epoch, now: Instant(time.Hour)}
			s.f.Init(s.now, FlightConfig{
				Epoch: epoch, Window: 1024, MinRTO: flightRTO, MaxRTO: time.Second, AckDelay: 2 * ms, AckEvery: 2, GiveUp: time.Hour,
			}, s.ctl)
			script(s)
			s.wantLost()
		})
	}
}

func (s *flightTest) id(place int) uint32 { return s.epoch + uint32(place) }

func (s *flightTest) wait(d time.Duration) { s.now = s.now.Add(d) }

// send sends n new frames.
func (s *flightTest) send(n int) {
	s.t.Helper()
	s.wantLost()
	for range n {
		s.last++
		if id := s.f.Track(s.now, s.last); id != s.id(s.last) {
			s.t.Fatalf("frame %d has id %#x", s.last, id)
		}
	}
}

// resend sends a lost frame again, and checks its copy number.
func (s *flightTest) resend(place int, copied uint8) {
	s.t.Helper()
	s.wantLost()
	id, ok := s.f.NextLost(s.now)
	if !ok || id != s.id(place) {
		s.t.Fatalf("next is %#x, %v, want frame %d", id, ok, place)
	}
	if got := s.f.Resend(s.now, id); got != copied {
		s.t.Fatalf("copy %d, want %d", got, copied)
	}
}

// said is an acknowledgement frame: its echo is frame place.
type said struct {
	upTo, place int
	copied      uint8
	again       bool
	delay       time.Duration
	ranges      [][2]int // first and last places
}

// acked applies an acknowledgement frame, and checks which frames it acknowledges for the first time.
func (s *flightTest) acked(x said, want ...int) {
	s.t.Helper()
	a := Acknowledgement{UpTo: s.id(x.upTo), HasEcho: true, Echo: Echo{s.id(x.place), x.copied, x.again, x.delay}}
	for _, r := range x.ranges {
		a.Ranges = append(a.Ranges, frame.Range{First: s.id(r[0]), Count: r[1] - r[0] + 1})
	}
	s.apply(&a, want)
}

// carried applies an acknowledgement that rides on data.
func (s *flightTest) carried(upTo int, want ...int) {
	s.t.Helper()
	s.apply(&Acknowledgement{UpTo: s.id(upTo)}, want)
}

func (s *flightTest) apply(a *Acknowledgement, want []int) {
	s.t.Helper()
	s.wantLost()
	ids, ok := s.f.AppendAcked(nil, s.now, a)
	var got []int
	for _, id := range ids {
		got = append(got, int(id-s.epoch))
	}
	if !ok || !slices.Equal(got, want) {
		s.t.Fatalf("%+v acknowledges %v, %v, want %v", a, got, ok, want)
	}
	s.f.EndBatch(s.now)
}

// expire waits until something is due, d from now.
func (s *flightTest) expire(d time.Duration, want Expiry) {
	s.t.Helper()
	s.wantLost()
	at, armed := s.f.Deadline()
	if !armed || at != s.now.Add(d) {
		s.t.Fatalf("next is due in %v, %v, want %v", at.Sub(s.now), armed, d)
	}
	s.now = at
	if got := s.f.Expire(at, at); got != want {
		s.t.Fatalf("expired: %v, want %v", got, want)
	}
}

// wantLost checks which frames were found to be lost, by others that arrived or by a timeout.
func (s *flightTest) wantLost(places ...int) {
	s.t.Helper()
	got := slices.Concat(s.ctl.lost, s.ctl.probed)
	s.ctl.lost, s.ctl.probed = nil, nil
	if !slices.Equal(got, places) {
		s.t.Fatalf("lost: %v, want %v", got, places)
	}
}

// wantSample checks what the last acknowledgement measured; 0: nothing.
func (s *flightTest) wantSample(want time.Duration) {
	s.t.Helper()
	if d, ok := s.f.Measured(); d != want || ok != (want > 0) {
		s.t.Fatalf("measured %v, %v, want %v", d, ok, want)
	}
}

// wantLate checks how much longer than others frames may take.
func (s *flightTest) wantLate(want time.Duration) {
	s.t.Helper()
	if s.f.late != want {
		s.t.Fatalf("frames may be late by %v, want %v", s.f.late, want)
	}
}

// settle has frame 1 be acknowledged after 4 ms, so that the round trip is known.
func (s *flightTest) settle() {
	s.t.Helper()
	s.send(1)
	s.wait(4 * ms)
	s.acked(said{upTo: 1, place: 1}, 1)
	s.wantSample(4 * ms)
	s.wait(6 * ms)
}

// loses has the next frame be lost among four others, which takes 4 ms, and sends it again.
func (s *flightTest) loses() (place int) {
	s.t.Helper()
	first := s.last + 1
	s.send(5)
	s.wait(4 * ms)
	s.acked(said{upTo: first - 1, place: first + 4, ranges: [][2]int{{first + 1, first + 4}}}, first+1, first+2, first+3, first+4)
	if s.f.late > 0 {
		s.expire(s.f.overdue()-4*ms, Nothing)
	}
	s.wantLost(first)
	s.resend(first, 1)
	return first
}

// TestFlightSamples checks of which acknowledgements the round trip is measured, and exactly what.
func TestFlightSamples(t *testing.T) {
	for name, script := range map[string]func(s *flightTest){
		"of the echo, less the peer's delay": func(s *flightTest) {
			s.send(2)
			s.wait(5 * ms)
			s.acked(said{upTo: 2, place: 1, delay: 2 * ms}, 1, 2)
			s.wantSample(3 * ms)
		},
		"of the newest frame, where it rides on data": func(s *flightTest) {
			for range 3 {
				s.send(1)
				s.wait(ms)
			}
			s.wait(2 * ms)
			s.carried(3, 1, 2, 3)
			s.wantSample(3 * ms)
		},
		"not of a delay too long to be told": func(s *flightTest) {
			s.send(1)
			s.wait(100 * ms)
			s.acked(said{upTo: 1, place: 1, delay: noDelay}, 1)
			s.wantSample(0)
		},
		"of a delay longer than all: the least there is": func(s *flightTest) {
			s.send(1)
			s.wait(ms)
			s.acked(said{upTo: 1, place: 1, delay: 3 * ms}, 1)
			s.wantSample(1)
		},
		"of no frame before the first": func(s *flightTest) {
			s.send(1)
			s.wait(ms)
			s.acked(said{upTo: 1, place: 0}, 1)
			s.wantSample(0)
		},
		"of the last copy": func(s *flightTest) {
			first := s.loses()
			s.wait(3 * ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1, delay: ms}, first)
			s.wantSample(2 * ms)
		},
		"of the first transmission, which only came late": func(s *flightTest) {
			first := s.loses()
			s.wait(3 * ms)
			s.acked(said{upTo: first + 4, place: first, delay: ms}, first)
			s.wantSample(6 * ms)
		},
		"not of a copy between": func(s *flightTest) {
			s.send(1)
			for copied := range uint8(2) {
				at, _ := s.f.Deadline()
				s.expire(at.Sub(s.now), Probe)
				s.wantLost(1)
				s.resend(1, copied+1)
			}
			s.wait(ms)
			s.acked(said{upTo: 1, place: 1, copied: 1}, 1)
			s.wantSample(0)
		},
		"not of the seventh copy, which stands for all that follow": func(s *flightTest) {
			s.send(1)
			for copied := range uint8(9) {
				at, _ := s.f.Deadline()
				s.expire(at.Sub(s.now), Probe)
				s.wantLost(1)
				s.resend(1, min(copied+1, frame.MostCopies))
			}
			s.wait(ms)
			s.acked(said{upTo: 1, place: 1, copied: frame.MostCopies}, 1)
			s.wantSample(0)
		},
		"not of a copy that never left": func(s *flightTest) {
			s.send(1)
			s.wait(ms)
			s.acked(said{upTo: 1, place: 1, copied: 1}, 1)
			s.wantSample(0)
		},
		"not where a frame was sent twice, and it rides on data": func(s *flightTest) {
			first := s.loses()
			s.send(1)
			s.wait(3 * ms)
			s.carried(s.last, first, s.last)
			s.wantSample(0)
		},
		"not while one is lost, and it rides on data": func(s *flightTest) {
			s.send(2)
			s.expire(80*ms, Probe) // 4 of the least timeouts
			s.wantLost(1, 2)
			s.send(1)
			s.wait(ms)
			s.carried(1, 1)
			s.wantSample(0)
		},
		"once, though it comes twice": func(s *flightTest) {
			s.send(1)
			s.wait(2 * ms)
			s.acked(said{upTo: 1, place: 1}, 1)
			s.wantSample(2 * ms)
			for range 2 {
				s.wait(time.Minute)
				s.acked(said{upTo: 1, place: 1})
				s.wantSample(0)
				s.carried(1)
				s.wantSample(0)
			}
		},
		"of what the network doubled, where the first acknowledgement is lost": func(s *flightTest) {
			s.send(1)
			s.wait(2 * ms)
			s.acked(said{upTo: 1, place: 1, again: true}, 1)
			s.wantSample(2 * ms)
		},
		"not of what the network held back": func(s *flightTest) {
			first := s.loses()
			s.wait(3 * ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1}, first)
			before := s.f.rtt
			for copied := range uint8(2) { // with something new
				s.send(1)
				s.wait(time.Minute)
				s.acked(said{upTo: s.last, place: first, copied: copied, again: true}, s.last)
				s.wantSample(0)
			}
			if s.f.rtt != before {
				s.t.Errorf("round trips %+v, before %+v", s.f.rtt, before)
			}
		},
		"of a frame that came last, and that no range has": func(s *flightTest) {
			s.send(2)
			s.wait(ms / 2)
			s.acked(said{upTo: 0, place: 2}, 2)
			s.wantSample(ms / 2)
		},
	} {
		t.Run(name, func(t *testing.T) { flightTests(t, script) })
	}
}

// TestFlightSpurious checks that a frame that was sent again for nothing is noticed, with exactly how late it was, and
// that what only looks like one changes nothing.
func TestFlightSpurious(t *testing.T) {
	for name, script := range map[string]func(s *flightTest, first int){
		"the first transmission arrives, and then the second": func(s *flightTest, first int) {
			s.wait(2 * ms)
			s.acked(said{upTo: first + 4, place: first}, first)
			s.wantLate(2*ms + ms/2)
			s.wait(2 * ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1, again: true})
			s.wantLate(2*ms + ms/2)
		},
		"the peer held the acknowledgement back": func(s *flightTest, first int) {
			s.wait(2 * ms)
			s.acked(said{upTo: first + 4, place: first, delay: ms}, first)
			s.wantLate(ms + ms/4)
		},
		"the second arrives, and then the first": func(s *flightTest, first int) {
			s.wait(4 * ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1}, first)
			s.wantLate(0)
			s.wait(2 * ms)
			s.acked(said{upTo: first + 4, place: first, again: true})
			s.wantLate(6*ms + 6*ms/4)
			s.acked(said{upTo: first + 4, place: first, copied: 1, again: true})
			s.acked(said{upTo: first + 4, place: first, again: true})
			s.wantLate(6*ms + 6*ms/4)
		},
		"both arrive, and the first acknowledgement is lost": func(s *flightTest, first int) {
			s.wait(4 * ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1, again: true}, first)
			s.wantLate(ms) // a quarter of a round trip
			s.wait(ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1, again: true})
			s.wantLate(ms)
		},
		"what was sent again is doubled": func(s *flightTest, first int) {
			s.wait(4 * ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1}, first)
			s.wait(ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1, again: true})
			s.wantLate(0)
		},
		"others are doubled": func(s *flightTest, first int) {
			s.wait(4 * ms)
			s.acked(said{upTo: first + 4, place: first, copied: 1}, first)
			for place := first + 1; place < first+5; place++ {
				s.acked(said{upTo: first + 4, place: place, again: true})
			}
			s.wantLate(0)
		},
		"the first is held back for a minute": func(s *flightTest, first int) {
			s.wait(time.Minute)
			s.f.Expire(s.now, s.now)
			s.wantLost(first)
			s.resend(first, 2)
			s.acked(said{upTo: first + 4, place: first}, first)
			s.wantLate(0)
		},
		"the first is held back for a minute, and so is another one": func(s *flightTest, first int) {
			for n := range 2 {
				s.wait(4 * ms)
				s.carried(first+4, first)
				s.wait(100 * ms)
				for range 2 { // what arrives twice is no other one
					s.acked(said{upTo: first + 4, place: first, again: true})
				}
				if n == 0 {
					s.wantLate(0)
					first = s.loses()
				}
			}
			s.wantLate(104*ms + 104*ms/4)
		},
		"the first is held back for a minute, and so is another one much later": func(s *flightTest, first int) {
			for range 2 {
				s.wait(4 * ms)
				s.carried(first+4, first)
				s.wait(time.Minute)
				s.acked(said{upTo: first + 4, place: first, again: true})
				s.wantLate(0)
				for range heldKeeps {
					first = s.loses()
					s.wait(4 * ms)
					s.carried(first+4, first)
				}
				first = s.loses()
			}
		},
		"its acknowledgement is held back for a minute": func(s *flightTest, first int) {
			s.wait(4 * ms)
			s.carried(first+4, first)
			s.wait(time.Minute)
			s.acked(said{upTo: first + 4, place: first})
			s.wantLate(0)
		},
		"so many were sent again since that it is forgotten": func(s *flightTest, first int) {
			s.wait(4 * ms)
			s.carried(first+4, first)
			for range answersKept {
				again := s.loses()
				s.wait(4 * ms)
				s.carried(again+4, again)
			}
			s.acked(said{upTo: s.last, place: first, copied: 1, again: true})
			s.wantLate(0)
		},
		"just not so many": func(s *flightTest, first int) {
			s.wait(4 * ms)
			s.carried(first+4, first)
			for range answersKept - 1 {
				again := s.loses()
				s.wait(4 * ms)
				s.carried(again+4, again)
			}
			s.acked(said{upTo: s.last, place: first, copied: 1, again: true})
			s.wantLate(ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			flightTests(t, func(s *flightTest) {
				s.settle()
				script(s, s.loses())
			})
		})
	}
}

// TestFlightSpuriousUnsent checks that a frame that was taken for lost, and is acknowledged before it is sent again, tells how late it was, and that
// a frame that was sent again after a timeout tells nothing: the network need not reorder for that.
func TestFlightSpuriousUnsent(t *testing.T) {
	flightTests(t, func(s *flightTest) {
		s.settle()
		s.send(5)
		s.wait(4 * ms)
		s.acked(said{upTo: 1, place: 6, ranges: [][2]int{{3, 6}}}, 3, 4, 5, 6)
		s.wantLost(2)
		s.wait(4 * ms)
		s.acked(said{upTo: 6, place: 2}, 2)
		s.wantLate(5 * ms)
	})
	flightTests(t, func(s *flightTest) {
		s.settle()
		s.send(1)
		s.expire(flightRTO, Probe)
		s.wantLost(2)
		s.resend(2, 1)
		s.wait(ms)
		s.acked(said{upTo: 2, place: 2}, 2)
		s.wantSample(flightRTO + ms)
		s.wait(ms)
		s.acked(said{upTo: 2, place: 2, copied: 1, again: true})
		s.wantLate(0)
	})
}

// TestFlightForgetsToReorder checks that frames may be half as late after 16 losses in a row of which none was spurious, and not before.
func TestFlightForgetsToReorder(t *testing.T) {
	flightTests(t, func(s *flightTest) {
		s.settle()
		first := s.loses()
		s.wait(2 * ms)
		s.acked(said{upTo: first + 4, place: first}, first)
		late := 2*ms + ms/2
		for range 3 {
			for n := range reorderKeeps {
				s.wantLate(late)
				s.wait(time.Second)
				again := s.loses()
				s.wait(4 * ms)
				s.acked(said{upTo: again + 4, place: again, copied: 1}, again)
				if n == reorderKeeps-1 {
					late /= 2
				}
			}
		}
		s.wantLate(late)
	})
}

// TestFlightOrder checks that a frame is lost when the third one that left later has arrived, that an echo tells which transmission
// arrived, and that an earlier one does not overtake what left after it.
func TestFlightOrder(t *testing.T) {
	flightTests(t, func(s *flightTest) {
		s.settle()
		s.send(4)
		s.wait(ms)
		s.acked(said{upTo: 1, place: 4, ranges: [][2]int{{3, 4}}}, 3, 4)
		s.wantLost()
		s.acked(said{upTo: 1, place: 5, ranges: [][2]int{{3, 5}}}, 5)
		s.wantLost(2)
		s.resend(2, 1)
		s.send(3) // 6 to 8
		s.wait(ms)
		// The first transmission of frame 2: it left before 6 to 8, of which none is overtaken.
		s.acked(said{upTo: 5, place: 2}, 2)
		s.wantLost()
		s.acked(said{upTo: 8, place: 8}, 6, 7, 8)
	})
	// A copy that arrives overtakes what left before it, and nothing else.
	flightTests(t, func(s *flightTest) {
		s.settle()
		s.send(5)
		s.wait(4 * ms)
		s.acked(said{upTo: 1, place: 6, ranges: [][2]int{{3, 6}}}, 3, 4, 5, 6)
		s.wantLost(2)
		s.send(3) // 7 to 9
		s.resend(2, 1)
		s.send(1) // 10
		s.wait(4 * ms)
		s.acked(said{upTo: 6, place: 2, copied: 1}, 2)
		s.wantLost(7)           // by three
		s.expire(ms/2, Nothing) // an eighth of a round trip
		s.wantLost(8, 9)
		for _, place := range []int{7, 8, 9} {
			s.resend(place, 1)
		}
		s.acked(said{upTo: 10, place: 10}, 7, 8, 9, 10)
	})
}

// TestFlightAcknowledgementsLost checks that what a lost acknowledgement said the next one says, so that nothing is sent again, and that where
// it is the only one for a whole window two frames are, which tell no lateness.
func TestFlightAcknowledgementsLost(t *testing.T) {
	flightTests(t, func(s *flightTest) {
		s.settle()
		s.send(5)
		s.wait(2 * ms)
		s.send(1)
		s.wait(4 * ms) // that of 2 to 6 is lost
		s.acked(said{upTo: 7, place: 7}, 2, 3, 4, 5, 6, 7)
		s.wantSample(4 * ms)
	})
	flightTests(t, func(s *flightTest) {
		s.settle()
		s.send(5)
		s.expire(12*ms, Probe) // as the peer holds no acknowledgement of two frames back
		s.wantLost(2, 6)
		s.resend(2, 1)
		s.resend(6, 1)
		s.wait(4 * ms)
		s.acked(said{upTo: 6, place: 2, copied: 1, again: true}, 2, 3, 4, 5, 6)
		s.wantSample(4 * ms)
		s.acked(said{upTo: 6, place: 6, copied: 1, again: true})
		s.wantSample(0)
		s.wantLate(0)
	})
}

// TestFlightSeveralPaths checks that frames are soon no more sent again for nothing where a part of them takes a path that is much longer,
// whichever paths acknowledgements take, also where some are lost. Of the frames that arrive together an acknowledgement names the
// last one: where a path takes far longer than a timeout, many are sent again until that is noticed, which is not tested.
func TestFlightSeveralPaths(t *testing.T) {
	for _, paths := range [][]time.Duration{{ms, 5 * ms}, {ms, 12 * ms}, {ms, 2 * ms, 20 * ms}} {
		for _, loss := range []float64{0, .01} {
			for _, both := range []bool{false, true} {
				seed := rand.Uint64()
				w := newFlightWorld(t, seed, 0xFFFFFFFF-3000, 100)
				w.delay = func() time.Duration {
					if w.r.Float64() < loss {
						return -1
					}
					return paths[w.r.IntN(len(paths))]
				}
				if !both {
					w.ackDelay = func() time.Duration { return ms }
				}
				w.batch = 50 * time.Microsecond
				w.send(3000)
				w.lost = 0
				again := w.send(10_000)
				if again > 2*w.lost+600 {
					t.Errorf("seed %d, paths %v, acknowledgements on all %v: %d sent again, %d lost", seed, paths, both, again, w.lost)
				}
			}
		}
	}
}

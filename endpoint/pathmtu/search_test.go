package pathmtu

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestSearchConverges checks that whatever arrives and is answered, the search ends with a length that
// arrived. Where nothing is lost by chance, it is the longest.
func TestSearchConverges(t *testing.T) {
	const step, least = 8, 138
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		usual := least + step*(8+r.IntN(150))
		most := usual + step*(1+r.IntN(1000))
		carries := least + r.IntN(most-least+step)
		loss := []float64{0, 0.1, 0.5}[r.IntN(3)]
		var s Search
		s.Begin(0, Sizes{Least: least, Usual: usual, Most: most, Step: step}, 0)
		done, rounds, longest := false, 0, least
		for ; !done && rounds < 1000; rounds++ {
			now := s.RoundEnds()
			best := 0
			for s.MustSend() {
				if size := s.Send(); size <= carries && r.Float64() >= loss {
					best = max(best, size)
				}
			}
			if best > 0 && r.Float64() >= loss {
				longest = max(longest, best)
				done = s.Arrived(now, best)
			}
			done = done || s.EndRound(now)
		}
		want := min(carries-(carries-least)%step, most)
		if !done || s.Proven() != longest || loss == 0 && (s.Proven() != want || rounds > 12) {
			t.Fatalf("seed %d: %d of %d to %d, loss %v: done %v after %d rounds with %d, longest that arrived %d", seed, carries, usual, most, loss, done, rounds, s.Proven(), longest)
		}
	}
}

// TestAnswersToNoProbe checks that an answer that names a length of no probe changes nothing.
func TestAnswersToNoProbe(t *testing.T) {
	sizes := Sizes{Least: 138, Usual: 1002, Most: 1402, Step: 8}
	for _, size := range []int{-1, 0, 130, 137, 139, 1403, 1410, 65535} {
		var s Search
		s.Begin(0, sizes, time.Millisecond)
		before := s
		if done := s.Arrived(5, size); done || s != before {
			t.Errorf("%d bytes: done %v, %+v, was %+v", size, done, s, before)
		}
	}
}

// TestNoAnswer checks that rounds without an answer grow to a second each, ask for lengths from the longest to the
// least, and conclude nothing (RFC 8899 section 5.1.2).
func TestNoAnswer(t *testing.T) {
	var s Search
	s.Begin(0, Sizes{Least: 138, Usual: 1002, Most: 1402, Step: 8}, 0)
	least, last := 1402, ack.Instant(0)
	for range 20 {
		for s.MustSend() {
			least = min(least, s.Send())
		}
		last = s.round
		if s.EndRound(s.RoundEnds()) {
			t.Fatalf("over, with %d", s.Proven())
		}
	}
	if d := s.round.Sub(last); d != mostRound || least != 138 || s.Rounds() != 0 || s.Heard() != 0 {
		t.Errorf("rounds of %v, %d the shortest probe, %d were answered, heard at %v", d, least, s.Rounds(), s.Heard())
	}
}

// TestStandstill checks that a process that stood still does not take that for the peer's silence.
func TestStandstill(t *testing.T) {
	var s Search
	s.Begin(0, Sizes{Least: 138, Usual: 1002, Most: 1402, Step: 8}, 0)
	late := s.RoundEnds().Add(standsStill + 1)
	s.EndRound(late)
	if s.Heard() != late {
		t.Errorf("an answer came last at %v, want %v", s.Heard(), late)
	}
}

// usual is a search of a few lengths.
var usual = Sizes{Least: 138, Usual: 1002, Most: 1402, Step: 8}

// sends returns the lengths of the probes that must leave.
func sends(s *Search) (sizes []int) {
	for s.MustSend() {
		sizes = append(sizes, s.Send())
	}
	return sizes
}

// TestFirstRound checks that the first round asks for the longest frame alone, and takes two round trips, or 20 ms.
func TestFirstRound(t *testing.T) {
	for rtt, want := range map[time.Duration]time.Duration{
		0: 20 * time.Millisecond, 10 * time.Millisecond: 20 * time.Millisecond, 11 * time.Millisecond: 22 * time.Millisecond, time.Second: 2 * time.Second,
	} {
		var s Search
		s.Begin(7, usual, rtt)
		if sizes := sends(&s); !slices.Equal(sizes, []int{1402}) || s.RoundEnds().Sub(7) != want {
			t.Errorf("round trip %v: asks for %v, ends after %v, want %v", rtt, sizes, s.RoundEnds().Sub(7), want)
		}
	}
}

// TestSecondRound checks that a round asks for lengths between what probably arrives and the longest, the longest last, and first for one
// that is proven.
func TestSecondRound(t *testing.T) {
	var s Search
	s.Begin(0, usual, 0)
	sends(&s)
	s.EndRound(s.RoundEnds())
	sizes := sends(&s)
	if len(sizes) != mostProbes+1 || sizes[0] != 138 || sizes[mostProbes] != 1402 || !slices.IsSorted(sizes) || sizes[1] < 1002 {
		t.Errorf("asks for %v", sizes)
	}
	s.Begin(0, Sizes{Least: 138, Usual: 138, Most: 1402, Step: 8}, 0)
	sends(&s)
	s.EndRound(s.RoundEnds())
	if sizes := sends(&s); len(sizes) != mostProbes || sizes[0] != 138 || sizes[1] == 138 {
		t.Errorf("asks for %v, where nothing longer probably arrives than what is proven", sizes)
	}
}

// TestRoundTrip checks how long rounds are after answers: twice what the answer took since the round began, if no other round asked for that
// length, and within 20 ms and a second; and that such an answer alone measures again.
func TestRoundTrip(t *testing.T) {
	const rtt = 30 * time.Millisecond
	for _, c := range []struct {
		name string
		size func(sizes []int) int // of the answer, in the second round
		took time.Duration
		wait time.Duration
	}{
		{"of this round alone", func(sizes []int) int { return sizes[2] }, 40 * time.Millisecond, 80 * time.Millisecond},
		{"of this round alone, the longest of those", func(sizes []int) int { return sizes[len(sizes)-2] }, 40 * time.Millisecond, 80 * time.Millisecond},
		{"soon", func(sizes []int) int { return sizes[2] }, time.Millisecond, 20 * time.Millisecond},
		{"late", func(sizes []int) int { return sizes[2] }, 700 * time.Millisecond, time.Second},
		{"the longest, of the round before as well", func(sizes []int) int { return sizes[len(sizes)-1] }, 40 * time.Millisecond, 2 * rtt},
		{"the proven one", func(sizes []int) int { return sizes[0] }, 40 * time.Millisecond, 2 * rtt},
		{"what probably arrives, which other rounds may ask for", func([]int) int { return 1002 }, 40 * time.Millisecond, 2 * rtt},
	} {
		var s Search
		s.Begin(0, usual, rtt)
		sends(&s)
		began := s.RoundEnds()
		s.EndRound(began)
		s.Arrived(began.Add(c.took), c.size(sends(&s)))
		if d := s.RoundEnds().Sub(began); d != c.wait {
			t.Errorf("%s: an answer after %v, the round takes %v, want %v", c.name, c.took, d, c.wait)
		}
	}
}

// TestRoundTripIsNotKnown checks that, where no round trip was known, the first answer takes what has passed since the search began for one, and
// the next ones do not.
func TestRoundTripIsNotKnown(t *testing.T) {
	var s Search
	s.Begin(0, usual, 0)
	sends(&s)
	began := s.RoundEnds()
	s.EndRound(began)
	sends(&s)
	at := began.Add(50 * time.Millisecond)
	for range 2 {
		s.Arrived(at, 138)
		if d := s.RoundEnds().Sub(began); d != 2*(leastRound+50*time.Millisecond) {
			t.Errorf("an answer at %v: the round takes %v", at, d)
		}
		at = at.Add(300 * time.Millisecond)
	}
}

// TestRoundWithoutAnswer checks that a round that had no answer is repeated with the same lengths and takes twice as long, and that an answer in it
// measures no round trip: it may be one to the round before.
func TestRoundWithoutAnswer(t *testing.T) {
	var s Search
	s.Begin(0, usual, 15*time.Millisecond)
	sends(&s)
	s.EndRound(s.RoundEnds())
	first, took := sends(&s), s.RoundEnds().Sub(s.round)
	began := s.RoundEnds()
	s.EndRound(began)
	again := sends(&s)
	if !slices.Equal(first, again) || s.RoundEnds().Sub(began) != 2*took {
		t.Errorf("asked for %v during %v, and then for %v during %v", first, took, again, s.RoundEnds().Sub(began))
	}
	s.Arrived(began.Add(200*time.Millisecond), again[2])
	if d := s.RoundEnds().Sub(began); d != 30*time.Millisecond {
		t.Errorf("the round takes %v after an answer, want two round trips as they were known", d)
	}
}

// TestLateRoundThatWasAnswered checks that a length that was missed and arrives in a round that ends after a standstill is
// asked for no more.
func TestLateRoundThatWasAnswered(t *testing.T) {
	var s Search
	s.Begin(0, usual, 0)
	sends(&s)
	s.EndRound(s.RoundEnds())
	s.Arrived(s.round, 138)
	sends(&s)
	s.EndRound(s.RoundEnds())
	missed := s.missed
	if missed <= 138 {
		t.Fatalf("%d bytes were missed", missed)
	}
	for _, size := range []int{missed, missed + 8} {
		s := s
		sends(&s)
		s.Arrived(s.round, size)
		s.EndRound(s.RoundEnds().Add(standsStill + 1))
		sizes := sends(&s)
		if sizes[0] != size || sizes[len(sizes)-1] != 1402 {
			t.Errorf("asks for %v, when %d bytes arrive", sizes, size)
		}
	}
}

// TestNotLate checks that a round that is ended no later than four seconds after its time is not taken for a standstill.
func TestNotLate(t *testing.T) {
	var s Search
	s.Begin(0, usual, 0)
	s.EndRound(s.RoundEnds().Add(4 * time.Second))
	if s.Heard() != 0 {
		t.Errorf("an answer came last at %v", s.Heard())
	}
}

// TestThreeMisses checks that it takes three rounds in a row, which missed the next length and had an answer, to conclude that it does not
// arrive (RFC 8899 section 5.1.2), and how many rounds were answered.
func TestThreeMisses(t *testing.T) {
	var s Search
	s.Begin(0, Sizes{Least: 138, Usual: 1386, Most: 1402, Step: 8}, 10*time.Millisecond)
	for round, done := 0, false; ; round++ {
		if done != (round == 4) || s.Rounds() != max(round-1, 0) {
			t.Fatalf("round %d: over %v, %d were answered, %d proven", round, done, s.Rounds(), s.Proven())
		}
		if done {
			break
		}
		for _, size := range sends(&s) {
			if round > 0 && size <= 1386 {
				s.Arrived(s.round.Add(10*time.Millisecond), size)
			}
		}
		done = s.EndRound(s.RoundEnds())
	}
	if s.Proven() != 1386 {
		t.Errorf("%d bytes arrive, want 1386", s.Proven())
	}
}

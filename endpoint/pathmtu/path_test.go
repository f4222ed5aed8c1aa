package pathmtu

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// lengths are those of a path whose interfaces carry 1402 bytes.
var lengths = Limits{Most: 1402, Sure: 1002, Narrow: 1002, Least: 138, Step: 8}

// flight is what is in flight: frames that wait for acknowledgement.
type flight struct {
	quiet    ack.Instant
	timeouts int
	longest  int
	asked    int // how often the longest was looked for
}

func (f *flight) Quiet() ack.Instant       { return f.quiet }
func (f *flight) Timeouts() int            { return f.timeouts }
func (f *flight) RoundTrip() time.Duration { return 10 * time.Millisecond }
func (f *flight) Longest() int             { f.asked++; return f.longest }

// giveUp is after how long a peer is given up that answers nothing.
const giveUp = 3 * time.Second

// world is a path that carries frames up to some length, and answers after 10 ms.
type world struct {
	Path
	sent    flight
	now     ack.Instant
	carries int
	probes  int
}

func newWorld(l Limits, carries int) *world {
	w := &world{carries: carries, now: 1}
	w.Begin(l)
	return w
}

// round has all probes leave that must, has those answered that arrive, and goes on to the end of the round.
func (w *world) round(waits bool) Verdict {
	best := 0
	for w.MustSend(waits) {
		w.probes++
		if size := w.Send(w.now, &w.sent); size <= w.carries {
			best = max(best, size)
		}
	}
	if best > 0 {
		w.now = w.now.Add(10 * time.Millisecond)
		if w.Arrived(w.now, best) {
			return Found
		}
	}
	if w.search != nil {
		w.now = w.RoundEnds()
	}
	return w.Expire(w.now, w.now, &w.sent, waits, giveUp)
}

// TestBegin checks how long full frames are at first, and whether they have that length for good.
func TestBegin(t *testing.T) {
	for _, c := range []struct {
		name string
		l    Limits
		size int
		is   State
	}{
		{"a path that may carry less", lengths, 1002, Unknown},
		{"a path that surely carries all", Limits{Most: 1402, Sure: 1402, Narrow: 1002, Least: 138, Step: 8}, 1402, Known},
		{"no probe is that long", Limits{Most: 70_002, Sure: 1002, Narrow: 1002, Least: 138, Step: 8, Fixed: true}, 70_002, Fixed},
	} {
		var p Path
		p.Begin(c.l)
		if p.Size() != c.size || p.state != c.is || p.IsKnown() != (c.is != Unknown) || p.TakeShorter() != 0 {
			t.Errorf("%s: frames of %d bytes, state %d", c.name, p.Size(), p.state)
		}
		if p.Asks(false) || p.MustSend(false) || p.Asks(true) != (c.is == Unknown) || p.MustSend(true) != (c.is == Unknown) {
			t.Errorf("%s: the peer is asked", c.name)
		}
	}
}

// TestFindsTheLength checks that full frames are as long as the path carries after a search, that the search is over then, and that a shorter
// length is told once.
func TestFindsTheLength(t *testing.T) {
	for carries := 138; carries <= 1402; carries += 79 {
		w := newWorld(lengths, carries)
		for rounds := 0; w.round(true) != Found; rounds++ {
			if w.IsKnown() || w.Size() != 1002 || rounds > 12 {
				t.Fatalf("%d bytes are carried: after %d rounds frames have %d, known %v", carries, rounds, w.Size(), w.IsKnown())
			}
		}
		want := carries - (carries-138)%8
		if w.Size() != want || !w.IsKnown() || w.Asks(true) || w.MustSend(true) || w.search != nil {
			t.Errorf("%d bytes are carried: frames have %d, known %v, asks %v", carries, w.Size(), w.IsKnown(), w.Asks(true))
		}
		told := want
		if want == 1402 {
			told = 0
		}
		if first, again := w.TakeShorter(), w.TakeShorter(); first != told || again != 0 {
			t.Errorf("%d bytes are carried: told %d and then %d, want %d", carries, first, again, told)
		}
	}
}

// TestAllArrives checks that a path that carries all costs one probe.
func TestAllArrives(t *testing.T) {
	w := newWorld(lengths, 1402)
	if v := w.round(true); v != Found || w.probes != 1 || w.Size() != 1402 {
		t.Errorf("verdict %d after %d probes, frames of %d bytes", v, w.probes, w.Size())
	}
}

// TestAskedOnceDataWaits checks that no probe leaves before data waits; that the peer is asked on when none does any more, but not for ever, and is not
// silent then; and that an answer counts whenever it comes.
func TestAskedOnceDataWaits(t *testing.T) {
	w := newWorld(lengths, 0)
	for _, waits := range []bool{false, true} {
		if v := w.Expire(w.now, w.now, &w.sent, waits, giveUp); v != Nothing || w.MustSend(false) || w.Arrived(w.now, 1402) {
			t.Errorf("data waits %v: verdict %d, known %v, before it was asked", waits, v, w.IsKnown())
		}
	}
	w.round(true)
	began := w.now
	for w.Asks(false) {
		if v := w.round(false); v != Nothing || w.now.Sub(began) > giveUp+mostRound {
			t.Fatalf("verdict %d after %v, while no data waits", v, w.now.Sub(began))
		}
	}
	w.carries = 1402
	for rounds := 0; w.round(true) != Found; rounds++ {
		if rounds > 3 {
			t.Fatalf("frames of %d bytes, when data waits again", w.Size())
		}
	}
	if w.Size() != 1402 {
		t.Errorf("frames of %d bytes, when data waits again", w.Size())
	}
	w = newWorld(lengths, 1300)
	for waits := true; w.round(waits) != Found; waits = false {
		if w.IsKnown() || w.now.Sub(0) > time.Hour {
			t.Fatalf("frames of %d bytes are not found while no data waits", w.carries)
		}
	}
	if w.Size() != 1298 {
		t.Errorf("frames of %d bytes, when no data waited any more", w.Size())
	}
}

// TestSilentPeer checks that a peer that answers no probe is silent after giveUp, and not before.
func TestSilentPeer(t *testing.T) {
	w := newWorld(lengths, 0)
	began := w.now
	for w.round(true) != Silent {
		if w.now.Sub(began) >= giveUp {
			t.Fatalf("not silent after %v", w.now.Sub(began))
		}
	}
	if d := w.now.Sub(began); d < giveUp || d > giveUp+mostRound {
		t.Errorf("silent after %v, want %v", d, giveUp)
	}
	if w.IsKnown() || w.Size() != 1002 {
		t.Errorf("frames of %d bytes, known %v", w.Size(), w.IsKnown())
	}
	for d, want := range map[time.Duration]Verdict{leastRound: Silent, leastRound + 1: Nothing} {
		w := newWorld(lengths, 0)
		w.begin(w.now, 1002, 1402, 0)
		w.search.Send()
		if v := w.Expire(w.RoundEnds(), w.RoundEnds(), &w.sent, true, d); v != want {
			t.Errorf("verdict %d after %v, want %d after %v", v, leastRound, want, d)
		}
	}
}

// TestNothingHappensDuringARound checks that a round lasts until it ends, and one whose probes have not all left as well.
func TestNothingHappensDuringARound(t *testing.T) {
	w := newWorld(lengths, 1402)
	w.Send(w.now, &w.sent)
	ends := w.RoundEnds()
	if v := w.Expire(ends-1, ends-1, &w.sent, true, 0); v != Nothing || w.MustSend(true) {
		t.Errorf("verdict %d, before the round ends at %v", v, ends)
	}
	if w.Expire(ends, ends, &w.sent, true, giveUp); !w.MustSend(true) {
		t.Fatal("the round has not ended")
	}
	if v := w.Expire(ends.Add(time.Hour), ends.Add(time.Hour), &w.sent, true, 0); v != Nothing {
		t.Errorf("verdict %d, with probes that have not left", v)
	}
}

// found returns a world in which frames have 1402 bytes, and some of them wait for acknowledgement.
func found(l Limits, timeouts int) *world {
	w := newWorld(l, 1402)
	w.round(true)
	w.sent = flight{quiet: w.now, timeouts: timeouts, longest: w.Size()}
	return w
}

// TestSuspects checks when a peer that acknowledges nothing is asked whether frames are too long: after three timeouts, where they are longer
// than every path carries, and where probes can be as long.
func TestSuspects(t *testing.T) {
	fixed, sure := lengths, lengths
	fixed.Fixed, sure.Sure = true, sure.Most
	for _, c := range []struct {
		name     string
		l        Limits
		timeouts int
		longest  int
		want     bool
	}{
		{"two timeouts", lengths, 2, 1402, false},
		{"three", lengths, 3, 1402, true},
		{"a path that was never asked", sure, 3, 1402, true},
		{"as long as every path carries", lengths, 3, 1002, false},
		{"a byte longer", lengths, 3, 1003, true},
		{"nothing in flight", lengths, 3, 0, false},
		{"no probe is that long", fixed, 3, 1402, false},
	} {
		w := found(c.l, c.timeouts)
		w.sent.longest = c.longest
		if got := w.Suspects(&w.sent); got != c.want {
			t.Errorf("%s: suspects %v", c.name, got)
		}
		w.Expire(w.now, w.now, &w.sent, false, giveUp)
		if w.Asks(false) != c.want || w.MustSend(false) != c.want || !w.IsKnown() || w.Size() != 1402 {
			t.Errorf("%s: asks %v, frames of %d bytes", c.name, w.Asks(false), w.Size())
		}
	}
	w := found(lengths, 2)
	w.Suspects(&w.sent)
	if w.sent.asked > 0 {
		t.Error("the longest frame is looked for though there were few timeouts")
	}
}

// TestNarrowerPath checks that a path that has become narrower is found out during a silence, that frames keep their length, and that
// it is asked once.
func TestNarrowerPath(t *testing.T) {
	for carries := 138; carries < 1402; carries += 79 {
		w := found(lengths, checkAfter)
		w.carries = carries
		for rounds := 0; rounds == 0 || w.Asks(false); rounds++ {
			if w.round(false) != Nothing || rounds > 12 {
				t.Fatalf("%d bytes are carried: asks after %d rounds", carries, rounds)
			}
		}
		want := carries - (carries-138)%8
		if carried, is := w.Narrowed(1402); carried != want || !is {
			t.Errorf("%d bytes are carried: found %d, narrowed %v", carries, carried, is)
		}
		if _, is := w.Narrowed(want); is {
			t.Errorf("%d bytes are carried: too narrow for %d", carries, want)
		}
		if w.Size() != 1402 || !w.IsKnown() || w.TakeShorter() != 0 {
			t.Errorf("%d bytes are carried: frames have %d", carries, w.Size())
		}
		w.round(false)
		if w.Suspects(&w.sent) || w.Asks(false) {
			t.Error("asks again in the same silence")
		}
		w.sent.quiet++ // something was acknowledged
		if w.Expire(w.now, w.now, &w.sent, false, giveUp); !w.Asks(false) {
			t.Error("does not ask in the next silence")
		}
	}
}

// TestCheckLastsAsLongAsTheSilence checks that a peer that may only be slow is asked once, and gets as long to answer as it has been silent
// before: each question makes it slower.
func TestCheckLastsAsLongAsTheSilence(t *testing.T) {
	const silence = 400 * time.Millisecond
	w := found(lengths, checkAfter)
	w.now = w.now.Add(silence)
	w.Expire(w.now, w.now, &w.sent, false, giveUp)
	before := w.probes
	for w.MustSend(false) {
		w.probes++
		w.Send(w.now, &w.sent)
	}
	if n, wait := w.probes-before, w.RoundEnds().Sub(w.now); n != 1 || wait != silence {
		t.Errorf("%d probes, and %v for the answer, want 1 and %v", n, wait, silence)
	}
}

// TestUnreadAnswers checks that a round does not end before all was looked at that came during it.
func TestUnreadAnswers(t *testing.T) {
	w := newWorld(lengths, 1402)
	w.Send(w.now, &w.sent)
	ends := w.RoundEnds()
	if w.Expire(ends.Add(time.Second), ends-1, &w.sent, true, giveUp); w.MustSend(true) {
		t.Error("asks again though the answer may be there")
	}
	if w.Expire(ends.Add(time.Second), ends, &w.sent, true, giveUp); !w.MustSend(true) {
		t.Error("does not ask again though no answer is there")
	}
}

// TestPathThatIsNotNarrower checks that a path that carries what it carried is not the reason of a silence, and neither one on which
// no probe is answered.
func TestPathThatIsNotNarrower(t *testing.T) {
	for _, carries := range []int{1402, 0} {
		w := found(lengths, checkAfter)
		w.carries = carries
		for range 30 {
			if v := w.round(false); v != Nothing {
				t.Fatalf("%d bytes are carried: verdict %d", carries, v)
			}
		}
		if carried, is := w.Narrowed(1402); is {
			t.Errorf("%d bytes are carried: found %d", carries, carried)
		}
	}
}

// TestWhatIsKnownSoFar checks that it is known how much a narrower path carries after two rounds were answered, as the peer may be given up
// before the search is over.
func TestWhatIsKnownSoFar(t *testing.T) {
	w := found(lengths, checkAfter)
	w.carries = 500
	rounds := 0
	for ; ; rounds++ {
		w.round(false)
		if _, is := w.Narrowed(1402); is {
			break
		}
		if rounds > 12 {
			t.Fatal("nothing is known")
		}
	}
	if !w.Asks(false) || w.search.Rounds() != 2 {
		t.Errorf("known after %d answered rounds, asks %v", w.search.Rounds(), w.Asks(false))
	}
}

// TestProbesThatWereLost checks that a path that carries what it carried is not the reason of a silence, though the probes of the first rounds
// were lost.
func TestProbesThatWereLost(t *testing.T) {
	for lost := range 4 {
		w := found(lengths, checkAfter)
		for rounds := 0; rounds == 0 || w.Asks(false); rounds++ {
			w.carries = 500
			if rounds >= lost {
				w.carries = 1402
			}
			w.round(false)
		}
		if carried, is := w.Narrowed(1402); is {
			t.Errorf("after %d rounds with losses %d bytes are carried", lost, carried)
		}
	}
}

// TestChecksWhatFramesHave checks that a path that is asked whether it became narrower is asked for nothing longer than full frames,
// and first for what not every path carries.
func TestChecksWhatFramesHave(t *testing.T) {
	w := newWorld(lengths, 1202)
	for w.round(true) != Found {
	}
	w.sent = flight{quiet: w.now, timeouts: checkAfter, longest: w.Size()}
	w.Expire(w.now, w.now, &w.sent, false, giveUp)
	for round := range 3 {
		var sizes []int
		for w.MustSend(false) {
			sizes = append(sizes, w.Send(w.now, &w.sent))
		}
		for i, size := range sizes {
			if size > w.Size() || size < 1002 && i > 0 {
				t.Errorf("round %d: asked for %v, frames have %d", round, sizes, w.Size())
				break
			}
		}
		w.now = w.RoundEnds()
		w.Expire(w.now, w.now, &w.sent, false, giveUp)
	}
}

// TestAckEndsTheCheck checks that an acknowledgement ends the question whether the path is narrower, and what was found until then is forgotten.
func TestAckEndsTheCheck(t *testing.T) {
	w := found(lengths, checkAfter)
	w.carries = 500
	for {
		w.round(false)
		if _, is := w.Narrowed(1402); is {
			break
		}
	}
	w.sent.quiet, w.sent.timeouts = w.now, 0
	if v := w.Expire(w.now, w.now, &w.sent, false, giveUp); v != Nothing || w.Asks(false) || w.search != nil || w.state != Known || w.Size() != 1402 {
		t.Errorf("verdict %d, asks %v, frames of %d bytes", v, w.Asks(false), w.Size())
	}
	if carried, is := w.Narrowed(1402); is {
		t.Errorf("the path is too narrow, with %d bytes", carried)
	}
}

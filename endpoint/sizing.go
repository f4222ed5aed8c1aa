package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// sizing finds out how long frames get to a peer, without a word from the network: it asks the
// peer which ones arrive (RFC 8899). It asks for the longest at first, and if that has no answer
// for several at once, in rounds, each between the longest that arrived and the shortest that did
// not. Only an answer proves something; that a length does not get there is concluded where a
// shorter one of its round did, again and again. The zero sizing has not begun.
type sizing struct {
	usual, most int // it looks at first between these
	proven      int // longest that arrived, or the shortest that can be asked for
	missed      int // shortest above that which did not arrive; 0: none
	misses      int // rounds of which it is known, in a row
	rounds      int // that were answered

	asks     [mostAsked + 1]int // of this round, the longest first and one that is proven last
	low      int                // from here on it asks for what no round before did
	again    bool               // the round has been before, without an answer
	n, asked int                // how many there are, and how many have left
	answered bool               // there was an answer in this round
	way      time.Duration      // how long answers take, about; 0: not known
	wait     time.Duration      // for the answers to this round
	began    ack.Instant
	round    ack.Instant // when this one began
	heard    ack.Instant // when an answer came last
	plain    int         // answers from a peer that does not know the question
}

const (
	// mostAsked is how many lengths a round asks for, and for one that is proven. Arbitrary: from
	// 9000 bytes it takes four rounds then, and two to be sure.
	mostAsked = 8
	// mostMissed is in how many rounds in a row a length has to be missed: as often as RFC 8899
	// has it tried (section 5.1.2, MAX_PROBES).
	mostMissed = 3
	// sizeStep is by how much full frames differ at least: see wholeFrame.
	sizeStep = 8
	// leastRound and mostRound bound a round. It takes two round trips in between.
	leastRound = helloFirst
	mostRound  = helloMost
	// mostPlain is how many answers that say nothing of lengths, and none that does, show that
	// the peer does not know the question. Arbitrary: some may be to what was asked before.
	mostPlain = 4
)

// begin looks for a length up to most, that is probably not below usual.
func (z *sizing) begin(now ack.Instant, usual, most int, rtt time.Duration) {
	*z = sizing{
		usual: usual, most: most, proven: sizedSize, n: 1, began: now, round: now, heard: now,
		way: rtt, wait: max(2*rtt, leastRound),
	}
	z.asks[0] = most
}

func (z *sizing) begun() bool { return z.most > 0 }

// leaves reports whether a question is to leave now.
func (z *sizing) leaves() bool { return z.asked < z.n }

// take returns the length of the question that leaves. The longest is the last: offload takes
// those of one length, and a shorter one behind them, for a run, and all of it is lost with one.
func (z *sizing) take() int {
	z.asked++
	return z.asks[z.n-z.asked]
}

// over returns when the round is.
func (z *sizing) over() ack.Instant { return z.round.Add(z.wait) }

// arrived takes an answer, and reports whether all is known.
func (z *sizing) arrived(now ack.Instant, size int) (done bool) {
	if size < sizedSize || size > z.most || (size-frame.HeaderSize)%sizeStep != 0 {
		return false // nobody asked that
	}
	switch {
	case !z.again && size > z.low && size < z.asks[0]:
		z.way = now.Sub(z.round) // no other round asked for that
	case z.way == 0:
		z.way = now.Sub(z.began)
	}
	z.wait = max(leastRound, min(2*z.way, mostRound))
	z.answered, z.heard = true, now
	z.proven = max(z.proven, size)
	return z.proven == z.most
}

// answeredPlainly takes an answer to an introduction that says nothing of lengths, and reports
// whether nothing else is to be expected.
func (z *sizing) answeredPlainly() (done bool) {
	z.plain++
	return z.plain >= mostPlain && z.heard == z.began
}

// next ends a round, and begins another one unless all is known.
func (z *sizing) next(now ack.Instant) (done bool) {
	switch above := z.unanswered(); {
	case now > z.over().Add(standsStill):
		z.heard = now // nobody listened
	case !z.answered:
		z.wait = min(2*z.wait, mostRound)
		z.round, z.asked, z.again = now, 0, true
		if z.n > 1 {
			return false
		}
	case above != z.missed:
		z.missed, z.misses = above, 1
		z.rounds++
	default:
		z.misses++
		z.rounds++
	}
	if z.missed <= z.proven {
		z.missed = 0
	}
	if z.missed == z.proven+sizeStep && z.misses >= mostMissed {
		return true
	}
	z.round, z.answered, z.again = now, false, false
	z.plan()
	return false
}

// unanswered returns the shortest length of this round that is above what arrived; 0: there is
// none.
func (z *sizing) unanswered() (size int) {
	for _, x := range z.asks[:z.n] {
		if x > z.proven {
			size = x
		}
	}
	return size
}

// plan chooses what the next round asks for.
func (z *sizing) plan() {
	high := z.most
	if z.missed > 0 {
		high = z.missed
	}
	low := z.proven
	if high > z.usual {
		low = max(low, z.usual)
	}
	z.low = low
	steps := (high - low) / sizeStep
	between := min(steps, mostAsked-1)
	z.n, z.asked = between+1, 0
	for i := range z.n {
		z.asks[i] = high - i*steps/between*sizeStep
	}
	if low > z.proven {
		z.asks[z.n] = z.proven
		z.n++
	}
}

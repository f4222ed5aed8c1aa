package pathmtu

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// State is what is known of how long frames arrive.
type State uint8

const (
	// Fixed: full frames have the length that the interfaces carry, and the peer is never asked.
	Fixed State = iota
	// Unknown: full frames have a length that every path carries. The peer is asked when data would leave in longer ones.
	Unknown
	// Known: full frames are as long as the path carries.
	Known
	// Checking: the peer acknowledges nothing, and is asked whether the path carries less than before.
	Checking
)

// checkAfter is after how many timeouts in a row it is asked whether the path has become narrower.
// Arbitrary: rare where frames are lost by chance.
const checkAfter = 3

// Limits are lengths of frames on a path. Most, and Sure if it is less, are Least and a multiple of Step.
type Limits struct {
	Most   int  // the interfaces carry it
	Sure   int  // surely arrives, as far as the interfaces say
	Narrow int  // every path carries it
	Least  int  // the shortest that a probe can have; every path carries it
	Step   int  // by how much full frames differ at least
	Fixed  bool // no probe can be as long as frames are, so that the peer is never asked
}

// Flight is what a [Path] asks of the frames that wait for acknowledgement.
type Flight interface {
	Quiet() ack.Instant       // since when none was acknowledged
	Timeouts() int            // in a row, since then
	Longest() int             // bytes of the longest of them
	RoundTrip() time.Duration // 0: not known
}

// Verdict is what the passing of time leads to.
type Verdict uint8

const (
	Nothing Verdict = iota
	Found           // full frames have the length that was found
	Silent          // the peer has answered no probe for so long that it is given up
)

// Path is how long frames to a peer are. The zero Path has no length.
type Path struct {
	limits  Limits
	state   State
	size    int     // of a full frame
	shorter bool    // it is less than Most, and that is to be told
	carried int     // what arrives on a path that acknowledges nothing; 0: that was not found
	search  *Search // nil: the peer is not asked
	quiet   ack.Instant
	checked bool // it was asked, or is, in the silence that began at quiet
}

// Begin begins with what surely gets to the peer.
func (p *Path) Begin(l Limits) {
	*p = Path{limits: l, state: Known, size: l.Most}
	switch {
	case l.Fixed:
		p.state = Fixed
	case l.Sure < l.Most:
		p.state, p.size = Unknown, l.Sure
	}
}

// Size returns the length of a full frame.
func (p *Path) Size() int { return p.size }

// IsKnown reports whether full frames have the length that they keep. Else what needs longer ones has to wait.
func (p *Path) IsKnown() bool { return p.state != Unknown }

// TakeShorter returns the length that was found, once, if it is less than the interfaces carry; else 0.
func (p *Path) TakeShorter() (size int) {
	if !p.shorter {
		return 0
	}
	p.shorter = false
	return p.size
}

// Narrowed reports whether frames of that length are not acknowledged because the path carries less, and how much it carries.
func (p *Path) Narrowed(longest int) (carried int, narrowed bool) {
	return p.carried, p.carried > 0 && longest > p.carried
}

// Asks reports whether the peer is asked which lengths arrive. waits: data waits for that, or leaves in shorter ones. Once it was asked, it is until that
// is found, or it has answered nothing for so long that it is given up while data waits.
func (p *Path) Asks(waits bool) bool {
	return p.state == Checking || p.state == Unknown && (waits || p.search != nil)
}

// MustSend reports whether a probe is to leave now.
func (p *Path) MustSend(waits bool) bool {
	return p.Asks(waits) && (p.search == nil || p.search.MustSend())
}

// Send returns the length of the probe that leaves.
func (p *Path) Send(now ack.Instant, f Flight) (size int) {
	if p.search == nil {
		p.begin(now, p.size, p.limits.Most, f.RoundTrip())
	}
	return p.search.Send()
}

// RoundEnds returns when [Path.Expire] is to be called, after the probes of a round have left.
func (p *Path) RoundEnds() ack.Instant { return p.search.RoundEnds() }

// Arrived takes the answer that a length arrives. It reports whether full frames have the length that was found now.
func (p *Path) Arrived(now ack.Instant, size int) (found bool) {
	return p.search != nil && p.search.Arrived(now, size) && p.found()
}

// Suspects reports whether a peer that acknowledges nothing is to be asked whether that is because frames are too long.
func (p *Path) Suspects(f Flight) bool {
	return f.Timeouts() >= checkAfter && p.state == Known && !p.checked && f.Longest() > p.limits.Narrow
}

// Expire acts on what the passing of time asks for. All that came before heard, which is not later than now, has been looked at: answers
// may have come since. A peer that answers no probe for as long as giveUp, while data waits, is silent.
func (p *Path) Expire(now, heard ack.Instant, f Flight, waits bool, giveUp time.Duration) Verdict {
	p.check(now, f)
	z := p.search
	switch {
	case !p.Asks(waits) || z == nil || z.MustSend() || heard < z.RoundEnds():
		return Nothing
	case z.EndRound(now):
		if p.found() {
			return Found
		}
		return Nothing
	case p.state == Checking:
		if z.Rounds() >= 2 {
			p.carried = z.Proven() // as far as is known, if the peer is given up now
		}
		return Nothing
	case now.Sub(z.Heard()) < giveUp:
	case waits:
		return Silent
	default:
		p.search = nil
	}
	return Nothing
}

// check begins to ask, once in each silence, and ends it with that. A look that is that rare sees no
// other trace of an acknowledgement than when it came: the next timeouts may have passed since.
func (p *Path) check(now ack.Instant, f Flight) {
	if quiet := f.Quiet(); quiet != p.quiet {
		p.quiet, p.checked, p.carried = quiet, false, 0
		if p.state == Checking {
			p.state, p.search = Known, nil
		}
	}
	if p.Suspects(f) {
		p.state, p.checked = Checking, true
		// The peer may only be slow, as one is that thousands of connections lead to: it gets as long to answer as it has been silent.
		p.begin(now, p.limits.Narrow, p.size, max(f.RoundTrip(), now.Sub(p.quiet)/2))
	}
}

// begin begins to ask how long frames arrive, of which those up to usual probably do. An answer takes about as long as roundTrip.
func (p *Path) begin(now ack.Instant, usual, most int, roundTrip time.Duration) {
	p.search = new(Search)
	p.search.Begin(now, Sizes{Least: p.limits.Least, Usual: usual, Most: most, Step: p.limits.Step}, roundTrip)
}

// found ends a search. It reports whether full frames have the length that it found.
func (p *Path) found() bool {
	size, was := p.search.Proven(), p.state
	p.state, p.search = Known, nil
	if was == Checking {
		p.carried = size
		return false
	}
	p.size, p.shorter = size, size < p.limits.Most
	return true
}

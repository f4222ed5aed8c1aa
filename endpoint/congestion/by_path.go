package congestion

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	// nearRTT is the round trip below which a path is near: hosts of a room, cards, processes of a host. No path through a network that others
	// pay for is as short.
	nearRTT = time.Millisecond
	// farRTT is how long all round trips of nearMemory have to be until a near path counts as far: a busy host delays
	// what is sent and received, too. Arbitrary.
	farRTT = 4 * time.Millisecond
	// nearMemory is half of the time that a shortest round trip is remembered. Arbitrary.
	nearMemory = 5 * time.Second
)

// ByPath is a Controller that takes a path for one that others use, and is a [BBR] there, until a round trip below nearRTT
// says that it is near. Then it is an [ack.Adaptive], which takes what it can get.
type ByPath struct {
	ack.Controller // of the two
	mtu            int
	seed           uint64
	near           bool
	routed         bool
	inFlight       int
	shortest       [2]time.Duration // round trips: before, and now; 0: none
	since          ack.Instant
}

var (
	_ ack.Controller = (*ByPath)(nil)
	_ ack.Resting    = (*ByPath)(nil)
	_ ack.Distant    = (*ByPath)(nil)
	_ ack.Inspected  = (*ByPath)(nil)
	_ ack.Heeding    = (*ByPath)(nil)
)

// NewByPath returns a ByPath for frames of up to mtu bytes. The seed is that of [NewBBR]. A path that is routed is never near, whatever the peer
// acknowledges how soon.
func NewByPath(mtu int, seed uint64, routed bool) *ByPath {
	return &ByPath{Controller: NewBBR(mtu, seed), mtu: mtu, seed: seed, routed: routed}
}

// IsFar implements [ack.Distant].
func (p *ByPath) IsFar() bool { return !p.near }

// Inspect implements [ack.Inspected].
func (p *ByPath) Inspect() ack.ControllerState {
	s := p.Controller.(ack.Inspected).Inspect()
	switch {
	case p.near:
		s.Why = "a round trip took less than " + nearRTT.String()
	case p.routed:
		s.Why = "a router is on the way"
	case p.shortest == [2]time.Duration{}:
		s.Why = "no round trip is known"
	default:
		s.Why = "no round trip of late took less than " + nearRTT.String()
	}
	return s
}

// OnSent implements [ack.Controller].
func (p *ByPath) OnSent(now ack.Instant, order uint32, bytes int) {
	p.inFlight += bytes
	p.Controller.OnSent(now, order, bytes)
}

// OnAcked implements [ack.Controller].
func (p *ByPath) OnAcked(now ack.Instant, order uint32, bytes int, rtt time.Duration) {
	p.inFlight -= bytes
	p.Controller.OnAcked(now, order, bytes, rtt)
	if rtt >= 0 && (p.shortest[1] == 0 || rtt < p.shortest[1]) {
		p.shortest[1] = max(rtt, 1)
	}
}

// OnLost implements [ack.Controller].
func (p *ByPath) OnLost(now ack.Instant, order uint32, bytes int, timeout bool) {
	p.inFlight -= bytes
	p.Controller.OnLost(now, order, bytes, timeout)
}

// HeedsMarks implements [ack.Heeding]: not before a round trip says that the path is far.
func (p *ByPath) HeedsMarks() bool { return !p.near && p.shortest != [2]time.Duration{} }

// OnMarked implements [ack.Heeding].
func (p *ByPath) OnMarked(now ack.Instant, frames int) {
	if h, ok := p.Controller.(ack.Heeding); ok {
		h.OnMarked(now, frames)
	}
}

// EndBatch implements [ack.Controller].
func (p *ByPath) EndBatch(now ack.Instant) {
	p.Controller.EndBatch(now)
	shortest := p.shortest[1]
	if before := p.shortest[0]; before > 0 && (shortest == 0 || before < shortest) {
		shortest = before
	}
	switch {
	case shortest == 0:
	case !p.near && !p.routed && shortest < nearRTT:
		p.near = true
		a := ack.NewAdaptive(p.mtu)
		if p.inFlight > 0 {
			a.OnSent(now, 0, p.inFlight)
		}
		p.Controller = a
	case p.near && shortest > farRTT && p.shortest[0] > 0:
		p.near = false
		b := NewBBR(p.mtu, p.seed)
		b.adopt(now, int64(p.inFlight))
		p.Controller = b
	}
	if now.Sub(p.since) > nearMemory {
		p.shortest, p.since = [2]time.Duration{p.shortest[1], 0}, now
	}
}

// Rest implements [ack.Resting].
func (p *ByPath) Rest() {
	if r, ok := p.Controller.(ack.Resting); ok {
		r.Rest()
	}
}

func (p *ByPath) String() string { return fmt.Sprint(p.Controller) }

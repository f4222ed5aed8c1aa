package admission

import "sync/atomic"

// Policy says which unknown sources become peers, and what such a peer may do. One goroutine at a time may change it; any may ask.
type Policy struct {
	accepts atomic.Bool
	writes  atomic.Bool
	asked   int // how often Welcome was called with on, and not taken back
}

// AcceptAny has any source become a peer that may write into the memory, or takes that back. It reports whether Accepts changed.
func (p *Policy) AcceptAny(on bool) (changed bool) {
	p.writes.Store(on)
	return p.decide()
}

// Welcome has any source become a peer, for services. Each call with on is taken back by one without. It reports whether Accepts changed.
func (p *Policy) Welcome(on bool) (changed bool) {
	if on {
		p.asked++
	} else {
		p.asked--
	}
	return p.decide()
}

func (p *Policy) decide() (changed bool) {
	on := p.writes.Load() || p.asked > 0
	return p.accepts.Swap(on) != on
}

// Accepts reports whether unknown sources become peers.
func (p *Policy) Accepts() bool { return p.accepts.Load() }

// MayWrite reports whether such a peer may write into the memory.
func (p *Policy) MayWrite() bool { return p.writes.Load() }

package round

import (
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// Keys says who shares a key with whom in a round.
type Keys string

// What there is.
const (
	NoKeys  Keys = ""     // nothing is sealed
	OneKey  Keys = "one"  // all nodes have the same
	EachKey Keys = "each" // each connection has its own
)

// leastSealed is how long the frames of a wire have to be that carries sealed ones, in which an endpoint can tell which services
// it has.
const leastSealed = leastToTell + seal.Overhead

// drawKeys draws the keys of a round in which peers and wire can seal.
func (p *Plan) drawKeys(d worlds.Dice) {
	if !p.Kind.Native() || p.MTU < leastSealed || !d.Chance(0.4) {
		return
	}
	p.Keys = OneKey
	if d.Chance(0.4) {
		p.Keys = EachKey
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.MTU != 0 {
			n.MTU = max(n.MTU, leastSealed)
		}
	}
}

// keys returns those of a node; nil: nothing is sealed.
func (p *Plan) keys(node int) *dgrdma.Keys {
	switch p.Keys {
	case OneKey:
		return &dgrdma.Keys{All: &dgrdma.Key{1}}
	case EachKey:
		r := &dgrdma.Keys{Own: make(map[uint16]*dgrdma.Key)}
		for i := range p.Nodes {
			if Joined(node, i) {
				r.Own[uint16(idOf(i))] = &dgrdma.Key{2, byte(min(node, i)), byte(max(node, i))}
			}
		}
		return r
	}
	return nil
}

// guestKeys returns those of a guest: the key of all nodes, one that nobody has, or none.
func (p *Plan) guestKeys(guest int) *dgrdma.Keys {
	switch {
	case p.Keys == NoKeys, guest%3 == 0:
		return nil
	case p.Keys == OneKey && guest%3 == 1:
		return p.keys(0)
	}
	return &dgrdma.Keys{All: &dgrdma.Key{3}}
}

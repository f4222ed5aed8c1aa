package endpoint

import "github.com/dgrdma/dgrdma/seal"

// copyOf returns a ring that shares nothing with that: configurations are read once, and keys wiped.
func copyOf(r *seal.Ring) *seal.Ring {
	c := &seal.Ring{Own: make(map[uint16]*seal.Key, len(r.Own))}
	if r.All != nil {
		c.All = new(*r.All)
	}
	for id, k := range r.Own {
		if k != nil {
			c.Own[id] = new(*k)
		}
	}
	return c
}

// NoKey says what is known of why there is no key yet under which all is sealed that is said to the peer, see
// [Config.Keys]: the error is [ErrNoKey]. nil: there is one, or nothing is sealed.
func (c *Conn) NoKey() error {
	return c.ep.keyless(c.key(), nil)
}

// keyless returns why a peer is given up, which is that there never was a key for it, or that it was there lately and has another one, if that is so.
func (e *Endpoint) keyless(k peerKey, why error) error {
	v := e.vault
	if v == nil {
		return why
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	is := errUnkeyed
	switch a := v.table[k]; {
	case a == nil && v.ring.Of(uint16(k.theirs)) == nil:
		is = errNoKeyHere
	case a != nil && a.sealing.Load() != nil && (why == nil || int64(a.daredAt) <= a.heard.Load()):
		return why
	case a != nil && a.answered:
		is = errOtherKey
	}
	return &PeerError{ID: k.theirs, Addr: k.addr, Op: "agreeing on a key", Err: is}
}

package seal

// Ring holds the keys of an endpoint: one for each peer that has one of its own, and one for all others.
type Ring struct {
	All *Key            // nil: peers without a key of their own have none
	Own map[uint16]*Key // by the peer's id
}

// Of returns the key for a peer, or nil: nothing is said to it, nor taken from it.
func (r *Ring) Of(id uint16) *Key {
	if k := r.Own[id]; k != nil {
		return k
	}
	return r.All
}

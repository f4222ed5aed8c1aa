package ether

import (
	"errors"
	"fmt"
	"sync"
)

// ErrIDInUse is why an endpoint id is not opened twice on an interface by one process: the kernel
// gives each frame to both, each would acknowledge what the other one needs, and peers would take
// them for one endpoint that restarts again and again. Of other processes nobody here knows.
var ErrIDInUse = errors.New("endpoint id is in use on this interface")

// claim is an id that this process has open on an interface. That is told from one of the same
// name in another network namespace by its address.
type claim struct {
	name      string
	mac       [6]byte
	etherType uint16
	id        uint16
}

var claims sync.Map // of claim

// take fails where the id is open already. The id 0 is all ids, for who looks on.
func (k claim) take() error {
	if k.id == 0 {
		return nil
	}
	if _, open := claims.LoadOrStore(k, nil); open {
		return fmt.Errorf("id %d on %s: %w, in this process; choose another id, or close the endpoint that has it", k.id, k.name, ErrIDInUse)
	}
	return nil
}

// held is a claim that was taken. It is given back once, however often its owner is closed: the next
// one may have it by then.
type held struct {
	claim
	over sync.Once
}

func (h *held) release() { h.over.Do(func() { claims.Delete(h.claim) }) }

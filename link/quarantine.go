package link

import (
	"cmp"
	"slices"

	"github.com/dgrdma/dgrdma/endpoint/space"
)

// endedLink is a link that is over here, whose peer has not said that it knows.
type endedLink struct {
	number   uint32
	attempt  uint64
	life     uint32
	dialed   bool // by the peer
	memory   []space.Span
	notified <-chan struct{} // closed when the peer has been told of the end, or can never be
	ended    chan struct{}   // closed when the peer has answered, or can never answer
}

// quarantine is the memory that ended links had, by address.
type quarantine []space.Span

func byAt(s space.Span, at uint64) int { return cmp.Compare(s.At, at) }

func (a *quarantine) add(s space.Span) {
	i, _ := slices.BinarySearchFunc(*a, s.At, byAt)
	*a = slices.Insert(*a, i, s)
}

func (a *quarantine) remove(s space.Span) {
	if i, found := slices.BinarySearchFunc(*a, s.At, byAt); found {
		*a = slices.Delete(*a, i, i+1)
	}
}

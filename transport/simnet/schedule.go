package simnet

import (
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// schedule is a binary heap of the datagrams under way. It is not
// container/heap because that allocates for every element.
type schedule []item

type item struct {
	due     time.Duration
	count   uint64 // of the link
	ordinal uint64 // number of the original on its link, 0 for copies
	link    *link
	buf     []byte
	ecn     transport.ECN
}

func (a *item) before(b *item) bool {
	switch {
	case a.due != b.due:
		return a.due < b.due
	case a.link != b.link && a.link.key != b.link.key:
		return a.link.key < b.link.key
	}
	return a.count < b.count
}

func (s *schedule) push(it item) {
	h := append(*s, it)
	*s = h
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// pop removes the earliest; there must be one.
func (s *schedule) pop() item {
	h := *s
	first := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h[last] = item{}
	h = h[:last]
	*s = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

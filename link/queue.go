package link

import (
	"maps"
	"slices"
	"sync"
)

// offer is a letter that asks for a link, and whom it came from. It waits at a port
// until it is accepted, refused, or dropped, because its dialer withdrew it or is no
// more: whoever takes it out of its peer's offers decides which.
type offer struct {
	p    *peer
	life uint32
	l    letter
	port *Listener

	// Guarded by the queue's mutex.
	queued     bool
	prev, next *offer
}

// queue is the offers that wait at a port, the oldest first.
type queue struct {
	more chan struct{} // capacity 1: there may be some

	mu          sync.Mutex
	first, last *offer
	n           int
}

func (q *queue) init() { q.more = make(chan struct{}, 1) }

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

func (q *queue) put(o *offer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.prev = q.last; o.prev != nil {
		o.prev.next = o
	} else {
		q.first = o
	}
	q.last, o.queued = o, true
	q.n++
	q.tell()
}

// pass tells another one who waits of what is left.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n > 0 {
		q.tell()
	}
}

// take returns the oldest offer; nil: there is none.
func (q *queue) take() *offer {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.first
	if o != nil {
		q.unlink(o)
	}
	return o
}

// remove takes an offer out, if it is there.
func (q *queue) remove(o *offer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.queued {
		q.unlink(o)
	}
}

func (q *queue) unlink(o *offer) {
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		q.first = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		q.last = o.prev
	}
	o.prev, o.next, o.queued = nil, nil, false
	q.n--
}

func (q *queue) tell() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// wait has an offer wait at its port. Not ok: that attempt waits already.
func (o *offer) wait() (ok bool) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	if o.p.offers[o.l.attempt] != nil {
		return false
	}
	if o.p.offers == nil {
		o.p.offers = make(map[uint64]*offer)
	}
	o.p.offers[o.l.attempt] = o
	o.port.offers.put(o)
	return true
}

// claim ends the wait. Not ok: somebody else did.
func (o *offer) claim() (ok bool) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	ok = o.p.offers[o.l.attempt] == o
	if ok {
		delete(o.p.offers, o.l.attempt)
	}
	return ok
}

// stale reports whether nobody can have the link any more: the life of the connection
// that asked for it is over.
func (o *offer) stale() bool { return o.p.conn.Err() != nil || o.p.conn.Life() != o.life }

// end ends the wait of an offer that makes no link, if it waits.
func (o *offer) end() (ended bool) {
	ended = o.claim()
	if ended {
		o.port.offers.remove(o)
	}
	return ended
}

// waiting returns how many links of the peer's wait at all ports.
func (p *peer) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.offers)
}

// withdraw drops the link that the peer asked for in an attempt, if it waits, and says so:
// the dialer keeps memory until it knows that the link never is.
func (p *peer) withdraw(attempt uint64) {
	p.mu.Lock()
	o := p.offers[attempt]
	p.mu.Unlock()
	if o != nil && o.end() {
		p.refuse(o.life, &o.l, "it was withdrawn")
	}
}

// drop drops the links that a peer asked for in lives that are over.
func (p *peer) drop() {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.offers))
	p.mu.Unlock()
	for _, o := range all {
		if o.stale() {
			o.end()
		}
	}
}

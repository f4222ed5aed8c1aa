package link

import (
	"maps"
	"slices"
	"sync"
)

// pendingDial is a letter that asks for a link. It waits at a port until it is accepted, refused, or
// dropped because its dialer cancelled it or is gone. The goroutine that takes it decides which.
type pendingDial struct {
	p      *peer
	life   uint32
	letter letter
	queue  *pendingQueue

	// Guarded by the queue's mutex.
	queued     bool
	prev, next *pendingDial
}

// pendingQueue is the pending dials of a port, the oldest first.
type pendingQueue struct {
	more chan struct{} // capacity 1: the queue may have some

	mu          sync.Mutex
	first, last *pendingDial
	n           int
}

func (q *pendingQueue) init() { q.more = make(chan struct{}, 1) }

func (q *pendingQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

func (q *pendingQueue) put(o *pendingDial) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.prev = q.last; o.prev != nil {
		o.prev.next = o
	} else {
		q.first = o
	}
	q.last, o.queued = o, true
	q.n++
	q.signal()
}

// signalRest wakes another goroutine that waits, if any are left.
func (q *pendingQueue) signalRest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n > 0 {
		q.signal()
	}
}

// take returns the oldest pending dial; nil: there is none.
func (q *pendingQueue) take() *pendingDial {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.first
	if o != nil {
		q.unlink(o)
	}
	return o
}

// remove takes a pending dial out, if it is in the queue.
func (q *pendingQueue) remove(o *pendingDial) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.queued {
		q.unlink(o)
	}
}

func (q *pendingQueue) unlink(o *pendingDial) {
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

func (q *pendingQueue) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// enqueue enters a pending dial at its port. Not ok: that attempt waits already.
func (o *pendingDial) enqueue() (ok bool) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	if o.p.pending[o.letter.attempt] != nil {
		return false
	}
	if o.p.pending == nil {
		o.p.pending = make(map[uint64]*pendingDial)
	}
	o.p.pending[o.letter.attempt] = o
	o.queue.put(o)
	return true
}

// take ends the wait. Not ok: another goroutine did.
func (o *pendingDial) take() (ok bool) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	ok = o.p.pending[o.letter.attempt] == o
	if ok {
		delete(o.p.pending, o.letter.attempt)
	}
	return ok
}

// isStale reports whether the life of the connection that asked for the link is over.
func (o *pendingDial) isStale() bool { return o.p.conn.Err() != nil || o.p.conn.Life() != o.life }

// cancel ends the wait of a pending dial that makes no link, if it waits.
func (o *pendingDial) cancel() (ended bool) {
	ended = o.take()
	if ended {
		o.queue.remove(o)
	}
	return ended
}

// countPending returns how many links that the peer dialed wait, at all ports.
func (p *peer) countPending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending)
}

// cancelDial drops the link that the peer asked for in an attempt, if it waits, and tells the dialer:
// it keeps memory until it knows that the link will never be.
func (p *peer) cancelDial(attempt uint64) {
	p.mu.Lock()
	o := p.pending[attempt]
	p.mu.Unlock()
	if o != nil && o.cancel() {
		p.refuse(o.life, &o.letter, "it was cancelled")
	}
}

// dropStale drops the pending dials of lives that are over.
func (p *peer) dropStale() {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.pending))
	p.mu.Unlock()
	for _, o := range all {
		if o.isStale() {
			o.cancel()
		}
	}
}

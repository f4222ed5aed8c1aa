package dgrdma

import (
	"sync"
	"sync/atomic"
)

// notifications are transactions that are done, and whose Done or writer is not told yet. The goroutine that delivers tells them: the
// scheduler's sending goroutine, or a goroutine that polls the endpoint. The lock comes after all others.
type notifications struct {
	mu   sync.Mutex
	list finished
	late atomic.Bool // some of them wait until the batch that is being sent has left
}

// finish hands over transactions to be answered. f is empty then. What is done must
// not be called under a lock, but this may be: a function that takes a transaction from a
// connection hands it over before it gives up the lock, or holds a turn for which
// Close waits, so that none is answered after Close.
func (e *Endpoint) finish(f *finished) {
	if f.head == nil {
		return
	}
	a := &e.notifications
	a.mu.Lock()
	if a.list.head == nil {
		a.list = *f
	} else {
		a.list.tail.next = f.head
		a.list.tail = f.tail
	}
	a.mu.Unlock()
	*f = finished{}
	e.sched.Kick()
}

// tell answers transactions, but for those of which bytes are just being sent: they are handed
// over. No lock may be held.
func (e *Endpoint) tell(f *finished) {
	if e.batch.IsLending() {
		late := f.leaving(e.batch.Number())
		e.finish(&late)
	}
	f.deliver()
}

// deliverNotifications answers what was handed over.
func (e *Endpoint) deliverNotifications() {
	a := &e.notifications
	a.mu.Lock()
	f := a.list
	a.list = finished{}
	if e.batch.IsLending() {
		a.late.Store(true) // before the look at the number, which leave raises before it looks at this
		a.list = f.leaving(e.batch.Number())
		a.late.Store(a.list.head != nil)
	} else if a.late.Load() {
		a.late.Store(false)
	}
	a.mu.Unlock()
	defer e.finish(&f) // what is left, if Done panics
	f.deliver()
}

// failAll fails everything that is posted, on all connections.
func (e *Endpoint) failAll(err error) {
	now := e.now()
	for _, c := range e.Conns() {
		c.mu.Lock()
		var fin finished
		c.fail(now, &fin, err)
		e.finish(&fin)
		c.mu.Unlock()
	}
}

package endpoint

import (
	"sync"
	"sync/atomic"
)

// answers are transactions whose Done, or writer, who delivers must tell: the
// scheduler's sending goroutine, or who drives it. The lock comes after all others.
type answers struct {
	mu   sync.Mutex
	list finished
	late atomic.Bool // some of them wait until the batch that is being sent has left
}

// finish hands over transactions to be answered. f is empty then. What is done must
// not be called under a lock, but this may be: who takes a transaction from a
// connection hands it over before it gives up the lock, or holds a turn for which
// Close waits, so that none is answered after Close.
func (e *Endpoint) finish(f *finished) {
	if f.head == nil {
		return
	}
	a := &e.answers
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

// answerer is what those know of the endpoint who have transactions to answer.
type answerer interface {
	finish(*finished)
	tell(*finished)
}

// tell answers transactions, but for those of which bytes are just being sent: they are handed
// over. No lock may be held.
func (e *Endpoint) tell(f *finished) {
	if e.batch.lends.Load() {
		late := f.leaving(e.batch.number.Load())
		e.finish(&late)
	}
	f.deliver()
}

// deliverFinished answers what was handed over, and hands over what is left when a
// callback does not return.
func (e *Endpoint) deliverFinished() {
	a := &e.answers
	a.mu.Lock()
	f := a.list
	a.list = finished{}
	if e.batch.lends.Load() {
		a.late.Store(true) // before the look at the number, which leave raises before it looks at this
		a.list = f.leaving(e.batch.number.Load())
		a.late.Store(a.list.head != nil)
	} else if a.late.Load() {
		a.late.Store(false)
	}
	a.mu.Unlock()
	defer e.finish(&f)
	f.deliver()
}

// answerAll answers everything that was handed over, even if callbacks do not return.
func (e *Endpoint) answerAll() {
	defer func() {
		e.answers.mu.Lock()
		some := e.answers.list.head != nil
		e.answers.mu.Unlock()
		if some {
			e.answerAll()
		}
	}()
	e.deliverFinished()
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

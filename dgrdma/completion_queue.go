package dgrdma

import (
	"context"
	"sync"
)

// Completion is a transaction that is done, and how it went.
type Completion struct {
	Transaction *Transaction
	Err         error
}

// CompletionQueue collects transactions that are done, for programs that would
// rather ask than be called. Its methods may be called from any goroutine.
type CompletionQueue struct {
	mu      sync.Mutex
	ring    []Completion
	first   int
	n       int
	pending int // posted, not collected yet: at most the depth
	arrived chan struct{}
	polled  polledEndpoints // the endpoints on which something was posted
	look    func() bool
	waiters sync.Pool
	done    func(*Transaction, error)
}

// NewCompletionQueue makes a queue for depth transactions, at least 1, that are
// posted and not collected.
func NewCompletionQueue(depth int) *CompletionQueue {
	q := &CompletionQueue{ring: make([]Completion, max(depth, 1)), arrived: make(chan struct{}, 1)}
	q.done, q.look = q.add, q.some
	q.waiters.New = func() any {
		w := new(Waiter)
		w.Init()
		return w
	}
	return q
}

// Post posts t on c and will put it into the queue when it is done; it sets
// t.Done. ErrQueueFull means that depth transactions wait to be collected.
func (q *CompletionQueue) Post(c *Conn, t *Transaction) error {
	_ = t.Done // a nil transaction or connection panics before a place is taken
	q.polled.addOf(c)
	q.mu.Lock()
	if q.pending == len(q.ring) {
		q.mu.Unlock()
		return ErrQueueFull
	}
	q.pending++
	q.mu.Unlock()
	err := c.PostWith(t, q.done)
	if err != nil {
		q.mu.Lock()
		q.pending--
		q.mu.Unlock()
	}
	return err
}

func (q *CompletionQueue) add(t *Transaction, err error) {
	t.Done = nil // it may be written next, or posted elsewhere
	q.mu.Lock()
	q.ring[(q.first+q.n)%len(q.ring)] = Completion{t, err}
	q.n++
	q.mu.Unlock()
	q.signal()
}

func (q *CompletionQueue) signal() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

// some reports whether something is done.
func (q *CompletionQueue) some() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n > 0
}

// Poll moves what is done into dst and returns how many there were.
func (q *CompletionQueue) Poll(dst []Completion) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(q.n, len(dst))
	for i := range n {
		dst[i] = q.ring[q.first]
		q.ring[q.first] = Completion{}
		q.first = (q.first + 1) % len(q.ring)
	}
	q.n -= n
	q.pending -= n
	if q.n > 0 {
		q.signal() // for another goroutine that waits
	}
	return n
}

// Wait is Poll that blocks until there is at least one. What is done wins over
// a context that is. It drives the endpoints on which something was posted, as
// [Endpoint.Await] does.
func (q *CompletionQueue) Wait(ctx context.Context, dst []Completion) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	n := q.Poll(dst)
	if n > 0 {
		return n, nil
	}
	w := q.waiters.Get().(*Waiter)
	defer q.waiters.Put(w)
	for n == 0 {
		if !q.polled.await(ctx, w, q.look, nil, q.arrived) && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n = q.Poll(dst)
	}
	return n, nil
}

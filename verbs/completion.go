package verbs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/internal/patience"
	"github.com/dgrdma/dgrdma/rdmap"
)

// CompletionQueue takes the completions of one queue pair or of several ([Options.Completions], [Options.Received]). It
// holds whatever was posted and not polled, and cannot overflow. All methods may be called at the same time.
type CompletionQueue struct {
	mu      sync.Mutex
	entries []Completion // a ring, of a power of two
	head    uint
	tail    uint
	events  int // entries that are events: solicited, or failed

	any, event sleepers

	pairs  map[*QueuePair]bool // whose completions come here
	of     *QueuePair          // that one, if it is the only one
	own    *QueuePair          // nothing but this one completes here, ever; nil: a program made the queue
	shared atomic.Bool         // there are several
}

// serve has completions of a queue pair come here.
func (q *CompletionQueue) serve(p *QueuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pairs[p] = true
	q.count()
}

// served says that a queue pair has ended, and no more of its completions come.
func (q *CompletionQueue) served(p *QueuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pairs, p)
	q.count()
}

// count has the lock.
func (q *CompletionQueue) count() {
	q.of = nil
	q.shared.Store(len(q.pairs) > 1)
	if len(q.pairs) == 1 {
		for q.of = range q.pairs {
		}
	}
}

// sleepers are goroutines that wait for the same.
type sleepers struct {
	n    int
	wake chan struct{}
}

func (s *sleepers) signal() {
	if s.n > 0 {
		patience.Leave(s.wake)
	}
}

// NewCompletionQueue makes an empty queue.
func NewCompletionQueue() *CompletionQueue {
	return &CompletionQueue{
		entries: make([]Completion, 64),
		pairs:   make(map[*QueuePair]bool),
		any:     sleepers{wake: make(chan struct{}, 1)},
		event:   sleepers{wake: make(chan struct{}, 1)},
	}
}

// completer is the queue as streams see it.
type completer CompletionQueue

func (c *completer) Complete(done *rdmap.Completion) {
	(*CompletionQueue)(c).add((*Completion)(done))
	(*Completion)(done).QueuePair().rouse()
}

func (q *CompletionQueue) add(c *Completion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tail-q.head == uint(len(q.entries)) {
		q.grow()
	}
	q.entries[q.tail&uint(len(q.entries)-1)] = *c
	q.tail++
	if isEvent(c) {
		q.events++
		q.event.signal()
	}
	q.any.signal()
}

func isEvent(c *Completion) bool { return c.Solicited || c.Err != nil }

func (q *CompletionQueue) grow() {
	bigger := make([]Completion, 2*len(q.entries))
	n := copy(bigger, q.entries[q.head&uint(len(q.entries)-1):])
	copy(bigger[n:], q.entries[:len(q.entries)-n])
	q.entries, q.head, q.tail = bigger, 0, uint(len(q.entries))
}

// take moves completions to done. The caller has the lock.
func (q *CompletionQueue) take(done []Completion) int {
	n := 0
	for ; n < len(done) && q.head != q.tail; n++ {
		e := &q.entries[q.head&uint(len(q.entries)-1)]
		if isEvent(e) {
			q.events--
		}
		done[n] = *e
		*e = Completion{}
		q.head++
	}
	return n
}

// Poll moves completions to done, as many as there are and it has room for, and says how many.
func (q *CompletionQueue) Poll(done []Completion) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(done)
}

// Wait is [CompletionQueue.Poll], but waits until there is something, or ctx ends; what is there by then is moved all the same.
// Of a queue that a queue pair has made for itself, it returns [QueuePair.Err] when that has ended and nothing is left.
func (q *CompletionQueue) Wait(ctx context.Context, done []Completion) (int, error) {
	return q.wait(ctx, done, &q.any, func() bool { return q.head != q.tail })
}

// WaitEvent is [CompletionQueue.Wait], but sleeps until a completion is there for which the peer
// asked for an event, or one that failed (RDMAP-049).
func (q *CompletionQueue) WaitEvent(ctx context.Context, done []Completion) (int, error) {
	return q.wait(ctx, done, &q.event, func() bool { return q.events > 0 })
}

func (q *CompletionQueue) wait(ctx context.Context, done []Completion, s *sleepers, there func() bool) (int, error) {
	if len(done) == 0 {
		return 0, ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	helps := q.of
	if helps != nil && !there() {
		helps.lending.waiters.Add(1)
		defer helps.lending.waiters.Add(-1)
	}
	for !there() {
		if q.own != nil && q.own.Err() != nil {
			return 0, q.own.Err()
		}
		var offered, ended <-chan struct{}
		if q.own != nil {
			ended = q.own.done
		}
		if helps != nil {
			q.mu.Unlock()
			helps.help(ctx, func() bool {
				q.mu.Lock()
				defer q.mu.Unlock()
				return there()
			})
			offered = helps.lending.offered
			q.mu.Lock()
			if there() {
				break
			}
		}
		s.n++
		q.mu.Unlock()
		var err error
		select {
		case <-s.wake:
		case <-offered:
		case <-ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		s.n--
		if err != nil && !there() {
			return 0, err
		}
	}
	n := q.take(done)
	if there() {
		s.signal()
	}
	return n, nil
}

// HashSize is the longest hash of a Verify, that of SHA-256.
const HashSize = rdmap.HashSize

// QueuePair is the queue pair whose request or receive it was.
func (c *Completion) QueuePair() *QueuePair {
	q, _ := c.Owner.(*QueuePair)
	return q
}

// String says what is done, and how it went.
func (c Completion) String() string {
	switch {
	case c.Err != nil:
		return fmt.Sprintf("%v %d failed: %v", c.Op, c.ID, c.Err)
	case c.Op == OpReceive && c.Immediate:
		return fmt.Sprintf("%v %d: immediate data %x", c.Op, c.ID, c.Payload)
	case c.Op == OpReceive, c.Op == OpRead:
		return fmt.Sprintf("%v %d: %d bytes", c.Op, c.ID, c.Length)
	}
	return fmt.Sprintf("%v %d: done", c.Op, c.ID)
}

package verbs

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// QueuePair is one connection: a queue of work requests, and one of receives. It may be used by many
// goroutines; requests are carried out in the order in which they are posted. It is opened by [Host.Dial], [Host.Connect]
// or [Request.Accept], and ended by [QueuePair.Close].
type QueuePair struct {
	host     *Host
	conn     *mpa.Conn
	private  []byte
	cfg      rdmap.Config
	sent     *CompletionQueue
	received *CompletionQueue
	own      *Stream
	memory   *memory.Stream
	stop     context.CancelFunc // of what carries out long requests
	ctx      context.Context

	mu      sync.Mutex
	changed sync.Cond // something below, or in the queues, has
	waiting int       // for changed
	stream  *rdmap.Stream
	turn    turn
	sends   func() // send, made once: a go statement takes no memory then
	working bool   // a goroutine carries out long requests, now job
	job     rdmap.Job
	closing bool        // the program has closed the queue pair
	barring bool        // all that it had posted is done; only the barrier of Shutdown may be under way
	halved  bool        // this side has ended its direction
	settled bool        // the peer has closed, and has all that this side had posted
	closes  *time.Timer // the connection, which has failed
	gaveUp  error       // why this side has aborted the connection
	lost    error       // why the network cannot send any more
	cause   error
	silence silence
	watcher *time.Timer // nil: the peer may be silent
	// What full says.
	fullSends, fullReceives error

	lending lending

	done chan struct{} // closed when everything has completed
}

// turn says who sends. Who has it looks at again before giving it up.
type turn struct {
	taken bool
	again bool
}

// claim takes the turn, or sees to it that who has it looks again. The caller has the lock.
func (t *turn) claim() bool {
	if t.taken {
		t.again = true
		return false
	}
	t.taken = true
	return true
}

// Post queues a work request. It returns when the request is in the queue, and does not wait for the
// network. Buffers are the queue pair's until the request completes.
//
// [ErrFull]: as many requests as the queue holds are not done; poll the completion queue. [ErrNotAgreed]: the operation
// needs an extension. [ErrClosed], or why the connection ended: there will be no completion.
func (q *QueuePair) Post(w *Work) error { return q.post(w, nil) }

// post queues a request whose completion goes to somebody, if not to the queue pair's own queue.
func (q *QueuePair) post(w *Work, to rdmap.Completions) error {
	_ = w.Op // a nil request panics before the lock is taken
	q.mu.Lock()
	err := q.queue(w, to)
	mine := err == nil && q.turn.claim()
	q.mu.Unlock()
	if mine {
		q.sendAway()
	}
	return err
}

// PostList queues several work requests at once, which costs less than one by one. It says how many it
// queued; with an error, which is that of the next one: see [QueuePair.Post].
func (q *QueuePair) PostList(list []Work) (n int, err error) {
	q.mu.Lock()
	for n = range list {
		if err = q.queue(&list[n], nil); err != nil {
			break
		}
	}
	if err == nil {
		n = len(list)
	}
	mine := n > 0 && q.turn.claim()
	q.mu.Unlock()
	if mine {
		q.sendAway()
	}
	return n, err
}

// queue has the lock.
func (q *QueuePair) queue(w *Work, to rdmap.Completions) error {
	if q.closing {
		return fmt.Errorf("post %v: the queue pair is closed: %w", w.Op, net.ErrClosed)
	}
	err := q.stream.PostTo((*rdmap.Work)(w), to)
	switch {
	case err == nil:
		q.settled = false
		return nil
	case err == rdmap.ErrFull:
		return q.full(&q.fullSends, "Sends", q.cfg.Sends, "poll Completions")
	}
	return fmt.Errorf("post %v: %w", w.Op, err)
}

// full is the error of a queue that has no room. Programs that post until it comes meet it often: it is made once.
func (q *QueuePair) full(is *error, option string, limit int, remedy string) error {
	q.host.bounds.full.Add(1)
	if *is == nil {
		*is = fmt.Errorf("post: %d requests are not done, as many as Options.%s allows: %s before you post more: %w", limit, option, remedy, ErrFull)
	}
	return *is
}

// PostReceive queues a buffer for one message of the peer. A message for which there is none
// ends the connection, so receives are to be posted before the peer is asked to send, and the
// first ones with [Options.Posted], before the connection is there. With [Options.Shared] receives are
// posted there.
func (q *QueuePair) PostReceive(r Receive) error { return q.postReceive(r, nil) }

func (q *QueuePair) postReceive(r Receive, to rdmap.Completions) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queueReceive(&r, to)
}

// PostReceives queues several receives at once, which costs less than one by one. It says how many it queued; with an
// error, which is that of the next one: see [QueuePair.PostReceive].
func (q *QueuePair) PostReceives(list []Receive) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n = range list {
		if err := q.queueReceive(&list[n], nil); err != nil {
			return n, err
		}
	}
	return len(list), nil
}

// queueReceive has the lock.
func (q *QueuePair) queueReceive(r *Receive, to rdmap.Completions) error {
	if q.closing {
		return fmt.Errorf("post a receive: the queue pair is closed: %w", net.ErrClosed)
	}
	err := q.stream.PostReceiveTo(rdmap.Receive(*r), to)
	switch {
	case err == nil:
		return nil
	case err == rdmap.ErrFull:
		return q.full(&q.fullReceives, "Receives", q.cfg.Receives, "wait for messages")
	case q.cfg.Shared != nil && err == rdmap.ErrInvalid:
		return fmt.Errorf("post a receive: the queue pair takes those of Options.Shared: post it there: %w", err)
	}
	return fmt.Errorf("post a receive: %w", err)
}

// Room is how many work requests the send queue takes now.
func (q *QueuePair) Room() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stream.Room()
}

// Completions is the queue in which work requests complete.
func (q *QueuePair) Completions() *CompletionQueue { return q.sent }

// Received is the queue in which receives complete.
func (q *QueuePair) Received() *CompletionQueue { return q.received }

// Stream is what memory is registered for that this queue pair alone may use: [RegionOptions.Only].
func (q *QueuePair) Stream() *Stream { return q.own }

// Domain is the protection domain.
func (q *QueuePair) Domain() *Domain { return q.own.of }

// Private is what the peer said when the connection was set up.
func (q *QueuePair) Private() []byte { return q.private }

// queues tells each of those in which it completes something of it.
func (q *QueuePair) queues(tell func(*CompletionQueue, *QueuePair)) {
	tell(q.sent, q)
	if q.received != q.sent {
		tell(q.received, q)
	}
}

// LocalAddr is the address of this side.
func (q *QueuePair) LocalAddr() net.Addr { return q.conn.LocalAddr() }

// RemoteAddr is the address of the peer.
func (q *QueuePair) RemoteAddr() net.Addr { return q.conn.RemoteAddr() }

// Limits says how many requests may be outstanding: ORD of this side's that the peer answers, IRD of
// the peer's. With an ORD of 0 the peer answers none: [ErrNoReads].
func (q *QueuePair) Limits() (ird, ord int) { return q.cfg.IRD, q.cfg.ORD }

// Revision is that of MPA which the two sides have agreed on, 1 or 2. With 1 they have told each other nothing of IRD and ORD, so that
// Limits are what Options say.
func (q *QueuePair) Revision() int { return q.conn.Agreed().Rev }

// CRC says that frames have checksums.
func (q *QueuePair) CRC() bool { return q.conn.Agreed().CRC }

// Done is closed when the queue pair has ended and every request and receive has completed.
func (q *QueuePair) Done() <-chan struct{} { return q.done }

// Err is nil until Done is closed, and then why it was: [ErrPeerClosed], [ErrClosed], [ErrSilent], a
// [TerminateError], an error of the network, as syscall.ECONNRESET where the peer gave it up, or that of a context
// which ended amid a call of this side, as context.DeadlineExceeded.
func (q *QueuePair) Err() error {
	select {
	case <-q.done:
		return q.cause
	default:
		return nil
	}
}

// Extensions are those that the queue pair was opened with.
func (q *QueuePair) Extensions() Extensions { return q.cfg.Extensions }

// Stats says what the queue pair has done, and what it has to do.
func (q *QueuePair) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Stats(q.stream.Stats())
}

// String names both ends.
func (q *QueuePair) String() string {
	return fmt.Sprintf("queue pair %v to %v", q.LocalAddr(), q.RemoteAddr())
}

package verbs

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// QueuePair is one connection: a queue of work requests, and one of receives. It may be used by many
// goroutines; requests are carried out in the order in which they are posted.
type QueuePair struct {
	host     *Host
	conn     *mpa.Conn
	private  []byte
	cfg      rdmap.Config
	sent     *CompletionQueue
	received *CompletionQueue
	memory   *memory.Stream
	stop     context.CancelFunc // of what carries out long requests
	ctx      context.Context

	mu      sync.Mutex
	changed sync.Cond // something below, or in the queues, has
	waiting int       // for changed
	stream  *rdmap.Stream
	turn    turn
	working bool // a goroutine carries out long requests, now job
	job     rdmap.Job
	closing bool // the program has closed the queue pair
	cause   error

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
func (q *QueuePair) Post(w *Work) error {
	q.mu.Lock()
	err := q.post(w)
	mine := err == nil && q.turn.claim()
	q.mu.Unlock()
	if mine {
		q.sendAway()
	}
	return err
}

// PostList queues several work requests at once, which costs less than one by one. It says how many it
// queued; with an error, that is of the next one.
func (q *QueuePair) PostList(list []Work) (n int, err error) {
	q.mu.Lock()
	for n = range list {
		if err = q.post(&list[n]); err != nil {
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

// post has the lock.
func (q *QueuePair) post(w *Work) error {
	if q.closing {
		return fmt.Errorf("verbs: post %v: the queue pair is closed: %w", w.Op, net.ErrClosed)
	}
	return q.stream.Post(w)
}

// PostReceive queues a buffer for one message of the peer. A message for which there is none
// ends the connection, so receives are to be posted before the peer is asked to send, and the
// first ones with [Options.Posted], before the connection is there.
func (q *QueuePair) PostReceive(r Receive) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return fmt.Errorf("verbs: post a receive: the queue pair is closed: %w", net.ErrClosed)
	}
	return q.stream.PostReceive(r)
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

// Private is what the peer said when the connection was set up.
func (q *QueuePair) Private() []byte { return q.private }

// LocalAddr is the address of this side.
func (q *QueuePair) LocalAddr() net.Addr { return q.conn.LocalAddr() }

// RemoteAddr is the address of the peer.
func (q *QueuePair) RemoteAddr() net.Addr { return q.conn.RemoteAddr() }

// Limits says how many requests may be outstanding: ORD of this side's that the peer answers, IRD of
// the peer's.
func (q *QueuePair) Limits() (ird, ord int) { return q.cfg.IRD, q.cfg.ORD }

// CRC says that frames have checksums.
func (q *QueuePair) CRC() bool { return q.conn.Agreed().CRC }

// Done is closed when the queue pair has ended and every request and receive has completed.
func (q *QueuePair) Done() <-chan struct{} { return q.done }

// Err is nil until Done is closed, and then why it was: [ErrPeerClosed], [ErrClosed], a
// [TerminateError], or an error of the network.
func (q *QueuePair) Err() error {
	select {
	case <-q.done:
		return q.cause
	default:
		return nil
	}
}

// String names both ends.
func (q *QueuePair) String() string {
	return fmt.Sprintf("queue pair %v to %v", q.LocalAddr(), q.RemoteAddr())
}

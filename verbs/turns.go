package verbs

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// driver is a queue pair as its carrier knows it: the stream under its lock.
type driver struct{ *QueuePair }

func (d driver) Begin() { d.mu.Lock() }

func (d driver) End() {
	if d.stream.Err() != nil {
		d.hurry()
	}
	if d.waiting > 0 {
		d.changed.Broadcast()
	}
	d.mu.Unlock()
}

func (d driver) Next(m *ddp.Message) bool { return d.stream.Next(m) }
func (d driver) Sent(n int)               { d.stream.Sent(n) }

func (d driver) Place(h *ddp.Header, n int) (ddp.Span, error) { return d.stream.Place(h, n) }
func (d driver) Deliver(h *ddp.Header, n uint32) error        { return d.stream.Deliver(h, n) }

// runs is how many batches a goroutine sends that came to do something else. What is left is for
// one that is there for it.
const runs = 4

// sendAway sends what there is, without waiting for the network. The caller has the turn, and gives it away.
func (q *QueuePair) sendAway() {
	if q.conn.Blocks() {
		go q.sends()
		return
	}
	for range runs {
		p, err := q.conn.Send(driver{q})
		if q.sendFailed(err) {
			q.giveTurn()
			return
		}
		if p == mpa.Blocked {
			break
		}
		if p == mpa.Idle && q.giveTurnUnlessAgain() {
			return
		}
	}
	go q.sends()
}

// send sends until nothing is left, and gives the turn away.
func (q *QueuePair) send() {
	for {
		p, err := q.conn.Send(driver{q})
		if err == nil && p == mpa.Blocked {
			err = q.conn.Flush(driver{q})
		}
		if q.sendFailed(err) {
			q.giveTurn()
			return
		}
		if p == mpa.Idle && q.giveTurnUnlessAgain() {
			return
		}
	}
}

// sendFailed says that nothing can be sent any more. Memory that was withdrawn while the peer read
// it, or that is not there any more, is a fault that the peer is told of, if it can be.
func (q *QueuePair) sendFailed(err error) bool {
	if err == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	withdrawn := errors.Is(err, mpa.ErrWithdrawn)
	if withdrawn {
		q.stream.Fail(ddp.ProtectionSTag, err)
	}
	ofMemory := q.memoryLost(err) || withdrawn
	// EPIPE says no more than that the connection has ended.
	if errno := syscall.Errno(0); errors.As(err, &errno) && errno != syscall.EPIPE {
		q.lost = err
	}
	// The receiving goroutine ends the queue pair: what the peer has said last may still be
	// unread, and it may say why.
	if !q.halved { // else this is an answer to who sends on, and may take its time
		q.hurry()
	}
	return !ofMemory || errors.Is(err, ddp.Lost)
}

// lastWords is how long a connection stays that has failed: for a Terminate to leave, and for the peer to end its direction, and to
// say why. A peer that does neither read nor write is not waited for.
const lastWords = time.Second

// hurry sees to it that the connection ends within the time for last words. The caller has the lock.
func (q *QueuePair) hurry() {
	if q.closes == nil {
		q.closes = time.AfterFunc(lastWords, func() { q.conn.Close() })
	}
}

func (q *QueuePair) giveTurn() {
	q.mu.Lock()
	q.turn = turn{}
	q.changed.Broadcast()
	q.mu.Unlock()
}

func (q *QueuePair) giveTurnUnlessAgain() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn.again {
		q.turn.again = false
		return false
	}
	q.turn.taken = false
	q.changed.Broadcast()
	return true
}

// receive is the receiving goroutine of a queue pair. It ends with it.
func (q *QueuePair) receive() {
	for {
		err := q.after(q.conn.Receive(receiver{driver{q}}))
		if err != nil && !errors.Is(err, mpa.ErrInterrupted) {
			q.end(err)
			return
		}
		if q.lending.asked.Load() {
			q.lend()
		}
	}
}

// after does what is due after each call of the carrier's Receive, or Watch, which returned err. The caller has the turn to receive.
func (q *QueuePair) after(err error) error {
	if errors.Is(err, mpa.ErrInterrupted) {
		return err
	}
	q.mu.Lock()
	if f, fault := carrierFault(err); fault && !q.memoryLost(err) {
		q.stream.Fail(f, err)
	}
	mine := q.stream.Waiting() && q.turn.claim()
	q.work()
	q.mu.Unlock()
	if mine {
		q.sendAway()
	}
	return err
}

// receiver is the driver of who receives. It sees itself what it completes, and need not be roused.
type receiver struct{ driver }

// Begin is that of [driver].
func (r receiver) Begin() {
	r.mu.Lock()
	r.lending.reading = false
}

// carrierFault says that the carrier found a fault in what the peer sent; faults which the stream found it
// knows already.
func carrierFault(err error) (ddp.Fault, bool) {
	if err == nil {
		return 0, false
	}
	var f ddp.Fault
	found := errors.As(err, &f) && !errors.Is(err, ddp.Lost)
	return f, found
}

// work has the peer's next long request carried out, one at a time. The caller has the lock.
func (q *QueuePair) work() {
	if q.working || !q.stream.Job(&q.job) {
		return
	}
	q.working = true
	go func() {
		sum, err := q.carryOut(&q.job)
		q.mu.Lock()
		q.stream.JobDone(sum, err)
		if q.stream.Err() != nil {
			q.hurry() // even if what is under way does not leave
		}
		q.working = false
		mine := q.turn.claim()
		q.changed.Broadcast()
		q.mu.Unlock()
		if mine {
			q.sendAway()
		}
	}()
}

func (q *QueuePair) carryOut(j *rdmap.Job) (sum []byte, err error) {
	if j.Verify {
		return q.memory.Verify(q.ctx, j.STag, j.TO, j.Length, j.Hash[:j.HashSize])
	}
	var how memory.Rights
	if j.Persistent {
		how |= memory.FlushPersistent
	}
	if j.Global {
		how |= memory.FlushGlobal
	}
	return nil, q.memory.Flush(q.ctx, j.STag, j.TO, j.Length, how)
}

// end ends a queue pair whose connection does not receive any more: a Terminate that waits leaves,
// what others do for it ends, and then everything completes.
func (q *QueuePair) end(err error) {
	q.mu.Lock()
	if cause := q.stream.Err(); cause != nil {
		q.hurry()
		for q.turn.taken && q.stream.Terminating() {
			q.changed.Wait()
		}
		q.mu.Unlock()
		// RDMAP-085: the connection ends gracefully, so that the peer gets the Terminate.
		var e *rdmap.TerminateError
		if !(errors.As(cause, &e) && e.Remote) && q.conn.CloseWrite() == nil {
			for q.conn.Discard() == nil {
			}
		}
	} else {
		q.mu.Unlock()
		if errors.Is(err, io.EOF) {
			q.settle()
		}
	}
	q.conn.Close()
	q.stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.turn.taken || q.working {
		q.changed.Wait()
	}
	if q.lost != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = q.lost // the system has told who sent, and to who receives it is an end like others
	}
	cause := err
	switch {
	case q.stream.Err() != nil:
		cause = q.stream.Err()
	case q.gaveUp != nil && !errors.Is(err, io.EOF):
		cause = q.gaveUp
	case q.closing && (q.settled || !errors.Is(err, io.EOF)):
		cause = ErrClosed
	case errors.Is(err, io.EOF):
		cause = ErrPeerClosed
	case q.watcher != nil && notAnswered(err):
		cause = fmt.Errorf("%w: %w", ErrSilent, err)
	}
	q.cause = fmt.Errorf("%v: %w", q, cause)
	q.stream.End(q.cause)
	if q.closes != nil {
		q.closes.Stop()
	}
	if q.watcher != nil {
		q.watcher.Stop()
	}
	q.queues((*CompletionQueue).served)
	q.changed.Broadcast()
	q.host.forget(q, Stats(q.stream.Stats()), q.cause)
	close(q.done)
}

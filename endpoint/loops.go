package endpoint

import (
	"math"
	"runtime"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/transport"
)

// sendLoop serves connections when others do not, acts on deadlines, and calls
// Done for what did not finish on the receiving goroutine.
func (e *Endpoint) sendLoop() {
	whole := false
	defer func() {
		if !whole {
			// Who else would answer what is pending?
			defer func() { go e.sendLoop() }()
			e.broken(ErrCallback)
			return
		}
		e.wg.Done()
	}()
	for {
		select {
		case <-e.stop:
			whole = true
			return
		case <-e.wake:
		case <-e.timer.C:
			e.expire()
		}
		e.serve()
	}
}

// serve gives everyone with work a turn.
func (e *Endpoint) serve() {
	if e.failed.Load() {
		e.failAll(e.failure())
	}
	// Who has the turn, or waits for it, looks at pending after giving it back.
	if e.pending.Load() && e.turnMu.TryLock() {
		e.ownTurn(false)
		if e.pending.Load() && !e.claimed.Load() {
			e.kick()
		}
	}
	e.deliverFinished()
}

// lookShare is for how long deadlines are not looked at after they were, for each
// peer: a look takes a tenth of that, and peers decide when their deadlines are.
const lookShare = 250 * time.Nanosecond

// arm makes the timer fire at that moment, if it would fire later.
func (e *Endpoint) arm(now, at ack.Instant) {
	at = max(at, ack.Instant(e.nextLook.Load()))
	if int64(at) >= e.armed.Load() {
		return
	}
	e.armMu.Lock()
	if int64(at) < e.armed.Load() {
		e.armed.Store(int64(at))
		if !e.cfg.Manual {
			e.timer.Reset(max(at.Sub(now), 0))
		}
	}
	e.armMu.Unlock()
}

// expire serves the connections whose deadline passed.
func (e *Endpoint) expire() {
	e.armed.Store(math.MaxInt64)
	now := e.now()
	e.nextLook.Store(int64(now.Add(time.Duration(e.peers.len()) * lookShare)))
	next := ack.Instant(math.MaxInt64)
	var fin finished
	defer e.finish(&fin) // what is left, if a callback does not return
	e.due = e.peers.append(e.due[:0], func(c *Conn) bool {
		at := ack.Instant(c.wakeAt.Load())
		if at > now {
			next = min(next, at)
		}
		return at <= now
	})
	for _, c := range e.due {
		c.expire(now, &fin)
	}
	clear(e.due)
	if next != math.MaxInt64 {
		e.arm(now, next)
	}
	e.pending.Store(true)
	fin.deliver()
}

// receiveLoop takes datagrams until the transport ends.
func (e *Endpoint) receiveLoop(blocks bool) {
	defer e.wg.Done()
	if blocks {
		runtime.LockOSThread() // ends with the goroutine
	}
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	defer e.receiving.give()
	for !e.failed.Load() {
		if e.receiving.asked.Load() {
			e.lend(idle)
		}
		n, err := e.next()
		if err == nil {
			err = e.take(n)
		}
		if err != nil {
			e.broken(err)
			return
		}
	}
}

// idlePolls is after how many polls in vain others get the processor, if there
// is but one. Arbitrary.
const idlePolls = 64

// next waits for datagrams.
func (e *Endpoint) next() (int, error) {
	if !e.cfg.BusyPoll {
		return e.transport.Recv(e.datagrams, transport.Forever)
	}
	for i := 1; ; i++ {
		if n, err := e.transport.Recv(e.datagrams, 0); n > 0 || err != nil {
			return n, err
		}
		if i%idlePolls == 0 {
			runtime.Gosched()
		}
	}
}

// fullBatch is how many datagrams make a batch that is not waited for to grow.
// Arbitrary: that many share an acknowledgement.
const fullBatch = 64

// take acts on n datagrams, and on those that came meanwhile: they share their
// acknowledgements.
func (e *Endpoint) take(n int) (err error) {
	if err := e.failure(); err != nil {
		return err
	}
	e.batching.Store(true)
	whole := false
	defer func() {
		if !whole {
			e.dropBatch()
		}
	}()
	now := e.now()
	e.receiving.batchAt = now
	for total := n; n > 0; total += n {
		for i := range n {
			e.receive(now, &e.datagrams[i])
		}
		if e.cfg.Manual || total >= fullBatch {
			break
		}
		if n, err = e.transport.Recv(e.datagrams, 0); err != nil {
			break
		}
	}
	e.endBatch(now)
	whole = true
	return err
}

// Poll drives an endpoint with [Config.Manual]: it takes what has come, acts on
// what is due, sends, and calls Done, without waiting, and returns how many
// datagrams it found at first: none if another goroutine is at it. After Close it
// returns ErrClosed.
func (e *Endpoint) Poll() (int, error) {
	if e == nil {
		return 0, ErrNil
	}
	if !e.cfg.Manual {
		panic("BUG: Poll of an endpoint that has goroutines; set Config.Manual")
	}
	if !e.receiving.tryTake() {
		select {
		case <-e.stop:
			return 0, ErrClosed
		default:
			return 0, nil
		}
	}
	defer e.receiving.give()
	return e.progress(0)
}

// drive does what Poll does, for a caller that waits and has just taken the turn to
// receive.
func (e *Endpoint) drive() {
	defer e.receiving.give()
	wait := min(helpPatience, max(0, ack.Instant(e.armed.Load()).Sub(e.now())))
	if e.pending.Load() || len(e.wake) > 0 {
		wait = 0
	}
	e.progress(wait) // who waits hears of an error, as all do whose work it ends
}

// progress takes a batch of datagrams, for which it waits no longer than wait, and
// does what else is due. The caller has the turn to receive.
func (e *Endpoint) progress(wait time.Duration) (int, error) {
	whole := false
	defer func() {
		if !whole {
			e.broken(ErrCallback)
		}
	}()
	var n int
	err := e.failure()
	if err == nil {
		n, err = e.transport.Recv(e.datagrams, wait)
	}
	if err == nil && n > 0 {
		err = e.take(n)
	}
	if err != nil {
		e.broken(err)
		e.serve()
		whole = true
		return n, err
	}
	if int64(e.now()) >= e.armed.Load() {
		e.expire()
	}
	if e.pending.Load() || len(e.wake) > 0 {
		select {
		case <-e.wake:
		default:
		}
		e.serve()
	}
	whole = true
	return n, nil
}

// receive finds whose frame it is.
func (e *Endpoint) receive(now ack.Instant, d *transport.Datagram) {
	var err error
	f := &e.frame // not on the stack: what a trace or a memory is shown, escapes
	if err = f.Decode(d.Data); err != nil {
		e.stranger(RefusedMalformed, d.From, nil)
		return
	}
	c := e.last
	if c == nil || c.peer.ID != f.Src || c.peer.As != f.Dst || c.peer.Addr != d.From || c.down.Load() {
		if c = e.peers.find(peerKey{ids{f.Dst, f.Src}, d.From}); c == nil {
			if f.Dst != e.cfg.ID {
				e.stranger(RefusedDestination, d.From, f)
				return
			}
			if c = e.meet(now, f, d.From); c == nil {
				return
			}
		}
		e.last = c
	}
	c.rx.counters.BytesReceived += uint64(len(d.Data))
	why := c.receive(now, f)
	if t := e.cfg.Trace; t != nil && t.FrameReceived != nil {
		t.FrameReceived(c.Name(), f, why)
	}
}

// touch puts the connection in the list of this batch.
func (c *Conn) touch() {
	if !c.rx.touched {
		c.rx.touched = true
		c.ep.touched = append(c.ep.touched, c)
	}
}

// endBatch applies what a batch of datagrams said, once per connection.
func (e *Endpoint) endBatch(now ack.Instant) {
	var fin finished
	defer e.finish(&fin) // likewise
	work := false
	for i, c := range e.touched {
		c.rx.touched = false
		e.touched[i] = nil
		if c.profile.OverCounts && c.rx.open.len() > 0 {
			c.completeOverCounted()
		}
		if c.endBatch(now, &fin) {
			work = true
		}
		c.missedFrames(c.rx.gaps.tell())
	}
	e.touched = e.touched[:0]
	if e.strangers != (Counters{}) {
		e.mu.Lock()
		e.gone.Add(&e.strangers)
		e.mu.Unlock()
		e.strangers = Counters{}
	}
	fin.deliver()
	e.batching.Store(false)
	e.after.run()
	if work {
		e.pending.Store(true)
	}
	if e.pending.Load() || len(e.replies) > 0 {
		e.answer()
	}
}

func (c *Conn) endBatch(now ack.Instant, fin *finished) (work bool) {
	r := &c.rx
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heardAt = r.lastAt
	if c.epoch.Load() != r.epoch {
		// Reset came in the middle of the batch.
		r.acks = r.acks[:0]
		r.recv.DropDue()
	}
	if c.profile.NeverRetransmits {
		c.countGaps(now)
	}
	if c.err == nil {
		e := c.ep
		before := c.posted.n
		if !c.proof.given && !c.proof.look(now, r.acks, c.sender.InFlight() > 0) {
			r.acks = r.acks[:0]
		}
		for _, run := range r.acks {
			acked, ok := c.sender.AppendAcked(e.scratch[:0], now, run)
			if !ok {
				r.counters.Refused[RefusedAckOfUnsent]++
			}
			if d, measured := c.sender.Measured(); measured {
				c.took().RoundTrip.note(d)
			}
			for _, q := range acked {
				c.settled(now, q, fin)
			}
			c.counters.AcksReceived += uint64(len(acked))
			e.scratch = acked
		}
		if len(r.acks) > 0 {
			c.sender.EndBatch(now)
		}
		if c.posted.n != before {
			c.rested = now
			c.roomMade()
		}
		if c.profile.Acks == AckIfResent && r.resent {
			c.acking = true
		}
		if c.acking {
			c.due.Take(now, &r.recv)
			if c.quick {
				c.due.Hold(now)
			}
		} else {
			r.recv.DropDue()
		}
		if at, armed := c.due.Deadline(); armed && at <= now {
			work = true
		}
		if c.ready() && (c.sender.Lost() > 0 || c.posted.unpacked != nil) {
			work = true
		}
		if work {
			c.queue()
		} else {
			c.arm(now)
		}
	}
	work = work || c.queued.Load()
	r.acks = r.acks[:0]
	c.reached = r.recv.Newest()
	c.session.paired = c.session.paired || r.paired && r.life == c.session.theirs
	c.received = r.counters
	c.open, c.held = r.open.len(), r.held.bytes
	return work
}

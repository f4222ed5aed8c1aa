package endpoint

import (
	"sync/atomic"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// maxBatch bounds the frames given to the transport at once: one system call's
// worth, and the bound on how long a turn keeps a connection's lock.
const maxBatch = 128

// batch collects frames for one call of the transport. It belongs to whoever
// holds the turn.
type batch struct {
	frames   []transport.Outgoing
	smalls   []byte // buffers of frames that are sent once and forgotten
	nSmall   int
	settle   []settled // frames that count as delivered when they are sent
	headroom int
	number   atomic.Uint64 // counts the batches; others read it
}

type settled struct {
	c *Conn
	q frame.Seq
}

func (b *batch) init(headroom int) {
	b.headroom = headroom
	b.number.Store(1)
	b.frames = make([]transport.Outgoing, 0, maxBatch)
	b.smalls = make([]byte, maxBatch*(headroom+smallLength))
}

func (b *batch) full() bool { return len(b.frames) == maxBatch }

// small returns a buffer for a frame that nobody keeps. There is one for every
// frame of a batch.
func (b *batch) small() []byte {
	n := b.headroom + smallLength
	buf := b.smalls[b.nSmall*n : (b.nSmall+1)*n : (b.nSmall+1)*n]
	b.nSmall++
	clear(buf)
	return buf
}

func (b *batch) add(c *Conn, buf []byte, again bool) {
	b.frames = append(b.frames, transport.Outgoing{To: c.to, Buf: buf})
	c.batched = b.number.Load()
	c.counters.FramesSent++
	c.counters.BytesSent += uint64(len(buf) - b.headroom)
	if t := c.ep.cfg.Trace; t != nil && t.FrameSent != nil {
		t.FrameSent(c.Name(), buf[b.headroom:], again)
	}
}

// queue puts the connection in the list of those with work. Whoever does must
// call Endpoint.work afterwards, without locks.
func (c *Conn) queue() {
	if c.queued.CompareAndSwap(false, true) {
		e := c.ep
		e.workMu.Lock()
		e.working = append(e.working, c)
		e.workMu.Unlock()
	}
}

// work sees to it that queued connections are served: by this goroutine if
// inline is set and nobody else is at it, else by the sending one. What is posted
// amid a batch of datagrams leaves at its end, with the acknowledgements.
func (e *Endpoint) work(inline bool) {
	e.pending.Store(true)
	if e.batching.Load() {
		return // who ends the batch looks at pending after saying so
	}
	if !inline {
		e.kick()
		return
	}
	// A turn may find new work behind it; more than a few are for the sending
	// goroutine, so that a caller of Post is not kept.
	for i := 0; i < 2 && e.pending.Load(); i++ {
		if !e.turnMu.TryLock() {
			// Who has the turn looks at pending after giving it back.
			return
		}
		e.ownTurn(false)
	}
	if e.pending.Load() {
		e.kick()
	}
}

// answer is work for the receiving goroutine, at the end of a batch. It waits for
// the turn, which is given up to it: as long as acknowledgements come in, one
// goroutine receives them and sends, and the other core is the peer's.
func (e *Endpoint) answer() {
	e.claimed.Store(true)
	e.turnMu.Lock()
	e.claimed.Store(false)
	e.ownTurn(true)
	if e.pending.Load() {
		e.kick()
	}
}

func (e *Endpoint) kick() { leave(e.wake) }

// leave puts a token where there is room for one, unless one is there.
func leave(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// ownTurn is the turn of who locked turnMu, which it unlocks. Who receives answers
// strangers in it.
func (e *Endpoint) ownTurn(receiving bool) {
	whole := false
	defer e.turnMu.Unlock()
	defer func() {
		if !whole {
			e.dropTurn()
		}
	}()
	if e.failed.Load() {
		e.pending.Store(false) // nobody has work any more
	} else {
		if receiving {
			e.sendReplies()
		}
		e.turn()
	}
	whole = true
}

// turn packs and sends until no connection has work, or the receiving goroutine
// claims the turn. Guarded by turnMu.
func (e *Endpoint) turn() {
	for e.pending.Swap(false) {
		e.workMu.Lock()
		e.working, e.serving = e.serving[:0], e.working
		e.workMu.Unlock()
		now := e.now()
		for i, c := range e.serving {
			if e.claimed.Load() {
				e.giveUp(i)
				break
			}
			c.queued.Store(false)
			for c.pack(&e.batch, now) {
				e.flush()
				if e.claimed.Load() {
					c.queue()
					break
				}
			}
			if e.batch.full() {
				e.flush()
			}
		}
		clear(e.serving) // closed connections must not live on here
		e.flush()
		if e.claimed.Load() {
			e.pending.Store(true)
			return
		}
	}
}

// giveUp puts back the connections from place i on that were not served.
func (e *Endpoint) giveUp(i int) {
	e.workMu.Lock()
	e.working = append(e.working, e.serving[i:]...)
	e.workMu.Unlock()
}

// flush gives the batch to the transport.
func (e *Endpoint) flush() {
	b := &e.batch
	if len(b.frames) > 0 {
		if _, err := e.transport.Send(b.frames); err != nil {
			e.broken(err)
		}
	}
	clear(b.frames)
	b.frames, b.nSmall = b.frames[:0], 0
	b.number.Add(1)
	if len(b.settle) > 0 {
		e.settleSent()
	}
}

// settleSent finishes what was sent to peers that never acknowledge.
func (e *Endpoint) settleSent() {
	var fin finished
	defer e.finish(&fin)
	now := e.now()
	for _, s := range e.batch.settle {
		s.c.settleSent(now, s.q, &fin)
	}
	clear(e.batch.settle)
	e.batch.settle = e.batch.settle[:0]
}

func (c *Conn) settleSent(now ack.Instant, q frame.Seq, fin *finished) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	// It may be acknowledged or given up already.
	if c.sender.Settle(now, q) {
		c.settled(now, q, fin)
	}
	c.roomMade()
	if c.posted.unpacked != nil {
		c.queue()
		c.ep.pending.Store(true)
	}
}

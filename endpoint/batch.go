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

// queue has the connection served. Whoever does calls sched.Work afterwards, without
// locks.
func (c *Conn) queue() { c.ep.sched.Queue(&c.entry) }

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
	}
}

package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// engine is the endpoint as its scheduler sees it.
type engine struct{ *Endpoint }

// Now implements sched.Engine.
func (e engine) Now() ack.Instant { return e.now() }

// Receive implements sched.Engine.
func (e engine) Receive(wait time.Duration) (int, error) {
	if wait != 0 && !e.none {
		// The last batch ended before nothing was left: who waits has to have seen that.
		if n, err := e.look(0); n > 0 || err != nil {
			return n, err
		}
	}
	return e.look(wait)
}

func (e engine) look(wait time.Duration) (int, error) {
	e.looks()
	n, err := e.transport.Recv(e.datagrams, wait)
	if n == 0 {
		e.emptied(0)
	}
	return n, err
}

// fullBatch is how many datagrams make a batch that is not waited for to grow.
// Arbitrary: that many share an acknowledgement.
const fullBatch = 64

// Apply implements sched.Engine. Datagrams that came meanwhile belong to the batch:
// they share their acknowledgements.
func (e engine) Apply(n int) (reply bool, err error) {
	now := e.now()
	e.applying.Store(int64(max(now, 1)))
	e.finds(now)
	for total := n; n > 0; total += n {
		if e.vault != nil {
			e.unseal(now, e.datagrams[:n])
		}
		for in := e.datagrams[:n]; len(in) > 0; {
			in = in[e.receive(now, in):]
		}
		if e.cfg.Manual || total >= fullBatch {
			break
		}
		if n, err = e.transport.Recv(e.datagrams, 0); n == 0 {
			e.emptied(now)
		}
	}
	e.endBatch(now)
	e.applying.Store(0)
	return len(e.replies) > 0 || e.vault != nil && len(e.vault.owed) > 0, err
}

// Serve implements sched.Engine.
func (e engine) Serve(c *Conn, now ack.Instant) (whole bool) { return !c.pack(&e.batch, now) }

// Flush implements sched.Engine: it gives the batch to the transport.
func (e engine) Flush() {
	frames := e.batch.frames
	if e.vault != nil && len(frames) > 0 {
		frames = e.vault.seal(e.now(), frames)
	}
	e.transmit(frames)
	e.leave()
	if len(e.settle) > 0 {
		e.settleSent()
	}
}

func (e engine) transmit(frames []transport.Outgoing) {
	if len(frames) == 0 {
		return
	}
	if _, err := e.transport.Send(frames); err != nil {
		e.sched.Break(err)
	}
}

// leave ends the batch.
func (e engine) leave() {
	b := &e.batch
	lent := b.lent > 0
	b.clear()
	b.number.Add(1)
	if lent {
		b.lends.Store(false)
		if e.answers.late.Load() {
			e.sched.Kick() // whose bytes are not needed any more
		}
	}
}

// Drop implements sched.Engine.
func (e engine) Drop() {
	e.leave()
	clear(e.settle)
	e.settle = e.settle[:0]
}

// Expire implements sched.Engine.
func (e engine) Expire(c *Conn, now ack.Instant) {
	var fin finished
	defer e.finish(&fin)
	c.expire(now, &fin)
}

// Deliver implements sched.Engine.
func (e engine) Deliver() { e.deliverFinished() }

// Broken implements sched.Engine.
func (e engine) Broken(err error) {
	if l := e.cfg.Logger; l != nil {
		l.Error("endpoint failed", "endpoint", e.cfg.ID, "err", err)
	}
}

// Abandon implements sched.Engine.
func (e engine) Abandon(err error) { e.failAll(err) }

// receive finds whose frame the first one is, and returns how many were acted on with it.
func (e *Endpoint) receive(now ack.Instant, in []transport.Datagram) (n int) {
	d, rest := &in[0], in[1:]
	if len(d.Data) == 0 && e.vault != nil {
		return 1 // it was none, and was counted
	}
	b, ok := e.verify(d)
	if !ok {
		return 1
	}
	f := &e.frame
	if err := f.Decode(b); err != nil {
		e.stray(d)
		e.stranger(RefusedMalformed, PeerName{Addr: d.From})
		return 1
	}
	if e.checksum {
		f.Flags &^= frame.FlagChecksum
	}
	c := e.whose(f.Dst, f.Src, &d.From)
	if c == nil {
		if f.Dst != e.cfg.ID {
			e.stray(d)
			switch {
			case f.Dst == 0 && seals(f): // it asks for our id, under a key
				e.stranger(RefusedSealed, PeerName{f.Src, d.From})
			case !e.identify(f, d.From) || f.Dst != 0:
				e.stranger(RefusedDestination, PeerName{f.Src, d.From})
			}
			return 1
		}
		if c = e.meet(now, f, d.From); c == nil {
			e.stray(d)
			return 1
		}
	}
	e.last = c
	e.hears(c)
	c.rx.counters.BytesReceived += uint64(len(d.Data))
	why, applied := c.rx.receive(now, f)
	if t := e.cfg.Trace; t != nil && t.FrameReceived != nil {
		t.FrameReceived(c.Name(), f, why)
		return 1 // it is shown each frame
	}
	if applied && len(rest) > 0 && len(rest[0].Data) == len(d.Data) {
		return 1 + c.rx.follow(now, f, rest, &d.From)
	}
	return 1
}

// whose returns the connection of frames between these ids, or nil.
func (e *Endpoint) whose(dst, src frame.EndpointID, from *transport.Addr) *Conn {
	if c := e.last; c != nil && c.peer.ID == src && c.peer.As == dst && c.peer.Addr == *from && !c.down.Load() {
		return c
	}
	return e.peers.find(peerKey{ids{dst, src}, *from})
}

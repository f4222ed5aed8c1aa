package dgrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// engine is the endpoint as its scheduler sees it.
type engine struct{ *Endpoint }

// Now implements run.Engine.
func (e engine) Now() ack.Instant { return e.now() }

// Receive implements run.Engine.
func (e engine) Receive(wait time.Duration) (int, error) {
	if wait != 0 && !e.none {
		// The last batch ended before nothing was left: a goroutine that waits has to have seen that.
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

// Apply implements run.Engine. Datagrams that came in that time belong to the batch:
// they share their acknowledgements.
func (e engine) Apply(n int) (reply bool, err error) {
	now := e.now()
	e.applying.Store(int64(max(now, 1)))
	e.finds(now)
	for total := n; n > 0; total += n {
		if e.sealed != nil {
			e.sealed.Open(now, e.datagrams[:n])
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
	return e.replies.Len() > 0 || e.sealed != nil && e.sealed.Owes(), err
}

// Serve implements run.Engine.
func (e engine) Serve(c *Conn, now ack.Instant) (whole bool) { return !c.build(&e.batch, now) }

// Flush implements run.Engine: it gives the batch to the transport.
func (e engine) Flush() {
	frames := e.batch.Frames()
	if e.sealed != nil && len(frames) > 0 {
		frames = e.sealed.Seal(e.now(), frames)
	}
	e.transmit(frames)
	e.endSend()
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

// endSend ends the batch.
func (e engine) endSend() {
	if e.batch.End() && e.notifications.late.Load() {
		e.sched.Kick() // whose bytes are not needed any more
	}
}

// Expire implements run.Engine.
func (e engine) Expire(c *Conn, now ack.Instant) {
	var fin finished
	defer e.finish(&fin)
	c.expire(now, &fin)
}

// Deliver implements run.Engine.
func (e engine) Deliver() { e.deliverNotifications() }

// Broken implements run.Engine.
func (e engine) Broken(err error) {
	if l := e.cfg.Logger; l != nil {
		l.Error("endpoint failed", "endpoint", e.cfg.ID, "err", err)
	}
}

// Abandon implements run.Engine.
func (e engine) Abandon(err error) { e.failAll(err) }

// receive finds whose frame the first one is, and returns how many were acted on with it.
func (e *Endpoint) receive(now ack.Instant, in []transport.Datagram) (n int) {
	d, rest := &in[0], in[1:]
	if len(d.Data) == 0 && e.sealed != nil {
		return 1 // it was none, and was counted
	}
	b, ok := e.verify(d)
	if !ok {
		return 1
	}
	if frame.IsSession(b) && e.hasSessions(b, &d.From) {
		return e.receiveSession(now, d, b, rest)
	}
	f := &e.frame
	if err := f.Decode(b); err != nil {
		e.countUnknown(d)
		e.refuseUnknown(RefusedMalformed, PeerName{Addr: d.From})
		return 1
	}
	if e.checksum {
		f.Flags &^= frame.FlagChecksum
	}
	c := e.whose(f.Dst, f.Src, &d.From)
	if c == nil {
		if c = e.meet(now, f, d); c == nil {
			return 1
		}
	}
	e.last = c
	e.hears(c)
	c.rx.counters.BytesReceived += uint64(len(d.Data))
	why, applied := c.rx.kind.receive(now, f)
	if t := e.cfg.Trace; t != nil && t.FrameReceived != nil {
		t.FrameReceived(c.Name(), d.Data, why)
		return 1 // it is shown each frame
	}
	if applied && len(rest) > 0 && len(rest[0].Data) == len(d.Data) {
		return 1 + c.rx.kind.follow(now, f, rest, &d.From)
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

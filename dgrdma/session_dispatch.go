package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// hasSessions reports whether the sender of a frame may have a session: to a peer of another kind its flag means nothing.
func (e *Endpoint) hasSessions(b []byte, from *transport.Addr) bool {
	dst, src := frame.IDsOf(b)
	if c := e.whose(dst, src, from); c != nil {
		return c.session != nil
	}
	return e.cfg.Profile.Session
}

// receiveSession is receive of a frame of a session.
func (e *Endpoint) receiveSession(now ack.Instant, d *transport.Datagram, b []byte, rest []transport.Datagram) (n int) {
	f := &e.receiveScratch.session
	if err := f.Decode(b); err != nil {
		e.countUnknown(d)
		e.refuseUnknown(RefusedMalformed, PeerName{Addr: d.From})
		return 1
	}
	c := e.whose(f.Dst, f.Src, &d.From)
	if c == nil {
		e.countUnknown(d)
		e.meetFrame(f, d.From)
		return 1
	}
	e.last = c
	e.hears(c)
	c.rx.counters.BytesReceived += uint64(len(d.Data))
	rx := &c.session.rx
	why, applied := rx.receiveSession(now, f)
	if t := e.cfg.Trace; t != nil && t.FrameReceived != nil {
		t.FrameReceived(c.Name(), d.Data, why)
		return 1 // it is shown each frame
	}
	if applied && len(rest) > 0 {
		return 1 + rx.followSession(now, f, rest, &d.From)
	}
	return 1
}

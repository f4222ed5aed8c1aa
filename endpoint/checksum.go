package endpoint

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Switches and routers have memory, which may change what they hold, and put a right checksum of
// UDP or Ethernet on it. So peers of our own kind that are both asked to give their frames another
// one, from end to end. An introduction says so, and has one itself: what is believed of a life
// was sent so, and with the life the two agree. From then on each frame has one, and one without
// is dropped: else a fault that hits the flag would have the frame taken as it is.
//
// Where both want them, neither side takes the other for one that does not: that is said in two
// places of an introduction, which is dropped where only one of them is left.

// addChecksum adds a checksum to the frame behind headroom.
func addChecksum(buf []byte, headroom int) []byte {
	return buf[:headroom+len(frame.AddChecksum(buf[headroom:]))]
}

// spare returns how much room a full frame needs behind it.
func (s *sending) spare() int {
	if s.checks {
		return frame.ChecksumSize
	}
	return 0
}

// checksHello reports whether an introduction has a checksum. It has where we want some, whoever asks: who
// forges a question without one would otherwise have the peer believe that we want none. But an answer to
// who wants none has nothing behind its services but what they know.
func (n *nativeSending) checksHello(h frame.Hello) bool {
	if h.Tells && incarnation(h.Peer) == n.theirs {
		return n.checks
	}
	return n.mayCheck
}

// checked reports whether the frame at hand had a checksum, which was right.
func (r *receiving) checked() bool { return r.desk.checksum }

// unchecked reports whether the frame at hand lacks the checksum that was agreed on.
func (n *nativeReceiving) unchecked() bool {
	if !n.checks || n.checked() {
		return false
	}
	n.reminds = true // the peer may not know that it was agreed
	return true
}

// agree notes whether the frames of both sides have checksums, when a life is believed that said
// so, or not. Guarded by the connection's mutex, with the turn to receive.
func (n *native) agree() {
	n.tx.checks = n.tx.mayCheck && n.rx.checked()
	n.rx.checks = n.tx.checks
}

// verify returns what a datagram holds before its checksum, if it has one. Not ok: that is wrong,
// and the datagram was counted.
func (e *Endpoint) verify(d *transport.Datagram) (b []byte, ok bool) {
	e.checksum, e.length = false, len(d.Data)
	if !frame.HasChecksum(d.Data) {
		return d.Data, true
	}
	dst, src := frame.IDsOf(d.Data)
	c := e.whose(dst, src, &d.From)
	if c == nil && !e.cfg.Profile.Session || c != nil && !c.profile.Session {
		return d.Data, true // to other kinds that bit means nothing
	}
	if b, e.checksum = frame.CutChecksum(d.Data); e.checksum {
		return b, true
	}
	if c == nil {
		e.stray(d)
		e.stranger(RefusedChecksum, PeerName{Addr: d.From})
		return nil, false
	}
	e.hears(c)
	c.rx.counters.FramesReceived++
	c.rx.counters.BytesReceived += uint64(len(d.Data))
	c.rx.refused(RefusedChecksum, 0, nil)
	return nil, false
}

// hears notes that something of a connection is in this batch.
func (e *Endpoint) hears(c *Conn) {
	if !c.rx.touched {
		c.rx.touched = true
		e.touched = append(e.touched, c)
	}
}

// mayCheck reports whether frames have a checksum if the peer's have: what is sealed needs none.
func (e *Endpoint) mayCheck() bool { return e.cfg.Checksum && e.vault == nil }

// answersChecked reports whether a stranger's answer has a checksum: it is no longer than what was
// asked.
func (e *Endpoint) answersChecked() bool {
	return e.mayCheck() && (e.checksum || e.length >= toldSize+frame.ChecksumSize)
}

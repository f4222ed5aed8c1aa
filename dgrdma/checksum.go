package dgrdma

import (
	"slices"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Switches and routers have memory, which may change what they hold, and put a right checksum of
// UDP or Ethernet on it. So peers of our own kind that are both asked to give their frames another
// one, from end to end. HELLO, WELCOME and CONFIRM say so, and have one themselves: what begins a session
// was sent so, and with it the two agree. From then on each frame has one, and one without
// is dropped: else a fault that hits the flag would have the frame taken as it is.
//
// Where both want them, neither side takes the other for one that does not: that is said in two
// places of a frame of the handshake, which is dropped where only one of them is left. Where none is, the checksum itself tells: behind what the
// frame holds there is nothing else but zeros.

// addChecksum adds a checksum to the frame after headroom.
func addChecksum(buf []byte, headroom int) []byte {
	return buf[:headroom+len(frame.AddChecksum(buf[headroom:]))]
}

// spare returns how much room a full frame needs after it.
func (s *sending) spare() int {
	if s.checks {
		return frame.ChecksumSize
	}
	return 0
}

// checked reports whether the frame at hand had a checksum, which was right.
func (r *receiving) checked() bool { return r.scratch.checksum }

// lostChecksum reports whether the network changed what a frame of the handshake says of its checksum. The frame says that it has one, and had none. Or, where
// this side wants checksums: it says that it has none, and ends with what may be one; or it is a HELLO with a check, as a WELCOME is of which a part became zero.
func lostChecksum(f *frame.Frame, h *frame.Handshake, had, wants bool) bool {
	if had || h.Checks {
		return !had
	}
	return wants && (h.Kind == frame.HandshakeHello && h.Check != 0 || slices.ContainsFunc(f.Padding(), func(b byte) bool { return b != 0 }))
}

// verify returns what a datagram holds before its checksum, if it has one. Not ok: that is wrong,
// and the datagram was counted.
func (e *Endpoint) verify(d *transport.Datagram) (b []byte, ok bool) {
	e.checksum, e.length, e.mark = false, len(d.Data), d.ECN
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
		e.countUnknown(d)
		e.refuseUnknown(RefusedChecksum, PeerName{Addr: d.From})
		return nil, false
	}
	e.hears(c)
	c.rx.counters.FramesReceived++
	c.rx.counters.BytesReceived += uint64(len(d.Data))
	c.rx.refused(RefusedChecksum, 0, nil)
	return nil, false
}

// mayCheck reports whether frames have a checksum if the peer's have: what is sealed needs none.
func (e *Endpoint) mayCheck() bool { return e.cfg.Checksum && e.sealed == nil }

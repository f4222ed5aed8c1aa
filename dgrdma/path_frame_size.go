package dgrdma

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/pathmtu"
	"github.com/dgrdma/dgrdma/endpoint/segmentation"
	"github.com/dgrdma/dgrdma/frame"
)

// A router on the way to a peer may carry less than our interface. Frames that are too long for
// it vanish, and what says so, if anything does, may come from anyone (see package udp). So
// frames of data are no longer than every way carries until the peer has said that longer ones
// arrive.
//
// A frame of data is never sent again as several: how many messages a transaction has is in each
// of them, and that none arrived of what was not acknowledged cannot be known. So a transaction
// that begins before the length is known is cut short to its end. Those of more than mostCutShort
// bytes wait for the answer, a round trip, and longer only where the way does carry less. For the
// same reason a path that begins to carry less during the transactions ends the connection, with a
// NarrowError where that is found to be why; the next one finds the length.
//
// Package pathmtu decides when the peer is asked, which lengths, and what follows. Here probes are built, and what was found is told.

// leastSearched is the shortest length that is asked for: a frame with a list of services, and 4 bytes for the fields of
// a PROBE. Arbitrary: every path carries it.
const leastSearched = frame.ListedSize + 4

// mostCutShort is how many bytes a transaction has at most that does not wait until it is known how long frames arrive. Arbitrary: a round trip
// of a far path is worth more than short frames for as many, which take a seventh more of it.
const mostCutShort = 256 << 10

// shortCarried is how long such a frame may be: what every host takes (RFC 791 section 3.1) without the headers of IP and UDP. So such a
// transaction arrives also where the path carries less than surelyCarried.
const shortCarried = 576 - 28

// sizeStep is by how much full frames differ at least: see wholeFrame.
const sizeStep = 8

// measure begins with what surely gets to the peer. What is posted counts on all of it.
func (s *sending) measure() {
	t := s.terms
	s.path.Begin(pathmtu.Limits{
		Most: t.most, Sure: t.sure, Narrow: t.narrow, Least: leastSearched, Step: sizeStep, Fixed: !s.inFlight.MayRemake(),
	})
	t.frameSize.Store(int32(t.most))
	s.shortLayout = t.layoutOf(t.short)
	s.cutFrames()
}

// cutFrames has data cut for full frames of the length that they have now.
func (s *sending) cutFrames() {
	l := s.layout()
	s.leastChunk = l.ChunkOf(l.Full)
}

// layout returns how data is cut.
func (s *sending) layout() segmentation.Layout { return s.terms.layoutOf(s.path.Size()) }

// asksPathMTU reports whether something that could be next would leave in longer frames if it were known how long frames arrive, also while what is
// urgent passes it.
func (s *sending) asksPathMTU() bool {
	if s.path.IsKnown() {
		return false
	}
	short := func(t *Transaction) bool { return t != nil && s.isCutShort(t) }
	return short(s.nextToLeave(s.posted.Next())) || short(s.nextToLeave(s.posted.NextOfFlows()))
}

// mustKnowPathMTU reports whether t has to wait until that is known.
func (s *sending) mustKnowPathMTU(t *Transaction) bool {
	return !t.entry.HasBegun() && s.isCutShort(t) && (t.Bytes() > mostCutShort || t.messages(&s.shortLayout, s.shortLayout.Full) > frame.MaxMessages)
}

// isCutShort reports whether t is cut short, or would be if it began now: it takes several frames, and it is not known how long they may be.
func (s *sending) isCutShort(t *Transaction) bool {
	if t.entry.HasBegun() {
		return t.cutShort
	}
	return !s.path.IsKnown() && s.isLong(t)
}

// longestFor returns how long a frame may be that begins with messages of t.
func (s *sending) longestFor(t *Transaction) int {
	if s.isCutShort(t) {
		return s.terms.short
	}
	return s.path.Size()
}

// shorten fails what is posted and takes too many messages now that frames are shorter than it
// was when that was posted. It returns their length, once; 0: nothing has changed.
func (s *sending) shorten(fin *finished) (size int) {
	if size = s.path.TakeShorter(); size == 0 {
		return 0
	}
	s.terms.frameSize.Store(int32(size))
	l := s.layout()
	for _, t := range slices.Collect(s.posted.Waiting()) {
		if t.messages(&l, l.Full) > frame.MaxMessages {
			s.lose(t, fin, s.terms.peerError("post", ErrTooLarge))
		}
	}
	s.roomMade()
	return size
}

// ErrNarrow is why a peer is given up that answers, but acknowledges no long frames: something
// on the way carries less than the interface. The error is a [*NarrowError].
var ErrNarrow = errors.New("dgrdma: the way to the peer carries less than the interface")

// NarrowError says how long frames get to a peer, and how long they were. It is [ErrNarrow], and
// [ErrPeerDown].
type NarrowError struct {
	Frame   int // bytes of a full frame of ours
	Carried int // bytes of the longest frame that arrives
}

func (e *NarrowError) Error() string {
	return fmt.Sprintf("frames of %d bytes do not arrive, those of up to %d do: a router or switch on the way carries less than the interface; connect again", e.Frame, e.Carried)
}

func (e *NarrowError) Unwrap() []error { return []error{ErrNarrow, ErrPeerDown} }

// tooNarrow reports whether frames have not been acknowledged for so long because the path carries less. The peer is given up then, though
// other frames of it come.
func (n *sessionSending) tooNarrow(now ack.Instant) bool {
	if !n.open() || n.sent.InFlight() == 0 || now < n.sent.Progress().Add(n.terms.cfg.GiveUp) {
		return false
	}
	_, narrowed := n.path.Narrowed(n.longest())
	return narrowed
}

// longest returns the length of the longest frame in flight.
func (s *sending) longest() int { return s.inFlight.Longest() - s.terms.headroom }

// waiting is what package pathmtu asks of the frames of a session that wait for acknowledgement.
type waiting struct{ *sessionSending }

func (w waiting) Quiet() ack.Instant { return w.sent.Quiet() }
func (w waiting) Timeouts() int      { return w.sent.Timeouts() }
func (w waiting) Longest() int       { return w.longest() }
func (w waiting) RoundTrip() time.Duration {
	if trip := w.sent.RTT().Smoothed(); trip > 0 || !w.terms.routed {
		return trip
	}
	return firstTimeout / 2 // twice that is waited for an answer
}

// suspects reports whether the peer is to be asked whether it acknowledges nothing because frames are too long.
func (n *sessionSending) suspects() bool { return n.open() && n.path.Suspects(waiting{n}) }

// measures reports whether the peer is asked how long frames arrive.
func (n *sessionSending) measures() bool { return n.open() && n.path.Asks(n.asksPathMTU()) }

// asksSize reports whether such a question leaves now.
func (n *sessionSending) asksSize() bool { return n.open() && n.path.MustSend(n.asksPathMTU()) }

// askSize adds one to the batch. There is room.
func (n *sessionSending) askSize(b *outgoing.Batch, now ack.Instant) {
	size := n.path.Send(now, waiting{n})
	length := n.terms.headroom + size
	long := b.Buffer(length + n.spare())[:length]
	h := n.frames.Header(frame.ControlProbe)
	h.Checks = n.checks
	frame.PutProbe(long[b.Headroom():], &h, size+n.spare())
	n.counters.SizeProbes++
	n.put(b, long, nil, false)
}

// sendProbed answers the peer's longest question that arrived.
func (n *sessionSending) sendProbed(b *outgoing.Batch) {
	h := n.frames.Header(frame.ControlProbed)
	buf := b.Small()
	size := frame.PutProbed(buf[b.Headroom():], &h, n.came)
	n.came = 0
	n.put(b, buf[:b.Headroom()+size], nil, false)
}

// sizeArrived takes the answer to a question, which names the length with the checksum.
func (n *sessionSending) sizeArrived(now ack.Instant, size int) {
	if n.open() && n.path.Arrived(now, size-n.spare()) {
		n.cutFrames()
	}
}

// overdueSize acts on what the passing of time asks for. It returns why the peer is given up, if
// it is.
func (n *sessionSending) overdueSize(now, heard ack.Instant) error {
	if !n.open() {
		return nil
	}
	switch n.path.Expire(now, heard, waiting{n}, n.asksPathMTU(), n.terms.cfg.GiveUp) {
	case pathmtu.Found:
		n.cutFrames()
	case pathmtu.Silent:
		return n.givenUp("asking how long frames arrive")
	}
	return nil
}

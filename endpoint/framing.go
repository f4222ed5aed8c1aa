package endpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// A router on the way to a peer may carry less than our interface. Frames that are too long for
// it vanish, and what says so, if anything does, may come from anyone (see package udp). So
// frames of data are no longer than every way carries until the peer has said that longer ones
// arrive. Transactions that fit such a frame need not wait; those that do not wait a round trip,
// the first of them, and longer only where the way does carry less.
//
// They wait because a frame of data is never sent again as several: how many messages a
// transaction has is in each of them, and that none arrived of what was not acknowledged cannot
// be known. For the same reason a way that begins to carry less amid the transactions ends the
// connection, with a NarrowError where that is found to be why; the next one finds the length.

// framing is how long the frames of a connection are.
type framing struct {
	frameMax   int  // length of a full frame
	leastChunk int  // data bytes of a message that fills a frame, if it is not the last
	tried      bool // nothing has to be found out before that
	shortened  int  // the length that was found, if it is less, and to be told
	carries    int  // what is found of a way that acknowledges nothing; 0: nothing
}

// setFrame makes full frames that long.
func (s *sending) setFrame(size int) {
	s.frameMax = size
	l := s.layout()
	s.leastChunk = l.chunkOf(l.full)
}

// measure begins with what surely gets to the peer. What is posted counts on all of it.
func (s *sending) measure() {
	s.tried = s.sure == s.most || !s.remakes()
	s.shortened, s.carries = 0, 0
	s.frameSize.Store(int32(s.most))
	if s.tried {
		s.setFrame(s.most)
	} else {
		s.setFrame(s.sure)
	}
}

// layout returns how data is cut.
func (s *sending) layout() layout { return s.layoutOf(s.frameMax) }

// untried reports whether what is next has to wait until it is known how long frames arrive.
func (s *sending) untried() bool {
	if s.tried {
		return false
	}
	q := s.mayBe(s.posted.turn())
	if q == nil {
		return false
	}
	l := s.layout()
	_, _, fits := l.alone(q.first())
	return !fits
}

// carriesFrames makes full frames as long as the way carries. Those are told of a shorter length, and
// of what is posted that would take too many of them, who call shorten.
func (s *sending) carriesFrames(size int) {
	s.tried = true
	s.setFrame(size)
	if size < s.most {
		s.shortened = size
	}
}

// shorten fails what is posted and takes too many messages now that frames are shorter than it
// was when that was posted. It returns their length, once; 0: nothing has changed.
func (s *sending) shorten(fin *finished) (size int) {
	if s.shortened == 0 {
		return 0
	}
	size, s.shortened = s.shortened, 0
	s.frameSize.Store(int32(size))
	l := s.layout()
	for _, t := range slices.Collect(s.posted.waiting()) {
		if l.messages(t, l.full) > frame.MaxMessages {
			s.lose(t, fin, s.peerError("post", ErrTooLarge))
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

// narrowing is whether a way that carried long frames still does.
type narrowing struct {
	checking bool // it is asked
	checked  bool // or was, in the silence that began at quiet
	quiet    ack.Instant
}

// checkAfter is after how many timeouts in a row it is asked whether the way has become narrower.
// Arbitrary: rare where frames are lost by chance.
const checkAfter = 3

// dead returns why a peer is given up that acknowledges nothing.
func (s *sending) dead() error {
	if long := s.flight.longest() - s.headroom; s.carries > 0 && long > s.carries {
		op := fmt.Sprintf("waiting for acknowledgements of frames of %d bytes, while those of up to %d are answered (a way that carries less needs the option mtu)", long, s.carries)
		return s.peerError(op, &NarrowError{Frame: long, Carried: s.carries})
	}
	return s.givenUp(s.unacknowledged())
}

// measures reports whether the peer is asked how long frames arrive.
func (n *nativeSending) measures() bool {
	return n.theirs != unknown && (n.narrowing.checking || n.untried())
}

// asksSize reports whether such a question leaves now.
func (n *nativeSending) asksSize() bool {
	return n.measures() && (!n.sizes.begun() || n.sizes.leaves())
}

// askSize adds one to the batch. There is room.
func (n *nativeSending) askSize(b *batch, now ack.Instant) {
	if !n.sizes.begun() {
		n.sizes.begin(now, n.frameMax, n.most, n.unacked.RTT().Smoothed())
	}
	size := n.sizes.take()
	buf := n.putHello(b, now, frame.Hello{Life: uint32(n.mine), Peer: uint32(n.theirs), Checks: n.checks})
	length := n.headroom + size
	long := b.buffer(length + n.spare())[:length]
	clear(long[copy(long, buf):])
	frame.SizeProbe{Size: size}.Put(long[b.headroom+toldSize:])
	n.counters.SizeProbes++
	n.put(b, long, nil, false)
}

// saysSize takes what the introduction of a life that knows ours says of lengths.
func (n *nativeSending) saysSize(now ack.Instant, f *frame.Frame, answers bool) {
	p, ok := f.SizeProbe()
	switch {
	case ok && !answers:
		n.came = max(n.came, p.Size)
	case !answers || !n.measures() || !n.sizes.begun():
	case ok && n.sizes.arrived(now, p.Size), !ok && n.sizes.answeredPlainly():
		n.found(n.sizes.most)
	}
}

// found ends a search.
func (n *nativeSending) found(size int) {
	n.sizes = sizing{}
	if !n.narrowing.checking {
		n.carriesFrames(size)
		return
	}
	if n.narrowing.checking = false; size < n.frameMax {
		n.carries = size
	}
}

// overdueSize acts on what the passing of time asks for. It returns why the peer is given up, if
// it is.
func (n *nativeSending) overdueSize(now ack.Instant) error {
	n.check(now)
	z := &n.sizes
	if !n.measures() || !z.begun() || z.leaves() || now < z.over() {
		return nil
	}
	if done := z.next(now); done {
		n.found(z.proven)
		return nil
	}
	if n.narrowing.checking && z.rounds >= 2 {
		n.carries = z.proven // as far as is known, if the peer is given up now
	}
	if n.narrowing.checking || now.Sub(z.heard) < n.cfg.GiveUp {
		return nil
	}
	return n.givenUp("asking how long frames arrive")
}

// doubts reports whether a peer that acknowledges nothing is to be asked whether that is because frames are too long.
func (n *nativeSending) doubts() bool {
	return n.unacked.Timeouts() >= checkAfter && !n.narrowing.checked && n.theirs != unknown && n.remakes() && n.flight.longest()-n.headroom > n.narrow
}

// check begins to ask, once in each silence, and ends it with that. Who looks that rarely sees no
// other trace of an acknowledgement than when it came: the next timeouts may have passed since.
func (n *nativeSending) check(now ack.Instant) {
	if quiet := n.unacked.Quiet(); quiet != n.narrowing.quiet {
		n.narrowing.quiet, n.narrowing.checked, n.carries = quiet, false, 0
		if n.narrowing.checking {
			n.narrowing.checking, n.sizes = false, sizing{}
		}
	}
	if n.doubts() {
		n.narrowing.checking, n.narrowing.checked = true, true
		n.sizes.begin(now, n.narrow, n.frameMax, n.unacked.RTT().Smoothed())
	}
}

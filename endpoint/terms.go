package endpoint

import (
	"fmt"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// terms are what both halves of a connection know and read without a lock: what it was
// made with, which never changes, and a few words that change by themselves.
type terms struct {
	cfg        *Config // the endpoint's
	headroom   int     // before each frame, for the transport
	header     int     // length of the header of a frame with messages
	offers     *offers // the endpoint's
	peer       Peer
	to         *transport.Addr // peer.Addr, shared by all connections to it
	profile    Profile
	most       int    // length of a full frame, if the way carries what its first part does
	sure       int    // and of one that it surely carries
	narrow     int    // and of one that every way carries
	emptyIndex uint16 // index of a message without data
	mayCheck   bool   // frames have a checksum if the peer's have

	channels channels // of the endpoint's services

	guest     atomic.Bool   // may not write into the memory: see Endpoint.Welcome
	learned   atomic.Bool   // from what the peer sent, and not connected since
	size      atomic.Uint64 // of the peer's memory; 0: not known
	down      atomic.Bool   // the sending half has an error, or had one that is being told
	nextID    atomic.Uint32 // the id after those of the last batch that was sent, an ack.Wide
	resets    atomic.Int32  // how often the receiving half has to forget everything
	frameSize atomic.Int32  // length of a full frame, as far as is known: what is posted is measured by it
}

func (t *terms) name() PeerName { return t.peer.name() }

func (t *terms) key() peerKey { return peerKey{ids{t.peer.As, t.peer.ID}, t.peer.Addr} }

// label sets what all our frames carry.
func (t *terms) label(h *frame.Header) {
	h.Dst, h.Src = t.peer.ID, t.peer.As
	if t.profile.OwnDestination {
		h.Dst = t.peer.As
	}
}

func (t *terms) peerError(op string, err error) error {
	return &PeerError{ID: t.peer.ID, Addr: t.peer.Addr, Op: op, Err: err}
}

// layoutOf returns how data is cut for full frames of that length.
func (t *terms) layoutOf(full int) layout {
	p := &t.profile
	return layout{p.Chunk, p.Final, p.NoLength4, full - t.partHead()}
}

// validate checks a transaction against the peer before anything is queued:
// peers that are not ours crash on bad addresses (D1-11, D2-8). How large the peer's
// memory is tells nothing of its other services.
func (t *terms) validate(x *Transaction, memory bool) error {
	p := &t.profile
	size := t.size.Load()
	if size == 0 || !memory {
		size = 1 << 32
	}
	ends := 2 // of a segment, where it shares frames with others
	if p.NoLength4 {
		ends++
	}
	messages := 0
	l := t.layoutOf(int(t.frameSize.Load()))
	for i := range x.Segments {
		s := &x.Segments[i]
		n := len(s.Bytes)
		if n == 0 {
			continue
		}
		if m := p.AddressMultiple; m > 1 && int(s.Addr)%m != 0 {
			return fmt.Errorf("%w: %s: address %#x is no multiple of %d", ErrAlignment, t.segment(i), s.Addr, p.AddressMultiple)
		}
		if padded := roundUp(n, p.Final); uint64(s.Addr)+uint64(padded) > size {
			return &boundsError{t.segment(i), s.Addr, n, padded, size}
		}
		messages += n/l.chunkOf(l.full) + ends
	}
	if messages > frame.MaxMessages && l.messages(x, l.full) > frame.MaxMessages {
		return ErrTooLarge
	}
	if x.Completion.IsZero() {
		if p.NoSentinel {
			return ErrNoCompletion
		}
	} else if uint64(x.Completion.Addr())+4 > size {
		return &boundsError{what: fmt.Sprintf("completion word of a post to peer %d", t.peer.ID), addr: x.Completion.Addr(), n: 4, size: size}
	} else if p.NoHalfSentinel && x.Completion.Value() == frame.NoCompletion {
		return ErrNoCompletion
	}
	return nil
}

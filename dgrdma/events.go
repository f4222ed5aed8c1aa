package dgrdma

import (
	"fmt"
)

// PeerName identifies a peer.
type PeerName struct {
	ID   EndpointID
	Addr Addr
}

func (p PeerName) String() string { return fmt.Sprintf("peer %d at %v", p.ID, p.Addr) }

func (p *Peer) name() PeerName { return PeerName{p.ID, p.Addr} }

// EventKind says what happened.
type EventKind uint8

const (
	PeerUp          EventKind = iota + 1 // first valid frame of a peer, or of one that was down
	PeerRestarted                        // the peer began a new life; what was pending to it failed. With Reason: it seems so, call Reset
	PeerDown                             // the peer was given up, or closed the connection (ErrPeerClosed); what was pending to it failed
	FrameRefused                         // a frame was not applied: see Reason
	TransactionLost                      // an incoming transaction will never complete: see Txn
	FramesMissed                         // of a peer that never sends again frames did not come: see Frames
	FramesShortened                      // the way to the peer carries less than the interface: frames have Size bytes at most from now on
)

var eventNames = [...]string{"", "peer up", "peer restarted", "peer down", "frame refused", "transaction lost", "frames missed", "frames shortened"}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Event is what Config.OnEvent is told.
type Event struct {
	Kind   EventKind
	Conn   *Conn // nil for frames that belong to no connection
	Peer   PeerName
	Reason Reason // of FrameRefused, and of PeerRestarted if it only seems so
	Txn    uint32 // the peer's id of a transaction: of TransactionLost and, if it is known, FrameRefused
	Frames int    // how many, of FramesMissed
	Size   int    // of FramesShortened
	Err    error  // of PeerDown, and of FrameRefused if the memory refused it
}

// String is what happened, to which peer, and what more is known.
func (ev Event) String() string {
	s := fmt.Sprintf("%s: %v", ev.words(), ev.Peer)
	for _, a := range ev.attrs(0)[3:] { // after the endpoint and the peer
		s += ", " + a.String()
	}
	return s
}

// Trace holds functions that see every frame. They run on the hot path, some of
// them under a lock: they must be quick and must not call the endpoint. Frames
// are valid only during the call.
type Trace struct {
	// FrameSent gets a frame as it leaves; again: it was sent before.
	FrameSent func(to PeerName, f []byte, again bool)
	// FrameReceived gets a frame of a known peer. RefusedNone: it was applied.
	FrameReceived func(from PeerName, f []byte, verdict Reason)
	// FrameLost is told of a frame that is taken for lost: because later ones were
	// acknowledged or, with timeout, because nothing was heard.
	FrameLost func(to PeerName, id Seq, timeout bool)
}

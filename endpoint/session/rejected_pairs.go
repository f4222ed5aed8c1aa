package session

import (
	"slices"
)

// mostRejected bounds the pairs that are remembered. Arbitrary: an endpoint that has rejected one tells its next epoch.
const mostRejected = 4

// rejectedPairs are the remote epochs that rejected the local one, or 0. A pair that was rejected is never a session: frames of
// its first use may still arrive, and ids would begin again.
type rejectedPairs [mostRejected]Epoch

func (r *rejectedPairs) has(remote Epoch) bool { return slices.Contains(r[:], remote) }

// add reports whether there was room.
func (r *rejectedPairs) add(remote Epoch) bool {
	n := slices.Index(r[:], 0)
	if n >= 0 {
		r[n] = remote
	}
	return n >= 0
}

// The epoch of this side was in no session that the peer had, so it remains: if it changed here, two endpoints that
// both ask could reject each other for ever. The pair is remembered. What was sent already cannot be
// told apart from what the peer has applied, and fails.
func rejectConfirming(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Sender != m.Local || f.Receiver != m.Remote {
		return
	}
	local, rejected := m.Local, m.rejected
	if !rejected.add(m.Remote) {
		m.lost(at, e, o)
		return
	}
	if at.Next != uint32(m.Local)+1 {
		o.Ended = PeerRestarted
	}
	m.become(Asking)
	m.Local, m.rejected = local, rejected
	m.hello(at, o)
}

func rejectUp(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Sender == m.Local && f.Receiver == m.Remote {
		m.lost(at, e, o)
	}
}

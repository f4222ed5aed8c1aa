package link

import "github.com/dgrdma/dgrdma/dgrdma"

// heartbeat posts something to every peer with links. A host that only receives would not notice
// otherwise that a peer is gone. [dgrdma.Config.KeepAlive] does not serve for that: it belongs to the
// endpoint, which may be the program's, and asks all peers, also those without links. And a post fails
// also where a life has ended without an event, as when the transport fails.
func (h *Host) heartbeat() {
	for _, c := range h.ep.Conns() {
		h.peerOf(c).sendHeartbeat()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.heartbeatTimer.Reset(h.ep.GiveUp() / 2)
	}
}

func (p *peer) sendHeartbeat() {
	if !p.conn.Profile().Session {
		return // other kinds may not understand it
	}
	if p.dialFailed.Load() {
		p.abandonIfNoAnswer()
	}
	p.mu.Lock()
	idle := len(p.links)+len(p.ended)+len(p.pending) == 0 || p.heartbeat.busy
	p.heartbeat.busy = p.heartbeat.busy || !idle
	p.mu.Unlock()
	if idle {
		return
	}
	p.heartbeat.transaction = dgrdma.Transaction{Done: p.heartbeatDone}
	if err := p.channel.Flow().Post(&p.heartbeat.transaction); err != nil {
		p.heartbeatDone(nil, err)
	}
}

func (p *peer) heartbeatDone(_ *dgrdma.Transaction, err error) {
	p.mu.Lock()
	p.heartbeat.busy = false
	p.mu.Unlock()
	// Not every end of a life is an event: the transport may have failed, or the program
	// have called Reset.
	if err == nil {
		err = dgrdma.ErrReset
	}
	p.fail(err, p.conn.Life())
}

package dgrdma

import (
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
)

// introduction is the WELCOME of a peer that was asked by its address, before there was a connection to it. One that is made soon after need not ask
// again.
type introduction struct {
	of      peerKey
	at      ack.Instant   // when it came
	asked   int           // HELLOs that had left by then
	took    time.Duration // since the first of them left
	welcome session.Frame
	spoken  spoken
}

const (
	// introductionCounts is how long one counts: if the peer has meanwhile ended what it told, the data that follows fails. Arbitrary.
	introductionCounts = time.Second
	// mostIntroductions bounds how many wait for a connection. Arbitrary: a program connects to whom it finds.
	mostIntroductions = 16
)

// keepIntroduction keeps what a peer said that was asked by its address. Where all is sealed there is no key yet under which a session with it could begin.
func (e *Endpoint) keepIntroduction(x *introduction) {
	if e.sealed != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.introductions = slices.DeleteFunc(e.introductions, func(y *introduction) bool { return y.of == x.of || x.at.Sub(y.at) > introductionCounts })
	if n := len(e.introductions); n == mostIntroductions {
		e.introductions = slices.Delete(e.introductions, 0, 1)
	}
	e.introductions = append(e.introductions, x)
}

// takeIntroduction returns what is kept of a peer, once; nil: nothing that counts.
func (e *Endpoint) takeIntroduction(now ack.Instant, of peerKey) *introduction {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.introductions, func(x *introduction) bool { return x.of == of })
	if i < 0 {
		return nil
	}
	x := e.introductions[i]
	e.introductions = slices.Delete(e.introductions, i, i+1)
	if now.Sub(x.at) > introductionCounts {
		return nil
	}
	return x
}

// introduced begins the session that the peer offered when it was asked by its address: the HELLO that the machine would send has left then. The
// connection is not in the table of peers yet, so that nothing else acts on it.
func (p *sessionPeer) introduced(now ack.Instant, x *introduction) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	tx := &p.tx
	if tx.m.State != session.Asking || tx.m.Local != x.welcome.Receiver {
		return // what this endpoint tells its peers has changed since
	}
	tx.replies.Clear()
	tx.hellos, tx.helloAt = x.asked, now.Add(-x.took)
	o := tx.machine(now, func(at session.At, e session.Epochs) session.Output { return tx.m.Receive(at, e, &x.welcome) })
	var none finished // nothing was posted
	p.applyOutput(now, &o, x.spoken, &none)
}

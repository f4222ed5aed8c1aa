package session

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	// NearRetry and RoutedRetry are the time after which a HELLO is sent again. Where a router may be on the way an answer may take a second (RFC 6298
	// section 2.1). On a network of this machine it seldom does: a frame was lost, or the peer has not started yet.
	NearRetry   = 20 * time.Millisecond
	RoutedRetry = time.Second
	// Slower is how many times as long as the wait before the next one is. Arbitrary: where an answer takes 0.3 s after all, three HELLOs leave before it
	// comes.
	Slower = 4

	mostRetry = time.Second
	idleRetry = 8 * time.Second // of HELLO, when nothing is posted
)

// retry is when HELLO or CONFIRM is sent again.
type retry struct {
	at   ack.Instant
	wait time.Duration
	last ack.Instant   // when the last CONFIRM was sent
	trip time.Duration // how long its answer takes, at most, as far as is known
}

// begin begins to wait for an answer.
func (r *retry) begin(now ack.Instant, wait time.Duration) { r.at, r.wait = now.Add(wait), wait }

// Retry sends HELLO or CONFIRM again when it is time for it, or now: for a path that has just opened, as by an agreed key.
func (m *Machine) Retry(at At, now bool) (o Output) {
	if m.State != Asking && m.State != Confirming || !now && at.Now < m.retry.at {
		return o
	}
	most := mostRetry
	switch {
	case at.Posted:
		most = at.most()
	case m.State == Asking:
		most = idleRetry
	}
	m.retry.begin(at.Now, min(Slower*m.retry.wait, most))
	if m.State == Asking {
		o.Reply = Frame{Kind: Hello, Sender: m.Local}
	} else {
		m.confirm(at, &o)
	}
	return o
}

// Hurry has the next HELLO leave as soon as one may follow the last, as something is posted.
func (m *Machine) Hurry(at At) {
	if m.State == Asking && m.retry.wait > at.first() {
		last := m.retry.at.Add(-m.retry.wait)
		m.retry = retry{at: min(m.retry.at, max(at.Now, last.Add(at.first()))), wait: at.first() / Slower}
	}
}

// RetryAt returns when Retry is to be called next. Not ok: in this state there is nothing to repeat.
func (m *Machine) RetryAt() (at ack.Instant, ok bool) {
	return m.retry.at, m.State == Asking || m.State == Confirming
}

// most returns the longest time between two frames that ask for an answer, while something is posted.
func (a *At) most() time.Duration {
	if a.Pause > 0 {
		return min(a.Pause, mostRetry)
	}
	return mostRetry
}

// first returns the time after the first of them.
func (a *At) first() time.Duration {
	if a.Routed {
		return min(RoutedRetry, a.most())
	}
	return min(NearRetry, a.most())
}

// answer returns the time after the first CONFIRM: twice what the answer to HELLO took, if that is known.
func (a *At) answer() time.Duration {
	if a.Trip == 0 {
		return a.first()
	}
	return min(max(NearRetry, 2*a.Trip), a.most())
}

// mayConfirm reports whether a RESET has a CONFIRM sent again: those to frames that followed the last one may be on their way.
func (r *retry) mayConfirm(now ack.Instant) bool {
	return r.last == 0 || now.Sub(r.last) >= max(NearRetry, r.trip/2)
}

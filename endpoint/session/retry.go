package session

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	// nearRetry and farRetry are the time after which a HELLO is sent again. Of a path of which nothing is known RFC 6298 has a second (section 2.1): it may take
	// as long. On a network that this machine is on it seldom does, but loses a frame, or the peer has not started yet.
	nearRetry = 20 * time.Millisecond
	farRetry  = time.Second
	mostRetry = time.Second
	idleRetry = 8 * time.Second // of HELLO, when nothing is posted
	// slower is how much longer the next wait is than the one before. Arbitrary: where an answer takes 0.3 s after all, three HELLOs leave before it comes.
	slower = 4
)

// retry is when HELLO or CONFIRM is sent again.
type retry struct {
	at   ack.Instant
	wait time.Duration
	last ack.Instant   // when the last CONFIRM was sent
	trip time.Duration // how long its answer takes, at most, as far as is known
}

// wait begins to wait for an answer.
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
	m.retry.begin(at.Now, min(slower*m.retry.wait, most))
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
		m.retry = retry{at: min(m.retry.at, max(at.Now, last.Add(at.first()))), wait: at.first() / slower}
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
	if a.Far {
		return min(farRetry, a.most())
	}
	return min(nearRetry, a.most())
}

// answer returns the time after the first CONFIRM: twice what the answer to HELLO took, if that is known.
func (a *At) answer() time.Duration {
	if a.Trip == 0 {
		return a.first()
	}
	return min(max(nearRetry, 2*a.Trip), a.most())
}

// mayConfirm reports whether a RESET has a CONFIRM sent again: those to frames that followed the last one may be on their way.
func (r *retry) mayConfirm(now ack.Instant) bool {
	return r.last == 0 || now.Sub(r.last) >= max(nearRetry, r.trip/2)
}

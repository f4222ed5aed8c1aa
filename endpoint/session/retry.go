package session

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	firstRetry = 20 * time.Millisecond
	mostRetry  = time.Second
	idleRetry  = 8 * time.Second // of HELLO, when nothing is posted
)

// retry is when HELLO or CONFIRM is sent again.
type retry struct {
	at   ack.Instant
	wait time.Duration
	last ack.Instant // when the last CONFIRM was sent
}

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
	m.retry.wait = min(2*m.retry.wait, most)
	m.retry.at = at.Now.Add(m.retry.wait)
	if m.State == Asking {
		o.Reply = Frame{Kind: Hello, Sender: m.Local}
	} else {
		m.confirm(at, &o)
	}
	return o
}

// Hurry has the next HELLO leave as soon as one may follow the last, as something is posted.
func (m *Machine) Hurry(at At) {
	if m.State == Asking {
		last := m.retry.at.Add(-m.retry.wait)
		m.retry = retry{at: min(m.retry.at, max(at.Now, last.Add(at.first()))), wait: at.first() / 2}
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
func (a *At) first() time.Duration { return min(firstRetry, a.most()) }

package rpcrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
)

// use is since when a side has no credit left.
type use struct {
	full  bool
	since time.Time
}

// step takes a message after which the number of Calls that wait, or of credits, may be another one. Of version 2 the credits are how many messages may
// be outstanding.
func (u *use) step(s *Side, m *Message) {
	full := s.granted && s.grant > 0 && len(s.room.calls) >= int(min(s.grant, 1<<30))
	switch at := m.Last.Time; {
	case full == u.full || at.IsZero():
		return
	case full:
		u.since = at
		if s.FullRecord == 0 {
			s.FullRecord = m.Last.Record
		}
	default:
		s.Full += max(at.Sub(u.since), 0)
	}
	u.full = full
}

// stretch is the time in which something is under way.
type stretch struct {
	under int
	since time.Time
}

// begins and ends count what is under way. ends returns the time that has passed since nothing was, once nothing is again.
func (t *stretch) begins(at tcp.Ref) {
	if t.under++; t.under == 1 {
		t.since = at.Time
	}
}

func (t *stretch) ends(at tcp.Ref) time.Duration {
	if t.under == 0 {
		return 0
	}
	if t.under--; t.under > 0 || t.since.IsZero() || at.Time.IsZero() {
		return 0
	}
	return max(at.Time.Sub(t.since), 0)
}

// placing notes an RDMA Write for a Call.
func (c *Call) placing(at tcp.Ref) {
	if c.placedFrom.IsZero() {
		c.placedFrom = at.Time
	}
	if !c.placedFrom.IsZero() && !at.Time.IsZero() {
		c.Writing = max(at.Time.Sub(c.placedFrom), c.Writing)
	}
}

package rpcrdma

import (
	"fmt"

	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// spend1 counts the Calls of version 1 that wait.
func (d *Decoder) spend1(m *Message) {
	c, s := m.Conn, &m.Conn.Sides[m.Way]
	n := len(s.room.calls)
	limit := 1 // before the first Reply (RPC1-011)
	known := c.begun()
	if s.granted {
		limit, known = int(min(s.grant, 1<<30)), c.Sides[1-m.Way].holes == 0
	}
	if n > s.InUse {
		s.InUse = n
	}
	if m.Header.Version == codec.Version1 && known && c.Sides[1-m.Way].late == 0 && n > limit {
		c.found(Overrun, m, 0, 0, fmt.Sprintf("%d Calls waited, granted %d", n, limit))
	}
}

// spend2 counts the messages of version 2. Grants are added: a side that has sent more messages than were granted, one for the
// beginning and one to refresh, has exceeded them, whenever it heard of the grants.
func (d *Decoder) spend2(m *Message) {
	c, s, peer := m.Conn, &m.Conn.Sides[m.Way], &m.Conn.Sides[1-m.Way]
	s.sent2++
	s.granted2 += uint64(max(m.Header.Granted(), 1))
	peer.grant, peer.granted = max(peer.grant, uint32(m.Header.Maximum())), true
	peer.Grant = int(peer.grant)
	if allowed := peer.granted2 + 2; c.begun() && peer.late == 0 && uint64(s.sent2) > allowed {
		c.found(Overrun, m, 0, 0, fmt.Sprintf("%d messages were sent, granted %d", s.sent2, allowed-2))
	}
}

// grants takes the credits that a message of version 1 grants.
func (m *Message) grants() {
	if m.Header.Version != codec.Version1 {
		return
	}
	if m.Header.Credit == 0 {
		m.Conn.found(NoCredits, m, 0, 0, fmt.Sprintf("%s with XID %#x", m.Kind, m.Header.XID))
	}
	to := &m.Conn.Sides[1-m.Way]
	to.grant, to.granted = max(to.grant, m.Header.Credit, 1), true
	to.Grant = int(min(to.grant, 1<<30))
}

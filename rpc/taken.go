package rpc

import (
	"net"
	"time"

	"github.com/dgrdma/dgrdma/internal/tcpinfo"
)

// taken counts what the peer has taken of what is written to it. Over TCP, also below TLS, it counts octets that the peer has acknowledged;
// of another connection only the writes that have begun and ended are known.
type taken struct{ octets, writes uint64 }

// taken returns the count now.
func (s *sender) taken() (t taken) {
	t.writes = s.writes.Load()
	nc := s.to
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = over.NetConn()
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return t
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return t
	}
	t.octets = tcpinfo.Of(raw).Acked // one that is closed has none any more, and no write in progress
	return t
}

const (
	// patience is for how long a peer may take nothing of a write that withdraw waits for, before the connection is closed. It is
	// arbitrary.
	patience = time.Second
	// looks is how often the sender looks within patience whether the peer takes something. Each look is due when the one before has been: a
	// process that gets no processor for longer than patience finds that it has looked once.
	looks = 4
	// firstLook is when it looks for the first time. Nearly all writes that withdraw waits for have ended by then: the reply
	// was faster than the goroutine that wrote the call.
	firstLook = 10 * time.Millisecond
)

// stuck finds out whether the peer takes something, as long as calls of withdraw wait for that. It is guarded by sender.mu.
type stuck struct {
	waits int         // calls of withdraw
	timer *time.Timer // nil before the first one
	last  taken       // by the last look
	same  int         // how many looks in a row have found the same; -1: there was no look
}

// watch begins to look whether the peer takes something. It is called with mu.
func (s *sender) watch() {
	w := &s.stuck
	if w.waits++; w.waits > 1 {
		return
	}
	w.same = -1
	if w.timer == nil {
		w.timer = time.AfterFunc(firstLook, s.look)
	} else {
		w.timer.Reset(firstLook)
	}
}

// unwatch ends what watch began. It is called with mu.
func (s *sender) unwatch() {
	if s.stuck.waits--; s.stuck.waits == 0 {
		s.stuck.timer.Stop()
	}
}

// look closes the connection if the peer has taken nothing for as long as patience.
func (s *sender) look() {
	now := s.taken()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.stuck
	switch {
	case w.waits == 0:
		return
	case w.same < 0 || now != w.last:
		w.last, w.same = now, 0
	default:
		w.same++
	}
	if w.same == looks {
		abort(s.to)
		return
	}
	w.timer.Reset((patience - firstLook) / looks)
}

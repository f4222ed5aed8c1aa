package rpc

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
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
	// A connection that is closed has no count any more, and no write in progress.
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			t.octets = info.Bytes_acked
		}
	})
	return t
}

// patience is for how long a peer may take nothing of a write that withdraw waits for, before withdraw closes the connection. It is
// arbitrary.
const patience = time.Second

// looks is how often withdraw looks within patience whether the peer takes something. Each look is due when the one before has been: a process
// that gets no processor for longer than patience finds that it has looked once.
const looks = 4

// closeIfStuck closes the connection if the peer takes nothing for as long as patience, until stop is called. Both are called with mu.
func (s *sender) closeIfStuck() (stop func()) {
	over, last, same := false, s.taken(), 0
	var timer *time.Timer // guarded by mu, as over
	timer = time.AfterFunc(patience/looks, func() {
		now := s.taken()
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case over:
		case same == looks:
			abort(s.to)
		default:
			timer.Reset(patience / looks)
		}
	})
	return func() {
		over = true
		timer.Stop()
	}
}

package verbs_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// worked is the time that processors have worked for this program.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Attack R9: peers that ask, take nothing, and end their directions are waited for a second. It is not often looked whether they
// take something: as much work as to look 400 times is too much.
func TestAttackHalfClosed(t *testing.T) {
	const many, most = 200, 400
	h, l := listen(t)
	r, err := h.Register(make([]byte, 16<<10), verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1) })
	}}
	var pairs []*verbs.QueuePair
	var peers []*attacker
	for range many {
		nc, err := narrow.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		accepted := make(chan *verbs.QueuePair, 1)
		go func() {
			defer close(accepted)
			if r, err := l.Accept(t.Context()); err != nil {
				t.Error(err)
			} else if q, err := r.Accept(t.Context(), nil); err != nil {
				t.Error(err)
			} else {
				accepted <- q
			}
		}()
		a := &attacker{nc: nc}
		if a.conn, err = mpa.Initiate(t.Context(), nc, &mpa.Options{ORD: 1}); err != nil {
			t.Fatal(err)
		}
		q := <-accepted
		if q == nil {
			t.FailNow()
		}
		a.send(readRequest(1, r.Key()))
		for q.Stats().Answered == 0 { // TCP has the answer, and keeps most of it
			time.Sleep(time.Millisecond)
		}
		pairs, peers = append(pairs, q), append(peers, a)
	}
	before := worked(t)
	for range most {
		for _, a := range peers {
			if _, err := a.conn.Unacknowledged(); err != nil {
				t.Fatal(err)
			}
		}
	}
	bound := worked(t) - before
	before, began := worked(t), time.Now()
	for _, a := range peers {
		if err := a.conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range pairs {
		<-q.Done()
	}
	took, cost := time.Since(began), worked(t)-before
	t.Logf("%d queue pairs ended within %v and %v of work, of %v", many, took, cost, bound)
	if cost > bound {
		t.Errorf("the end of %d queue pairs took %v of work, more than %v", many, cost, bound)
	}
}

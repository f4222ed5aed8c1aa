package verbs_test

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// brought is a queue pair over a connection that is there, and its peer, which sends and reads what a test likes.
func brought(t *testing.T, here, there net.Conn, o *verbs.Options) (*verbs.QueuePair, *attacker) {
	t.Helper()
	a := &attacker{nc: there}
	answered := make(chan error, 1)
	go func() {
		r, err := mpa.Await(t.Context(), there, 0)
		if err == nil {
			a.conn, err = r.Accept(t.Context(), &mpa.Options{IRD: 8, ORD: 8})
		}
		answered <- err
	}()
	q, err := openHost(t).Connect(t.Context(), here, o)
	if err := errors.Join(err, <-answered); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Abort)
	return q, a
}

// both are the ends of a connection of that network.
func both(t *testing.T, network, at string) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	return here, there
}

// A question behind the end of this side's direction has no answer, and nobody waits until that has left.
func TestCloseWithoutTCP(t *testing.T) {
	t.Parallel()
	here, there := both(t, "unix", filepath.Join(t.TempDir(), "socket"))
	q, a := brought(t, here, there, nil)
	closed := make(chan error, 1)
	go func() { closed <- q.Close() }()
	if _, err := io.Copy(io.Discard, there); err != nil { // until its end
		t.Fatal(err)
	}
	a.send(readRequest(1, verbs.Key{}))
	there.Close()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

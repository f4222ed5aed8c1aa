package dgrdma

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestNoDoneAfterClose checks that what Conn.Close fails while the endpoint is being closed is
// answered before Endpoint.Close returns (attack A16, SECURITY.md). The window is narrow: without
// that, about one round in 300 fails.
func TestNoDoneAfterClose(t *testing.T) {
	const rounds, conns, posts = 2000, 2, 2
	for range rounds {
		n := simnet.New(1)
		_, e, first := openHooked(t, n, Native(), Config{})
		all := []*Conn{first}
		for i := range conns - 1 {
			c, err := e.Connect(Peer{ID: frame.EndpointID(10 + i), Addr: addrA})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		var answers atomic.Int32
		for i := range conns * posts {
			x := write(0, nil, 0, 1)
			x.Done = func(*Transaction, error) { answers.Add(1) }
			if err := all[i%conns].Post(x); err != nil {
				t.Fatal(err)
			}
		}
		var closing sync.WaitGroup
		for _, c := range all {
			closing.Go(func() { c.Close() })
		}
		e.Close()
		if got := answers.Load(); got != conns*posts {
			t.Errorf("%d of %d posts were answered when Close returned", got, conns*posts)
		}
		closing.Wait()
		n.Close()
	}
}

// TestCloseOfBothAtOnce checks that every Post is answered if a connection and its endpoint are
// closed at the same time.
func TestCloseOfBothAtOnce(t *testing.T) {
	for _, x := range []struct {
		name string
		call func(c *Conn)
	}{
		{"close", func(c *Conn) { c.Close() }},
		{"reset", func(c *Conn) { c.Reset(0) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			for range 300 {
				n := simnet.New(1)
				_, e, c := openHooked(t, n, Native(), Config{})
				var answers atomic.Int32
				for range 100 {
					tx := write(0, nil, 0, 1)
					tx.Done = func(*Transaction, error) { answers.Add(1) }
					if err := c.Post(tx); err != nil {
						t.Fatal(err)
					}
				}
				called := make(chan struct{})
				go func() {
					x.call(c)
					close(called)
				}()
				e.Close()
				<-called
				if got := answers.Load(); got != 100 {
					t.Fatalf("%d answers to 100 posts", got)
				}
				n.Close()
			}
		})
	}
}

// lender is a wire that counts the datagrams that Recv returned last.
type lender struct {
	*simnet.Conn
	lent int
}

func (l *lender) Recv(dst []transport.Datagram, wait time.Duration) (n int, err error) {
	l.lent = 0
	n, err = l.Conn.Recv(dst, wait)
	l.lent = n
	return n, err
}

// TestCloseGivesBack checks that the transport has back the buffers of the last batch when Close
// has returned, also if that broke the endpoint.
func TestCloseGivesBack(t *testing.T) {
	for _, c := range []struct{ manual, breaks bool }{{true, false}, {true, true}} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			wire := &lender{Conn: n.Attach(addrB, simnet.Config{Poison: true})}
			e, err := New(wire, &Config{ID: 2, Manual: c.manual, OnEvent: func(Event) {
				if c.breaks {
					panic("sprung")
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			junk := transport.Outgoing{To: &addrB, Buf: make([]byte, simnet.DefaultHeadroom+1)}
			if _, err := n.Attach(addrA, simnet.Config{}).Send([]transport.Outgoing{junk}); err != nil {
				t.Fatal(err)
			}
			if c.manual {
				func() {
					defer func() { recover() }()
					e.Progress(0)
				}()
			}
			synctest.Wait()
			if wire.lent != 1 || c.breaks != (e.Err() != nil) {
				t.Errorf("%+v: %d datagrams are lent; %v", c, wire.lent, e.Err())
			}
			if err := e.Close(); err != nil || wire.lent != 0 {
				t.Errorf("%+v: %d datagrams are lent after Close; %v", c, wire.lent, err)
			}
		})
	}
}

package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestNobodyAccepts: whoever is dialed and does not answer, and whichever of the ends of
// the time and of the connection comes first, the error is ErrNoAnswer, and says what is
// known of the peer.
func TestNobodyAccepts(t *testing.T) {
	const never = time.Duration(-1)
	for _, c := range []struct {
		name      string
		there     func(n *net)
		deadline  time.Duration
		is, also  error // is: ErrNoAnswer if nil
		says, not string
	}{
		{name: "nobody", deadline: 0, also: dgrdma.ErrPeerDown, says: "nothing was heard of it", not: "Accept"},
		{name: "nobody within a deadline", deadline: time.Second, also: context.DeadlineExceeded, says: "nothing was heard of it", not: "Accept"},
		{name: "nobody for ever", deadline: never, also: dgrdma.ErrPeerDown, says: "nothing was heard of it", not: "Accept"},
		{name: "listening", there: func(n *net) { n.host(2, nil).Listen("port", nil) }, says: "Dial waits for Accept", not: "link host"},
		{name: "listening within a deadline", there: func(n *net) { n.host(2, nil).Listen("port", nil) }, deadline: time.Second, also: context.DeadlineExceeded, says: "Dial waits for Accept", not: "link host"},
		{name: "listening until it is gone", there: func(n *net) {
			n.host(2, nil).Listen("port", nil)
			time.AfterFunc(time.Second, func() { n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1}) })
		}, deadline: never, also: dgrdma.ErrPeerDown, says: "and still there?", not: "Accept"},
		{name: "no link host", there: func(n *net) {
			e, err := dgrdma.New(n.sim.Attach(simnet.Addr(2), simnet.Config{}), &dgrdma.Config{ID: 2, AcceptAny: true})
			if err != nil {
				n.t.Fatal(err)
			}
			n.t.Cleanup(func() { e.Close() })
		}, is: dgrdma.ErrNoService, says: "peer 2 at 02:00:00:00:00:02: it serves nothing, so no link either"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				h := n.host(1, nil)
				if c.there != nil {
					c.there(n)
				}
				ctx, cancel := context.WithCancel(t.Context())
				switch {
				case c.deadline == 0:
					cancel()
					ctx, cancel = context.WithTimeoutCause(t.Context(), h.ep.GiveUp(), ErrNoAnswer) // as Dial does
				case c.deadline > 0:
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), c.deadline)
				}
				defer cancel()
				_, err := dial(ctx, h, 2, "port", nil)
				var named *Error
				if c.is == nil {
					c.is = ErrNoAnswer
				}
				if !errors.Is(err, c.is) || c.also != nil && !errors.Is(err, c.also) || !errors.As(err, &named) || named.Op != "dial" {
					t.Fatalf("%v", err)
				}
				if said := err.Error(); !strings.Contains(said, c.says) || strings.Count(said, ErrNoAnswer.Error()) > 1 || c.not != "" && strings.Contains(said, c.not) {
					t.Errorf("%s", said)
				}
			})
		})
	}
}

// TestSilentPeerIsLeft: the connection to a peer that wrote no letter is closed when the
// last Dial to it ends, unless a link is on it or the endpoint is shared, and nothing is
// kept of it.
func TestSilentPeerIsLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(h *Host, conn *dgrdma.Conn) error
		left bool
	}{
		{"alone", func(*Host, *dgrdma.Conn) error { return nil }, true},
		{"another Dial, which has not asked yet", func(h *Host, conn *dgrdma.Conn) error { h.peerOf(conn).dialing.Add(1); return nil }, false},
		{"a link of another kind", func(h *Host, conn *dgrdma.Conn) error {
			_, _, err := h.Offer(conn, 0, &Options{Buffers: 1, Size: 8})
			return err
		}, false},
		{"a link of another kind, which was closed", func(h *Host, conn *dgrdma.Conn) error {
			l, _, err := h.Offer(conn, 0, &Options{Buffers: 1, Size: 8})
			l.Close()
			return err
		}, true},
		{"a letter that came", func(h *Host, conn *dgrdma.Conn) error { h.peerOf(conn).Letter(nil); return nil }, false},
		{"a shared endpoint", func(h *Host, _ *dgrdma.Conn) error { h.own = false; return nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newNet(t, 1).host(1, nil)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				ended := make(chan error, 1)
				go func() { _, err := h.Dial(ctx, at(2), "port", nil); ended <- err }()
				synctest.Wait()
				conn := h.ep.Conns()[0]
				if got := h.peerOf(conn).dialing.Load(); got != 1 {
					t.Errorf("%d Dials are counted", got)
				}
				if err := c.with(h, conn); err != nil {
					t.Fatal(err)
				}
				before := h.peerOf(conn).dialing.Load()
				// One that ends earlier leaves all to the other.
				if _, err := h.Dial(soon(t), at(2), "port", nil); !errors.Is(err, ErrNoAnswer) {
					t.Fatal(err)
				}
				if conn.Err() != nil || len(h.ep.Conns()) != 1 {
					t.Error("the connection is closed before the last Dial ends")
				}
				if err := <-ended; !errors.Is(err, ErrNoAnswer) {
					t.Fatal(err)
				}
				synctest.Wait()
				if left := conn.Err() != nil && len(h.ep.Conns()) == 0; left != c.left {
					t.Errorf("%v", conn.Err())
				}
				if got := h.peerOf(conn).dialing.Load(); got != before-1 {
					t.Errorf("%d Dials are counted at the end, want %d", got, before-1)
				}
				if c.left {
					nothingLeft(t, h)
				}
				h.own = true
			})
		})
	}
}

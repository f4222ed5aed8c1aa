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

// TestNoAccept checks that the error of a Dial that gets no answer is ErrNoAnswer, and says what is
// known of the peer, whether the end of the time or of the connection comes first.
func TestNoAccept(t *testing.T) {
	const never = time.Duration(-1)
	for _, c := range []struct {
		name      string
		there     func(n *net)
		deadline  time.Duration
		is, also  error // is: ErrNoAnswer if nil
		says, not string
	}{
		{name: "none", deadline: 0, also: dgrdma.ErrPeerDown, says: "nothing was heard of it", not: "Accept"},
		{name: "none within a deadline", deadline: time.Second, also: context.DeadlineExceeded, says: "nothing was heard of it", not: "Accept"},
		{name: "none for ever", deadline: never, also: dgrdma.ErrPeerDown, says: "nothing was heard of it", not: "Accept"},
		{name: "listening", there: func(n *net) { n.host(2, nil).Listen("port", nil) }, says: "Dial waits for Accept", not: "link host"},
		{name: "listening within a deadline", there: func(n *net) { n.host(2, nil).Listen("port", nil) }, deadline: time.Second, also: context.DeadlineExceeded, says: "Dial waits for Accept", not: "link host"},
		{name: "listening until it is gone", there: func(n *net) {
			n.host(2, nil).Listen("port", nil)
			time.AfterFunc(time.Second, func() { n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1}) })
		}, deadline: never, also: dgrdma.ErrPeerDown, says: "frames of it came, but no answer", not: "Accept"},
		{name: "listening at no port", there: func(n *net) { n.host(2, nil) }, is: dgrdma.ErrRefused, says: "it takes no unknown peers: have its program accept any, or connect to this one", not: "nothing was heard"},
		{name: "listening at no port, within a deadline", there: func(n *net) { n.host(2, nil) }, deadline: time.Second, is: dgrdma.ErrRefused, says: "it takes no unknown peers", not: "nothing was heard"},
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

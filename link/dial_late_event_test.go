package link

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// slow is a service that takes its time to hear that a peer is down.
type slow struct{}

func (slow) Name() string                                            { return "slow" }
func (slow) Size() uint64                                            { return 1 << 16 }
func (slow) Meet(*dgrdma.Channel) dgrdma.Handler                     { return slow{} }
func (slow) Letter([]byte)                                           {}
func (slow) Admit(dgrdma.EndpointID, *frame.Message) ([]byte, error) { return nil, dgrdma.ErrBounds }
func (slow) Complete(dgrdma.EndpointID, *frame.Message)              {}
func (slow) Event(ev dgrdma.Event) {
	if ev.Kind == dgrdma.PeerDown {
		time.Sleep(100 * time.Millisecond) // other goroutines run, and this one does not
	}
}

// TestDialBeforeTheEndIsTold checks that a Dial to a peer that was just given up, over an endpoint
// that is shared, makes a link: the host hears later that the life before is over, and that does not
// end what was begun since.
func TestDialBeforeTheEndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simnet.New(7)
		defer sim.Close()
		b := newShared(t, sim, 2)
		defer b.ep.Close()
		b.host.serve(t, "port", &Options{Buffers: 2, Size: 8})
		ep, err := dgrdma.New(sim.Attach(simnet.Addr(1), simnet.Config{}), &dgrdma.Config{ID: 1, AcceptAny: true, GiveUp: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer ep.Close()
		if _, err := ep.Serve(slow{}); err != nil {
			t.Fatal(err)
		}
		a, err := On(ep, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		old, err := a.Dial(ctx, at(2), "port", nil)
		if err != nil {
			t.Fatal(err)
		}
		sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1})
		if err := old.Out.Send(ctx, 1, []byte("lost")); err != nil {
			t.Fatal(err)
		}
		<-old.Peer().Done()
		sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{})
		l, err := a.Dial(ctx, at(2), "port", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := l.Err(); err != nil {
			t.Errorf("the link of the new life: %v", err)
		}
		if old.Err() == nil {
			t.Error("the link of the old life goes on")
		}
	})
}

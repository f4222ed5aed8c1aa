package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// lifeController counts what it is told of.
type lifeController struct {
	ack.FixedWindow
	sent int
}

func (c *lifeController) OnSent(ack.Instant, uint32, int) { c.sent++ }

// TestControllerStartsWithTheLife checks that frames that were in flight to a peer's old life do
// not count in the new one.
func TestControllerStartsWithTheLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*lifeController
		p := newPair(t, pairConfig{a: Config{NewController: func(int) ack.Controller {
			made = append(made, &lifeController{})
			return made[len(made)-1]
		}}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		before := len(made)
		p.restartB(Config{})
		time.Sleep(time.Second)
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if len(made) == before || made[before-1].sent != 1 || made[len(made)-1].sent == 0 {
			t.Error("the controller of the old life was kept")
		}
	})
}

// resetting resets its connection when a transaction completes.
type resetting struct {
	*Region
	complete func()
}

func (r *resetting) Complete(src frame.EndpointID, m *frame.Message) {
	r.Region.Complete(src, m)
	if r.complete != nil {
		r.complete()
	}
}

// TestResetInsideBatch checks that what a batch acknowledged before Reset does not count for the
// frames that were sent after it.
func TestResetInsideBatch(t *testing.T) {
	mem, _ := NewRegion(4096)
	hook := &resetting{Region: mem}
	withFakePeer(t, Config{Memory: hook}, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		answers := make(chan error, 2)
		post := func() {
			tx := write(0, pattern(1, 8), 0, 1)
			tx.Done = func(_ *Transaction, err error) { answers <- err }
			if err := c.Post(tx); err != nil {
				t.Error(err)
			}
		}
		post()
		s.recv(time.Millisecond)
		hook.complete = func() {
			c.Reset(0)
			post()
		}
		b := s.encode(1, data(1, 1, 1, 64, pattern(1, 8)))
		frame.PutAck(b, 1, 1)
		s.raw(b)
		got := s.recv(50 * time.Millisecond)
		if err := <-answers; !errors.Is(err, ErrReset) {
			t.Errorf("first: %v, want ErrReset", err)
		}
		select {
		case err := <-answers:
			t.Errorf("second was answered with %v before it was acknowledged", err)
		default:
		}
		if acked(got, 1) {
			t.Error("acknowledged a frame of before Reset")
		}
	})
}

// TestResetIsToldAtOnce checks that a peer of our kind hears of a new life of this side though
// nothing is posted.
func TestResetIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		before := p.toA.Stats().Theirs
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		if mine, theirs := p.toB.Stats().Mine, p.toA.Stats().Theirs; theirs != mine || theirs == before {
			t.Errorf("the peer knows life %d, before %d; it is %d", theirs, before, mine)
		}
	})
}

// TestResetWaitsForThePoller checks that an endpoint without goroutines sends nothing in Reset, but
// when it is driven next.
func TestResetWaitsForThePoller(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	f.sent, f.keeps = nil, true
	if err := c.Reset(0); err != nil || len(f.sent) > 0 {
		t.Errorf("%v, %d frames were sent", err, len(f.sent))
	}
	if f.give(nil); len(f.sent) != 1 {
		t.Errorf("%d frames were sent, want an introduction", len(f.sent))
	}
}

// TestResetAfterClose checks that what is closed stays so after Reset, the endpoint or the
// connection alone.
func TestResetAfterClose(t *testing.T) {
	for name, end := range map[string]func(p *pair) error{
		"endpoint":   func(p *pair) error { return p.a.Close() },
		"connection": func(p *pair) error { return p.toB.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{})
				defer p.close()
				if err := end(p); err != nil {
					t.Fatal(err)
				}
				if err := p.toB.Reset(0); !errors.Is(err, ErrClosed) {
					t.Errorf("Reset: %v", err)
				}
				select {
				case <-p.toB.Done():
				default:
					t.Error("not done")
				}
			})
		})
	}
}

// TestResetDuringHandshakes checks that a goroutine that resets a connection and one that takes
// a HELLO of its peer do not meet. For the race detector.
func TestResetDuringHandshakes(t *testing.T) {
	p := &pair{t: t, net: simnet.New(1)}
	defer p.net.Close()
	a, b := p.open(addrA, &Config{ID: 1}), p.open(addrB, &Config{ID: 2})
	defer a.Close()
	defer b.Close()
	p.connect(a, Peer{ID: 2, Addr: addrB})
	c := p.connect(b, Peer{ID: 1, Addr: addrA})
	for n := 0; n < 1000 && c.Stats().FramesReceived < 100; n++ {
		c.Reset(0)
		time.Sleep(100 * time.Microsecond)
	}
	if c.Stats().FramesReceived == 0 {
		t.Error("no introduction came")
	}
}

package wires

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// linkReceiver starts a process with a host of links on side 1.
func linkReceiver(t *testing.T, ns *netns.Namespace, w wire) (*child, string) {
	t.Helper()
	c := spawn(t, ns, nil)
	return c, c.must(order{Host: w.local(1), ID: 2}).URL
}

// numbers sends the messages that receiveNumbers expects, until it is told to
// end.
type numbers struct {
	sent chan int // how many, whenever it changes; the latest; closed when done
	end  chan struct{}
	done chan error
	n    int // good when done
}

func sendInBackground(p *link.Producer) *numbers {
	s := &numbers{sent: make(chan int, 1), end: make(chan struct{}), done: make(chan error, 1)}
	go func() {
		defer close(s.sent)
		s.done <- func() error {
			for ; ; s.n++ {
				select {
				case <-s.end:
					return p.Close()
				case <-s.sent: // make room for the newer number
				default:
				}
				s.sent <- s.n
				if err := sendNumber(p, s.n); err != nil {
					return err
				}
			}
		}()
	}()
	return s
}

// goesOn waits until many more messages left.
func (s *numbers) goesOn(t *testing.T) {
	t.Helper()
	before := <-s.sent
	eventually(t, patience, "messages sent again", func() bool {
		n, sends := <-s.sent
		if !sends {
			t.Fatalf("sending ended: %v", <-s.done)
		}
		return n > before+40
	})
}

func (s *numbers) stop() error {
	close(s.end)
	return <-s.done
}

// dialNumbers dials a process that has its host, and may not listen yet.
func dialNumbers(t *testing.T, a *link.Host, url string) *link.Link {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		l, err := a.Dial(ctx, url, childPort, nil)
		switch {
		case err == nil:
			return l
		case !errors.Is(err, link.ErrRefused) && !errors.Is(err, dgrdma.ErrRefused) || ctx.Err() != nil:
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLinksFlap: the interfaces of both sides go down and up while messages go
// through a link.
func TestLinksFlap(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		for _, n := range pair {
			n.KeepAddresses(t)
		}
		a, b := openHost(t, pair[0], w.local(0), 1), openHost(t, pair[1], w.local(1), 2)
		port, err := b.Listen(childPort, &link.Options{Buffers: 8, Size: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		received := make(chan error, 1)
		go func() {
			l, err := port.Accept(t.Context())
			if err == nil {
				err = receiveNumbers(l.In, -1)
			}
			received <- err
		}()
		s := sendInBackground(dialNumbers(t, a, b.URL()).Out)
		for _, n := range pair {
			s.goesOn(t)
			n.SetUp(t, false)
			time.Sleep(100 * time.Millisecond)
			n.SetUp(t, true)
			s.goesOn(t)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if err := <-received; err != nil {
			t.Fatal(err)
		}
	})
}

// TestLinkPeerPauses: the consuming process stops for a while and continues.
func TestLinkPeerPauses(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		c, url := linkReceiver(t, pair[1], w)
		a := openHost(t, pair[0], w.local(0), 1)
		received := c.start(order{Accept: -1})
		s := sendInBackground(dialNumbers(t, a, url).Out)
		s.goesOn(t)
		c.signal(syscall.SIGSTOP)
		time.Sleep(time.Duration(quick(2000, 300)) * time.Millisecond)
		c.signal(syscall.SIGCONT)
		s.goesOn(t)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if got := received(); got.Err != "" {
			t.Fatal(got.Err)
		}
	})
}

// TestLinkPeerPausesTooLong: beyond GiveUp a producer that waits for buffers is
// told who is gone.
func TestLinkPeerPausesTooLong(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		c, url := linkReceiver(t, pair[1], w)
		a := openHost(t, pair[0], with(w.local(0), "giveup=3s"), 1)
		c.start(order{Accept: -1})
		s := sendInBackground(dialNumbers(t, a, url).Out)
		s.goesOn(t)
		c.signal(syscall.SIGSTOP)
		select {
		case err := <-s.done:
			var pe *dgrdma.PeerError
			if !errors.Is(err, dgrdma.ErrPeerDown) || !errors.As(err, &pe) || pe.ID != 2 {
				t.Errorf("sending failed with %v", err)
			}
		case <-time.After(patience):
			t.Fatal("the producer waits on")
		}
		c.kill()
	})
}

// TestLinkPeerRestarts: the consuming process is killed in the midst of messages
// and started again under the same endpoint string. The link fails, a new one
// begins with its own first message.
func TestLinkPeerRestarts(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		c, url := linkReceiver(t, pair[1], w)
		a := openHost(t, pair[0], with(w.local(0), "giveup=3s"), 1)
		c.start(order{Accept: -1})
		s := sendInBackground(dialNumbers(t, a, url).Out)
		s.goesOn(t)
		c.kill()
		again := spawn(t, pair[1], nil)
		again.must(order{Host: url, ID: 2})
		received := again.start(order{Accept: 200})
		// We have not heard of the restart yet: it is up to Dial to try again.
		l := dialNumbers(t, a, url)
		if err := <-s.done; !errors.Is(err, dgrdma.ErrPeerRestarted) && !errors.Is(err, dgrdma.ErrPeerDown) {
			t.Errorf("the old link failed with %v", err)
		}
		if err := sendNumbers(l.Out, 200); err != nil {
			t.Fatal(err)
		}
		if got := received(); got.Err != "" {
			t.Fatal(got.Err)
		}
	})
}

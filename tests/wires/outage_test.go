package wires

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// background pumps a flow until stopped.
func background(f *flow) (stop func() error) {
	end, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- f.pump(func() bool {
			select {
			case <-end:
				return false
			default:
				return true
			}
		})
	}()
	return func() error {
		close(end)
		return <-done
	}
}

// goesOn waits until many more transactions were acknowledged.
func goesOn(t *testing.T, f *flow) {
	t.Helper()
	before := f.acked.Load()
	eventually(t, patience, "transactions done again", func() bool { return f.acked.Load() > before+40 || f.err.Load() != nil })
	if err := f.err.Load(); err != nil {
		t.Fatalf("a transaction failed: %v", *err)
	}
}

// TestLinkFlap: the link of either side goes down and up during a transfer.
func TestLinkFlap(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		for _, n := range pair {
			n.KeepAddresses(t)
		}
		const slots, size = 16, 32 << 10
		a, b, toB, _ := couple(t, pair, w, slots, size)
		f := a.flow(toB, 0, slots, size)
		stop := background(f)
		goesOn(t, f)
		for _, n := range pair {
			n.SetUp(t, false)
			time.Sleep(100 * time.Millisecond)
			n.SetUp(t, true)
			goesOn(t, f)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.verify(f)
		if s := a.Stats(); s.TransactionsLost != 0 || a.happened(dgrdma.PeerDown) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// receiver starts a process that receives on side 1.
func receiver(t *testing.T, ns *netns.Namespace, w wire, slots, size int, accept string) (*child, string) {
	t.Helper()
	c := spawn(t, ns, nil)
	return c, c.must(order{Open: with(w.local(1), accept), ID: 2, Slots: slots, Size: size}).URL
}

// TestPeerPauses: the receiving process stops for a while and continues.
func TestPeerPauses(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size = 16, 32 << 10
		c, url := receiver(t, pair[1], w, slots, size, "accept=any")
		a := open(t, pair[0], w.local(0), 1, 1, 8)
		f := a.flow(a.dial(url), 0, slots, size)
		stop := background(f)
		goesOn(t, f)
		c.signal(syscall.SIGSTOP)
		time.Sleep(time.Duration(quick(2000, 300)) * time.Millisecond)
		c.signal(syscall.SIGCONT)
		goesOn(t, f)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		c.verify(f)
	})
}

// TestPeerPausesTooLong: beyond GiveUp it counts as dead.
func TestPeerPausesTooLong(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size = 16, 32 << 10
		c, url := receiver(t, pair[1], w, slots, size, "accept=any")
		a := open(t, pair[0], with(w.local(0), "giveup=3s"), 1, 1, 8)
		f := a.flow(a.dial(url), 0, slots, size)
		stop := background(f)
		goesOn(t, f)
		c.signal(syscall.SIGSTOP)
		began := time.Now()
		select {
		case <-f.conn.Done():
		case <-time.After(patience):
			t.Fatal("the connection lives on")
		}
		if took := time.Since(began); took < 1500*time.Millisecond { // it may have been silent before
			t.Errorf("given up after %v already", took)
		}
		err := stop()
		var pe *dgrdma.PeerError
		if !errors.Is(err, dgrdma.ErrPeerDown) || !errors.As(err, &pe) || pe.ID != 2 || !pe.Timeout() {
			t.Errorf("transactions failed with %v", err)
		}
		if a.happened(dgrdma.PeerDown) != 1 {
			t.Errorf("%d events", a.happened(dgrdma.PeerDown))
		}
		c.signal(syscall.SIGCONT)
	})
}

// TestPeerRestarts: the receiving process is killed in the midst of a transfer
// and started again under the same endpoint string.
func TestPeerRestarts(t *testing.T) {
	restart(t, "accept=connected", func(c *child, a *end) { c.must(order{Dial: a.URL(), Slots: 1, Size: 8}) })
}

// TestAcceptingPeerRestarts is the same with a receiver that connects to nobody
// and waits to be spoken to.
func TestAcceptingPeerRestarts(t *testing.T) {
	restart(t, "accept=any", func(*child, *end) {})
}

func restart(t *testing.T, accept string, introduce func(*child, *end)) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size = 16, 32 << 10
		c, url := receiver(t, pair[1], w, slots, size, accept)
		a := open(t, pair[0], with(w.local(0), "giveup=3s"), 1, 1, 8)
		introduce(c, a)
		toC := a.dial(url)
		f := a.flow(toC, 0, slots, size)
		stop := background(f)
		goesOn(t, f)
		c.kill()
		again := spawn(t, pair[1], nil)
		again.must(order{Open: with(url, accept), Slots: slots, Size: size})
		introduce(again, a)
		if err := stop(); !errors.Is(err, dgrdma.ErrPeerRestarted) {
			t.Fatalf("pending transactions failed with %v; %v", err, again.ask(order{AtMostOnce: true}))
		}
		eventually(t, patience, "event PeerRestarted", func() bool { return a.happened(dgrdma.PeerRestarted) == 1 })
		next := a.flow(toC, 0, slots, size)
		next.next = f.next
		if err := next.send(100); err != nil {
			t.Fatalf("after the restart: %v", err)
		}
		// Of the transactions that failed, some may have been applied.
		if got := again.must(order{AtMostOnce: true}); got.Completions < 100 {
			t.Errorf("%d of 100 transactions arrived after the restart", got.Completions)
		}
	})
}

// TestPeerAppearsLater: sending to where nobody listens yet.
func TestPeerAppearsLater(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size = 16, 32 << 10
		first := open(t, pair[1], with(w.local(1), "accept=any"), 2, slots, size)
		url := first.URL()
		first.Close()
		a := open(t, pair[0], with(w.local(0), "giveup=6s"), 1, 1, 8)
		toB := a.dial(url)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		tx := &dgrdma.Transaction{Completion: dgrdma.Word(0, 1)}
		if err := toB.Write(ctx, tx); !errors.Is(err, dgrdma.ErrPeerDown) {
			t.Fatalf("nobody is there, and yet: %v", err)
		}
		if err := toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		f := a.flow(toB, 0, slots, size)
		sent := make(chan error, 1)
		before := a.Stats().FramesSent
		go func() { sent <- f.send(100) }()
		eventually(t, patience, "frames sent to nobody", func() bool { return a.Stats().FramesSent > before })
		b := open(t, pair[1], with(url, "accept=any"), 2, slots, size)
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		b.verify(f)
	})
}

package dgrdma

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// heldUp is a wire that takes its time over the first frames whose data lies where the
// transaction has it.
type heldUp struct {
	transport.Conn
	once  atomic.Bool
	holds chan int      // how many such bytes it has
	goOn  chan struct{} // lets them go
	fails error         // in place of that
	spoil atomic.Bool   // they changed in that time
}

func (h *heldUp) Send(batch []transport.Outgoing) (int, error) {
	rests := func() (all []byte) {
		for i := range batch {
			all = append(all, batch[i].Rest...)
		}
		return all
	}
	if lent := rests(); len(lent) > 0 && !h.once.Swap(true) {
		h.holds <- len(lent)
		<-h.goOn
		h.spoil.Store(!bytes.Equal(lent, rests()))
		if h.fails != nil {
			return 0, h.fails
		}
	}
	return h.Conn.Send(batch)
}

// TestDoneWaitsForWhatIsBeingSent checks that the bytes of a transaction belong to the library as
// long as the transport is sending them, whatever ends it, and that Done is told afterwards, once.
func TestDoneWaitsForWhatIsBeingSent(t *testing.T) {
	broken := errors.New("broken")
	inBubble := func(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }
	for name, end := range map[string]struct {
		how  func(c *Conn)
		want error
		held time.Duration // how long it takes to be told; 0: it does not wait for the goroutine that sends
		run  func(*testing.T, func(*testing.T))
	}{
		"reset":             {func(c *Conn) { c.Reset(1) }, ErrReset, 20 * time.Millisecond, inBubble},
		"connection closed": {func(c *Conn) { c.Close() }, ErrClosed, 20 * time.Millisecond, inBubble},
		"transport broken":  {func(c *Conn) { c.ep.transport.(*heldUp).fails = broken }, broken, 0, inBubble},
		// Close waits for the lock of the goroutine that sends, and virtual time stands still while one waits for a lock.
		"endpoint closed": {func(c *Conn) { c.ep.Close() }, ErrClosed, 500 * time.Millisecond, func(t *testing.T, f func(*testing.T)) { f(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			end.run(t, func(t *testing.T) {
				l := newHeldUpPair(t)
				data, done := pattern(1, 100_000), make(chan error, 2)
				x := write(64, data, 0, 1)
				x.Done = func(_ *Transaction, err error) {
					clear(data) // it is the program's again
					done <- err
				}
				go func() {
					if err := l.c.Post(x); err != nil {
						t.Error(err)
					}
				}()
				if n := <-l.wire.holds; n < heldUpMTU {
					t.Errorf("%d bytes are sent from where they are", n)
				}
				ended := make(chan struct{})
				go func() {
					end.how(l.c)
					close(ended)
				}()
				if end.held == 0 {
					<-ended
				}
				time.Sleep(end.held)
				if len(done) > 0 {
					t.Error("done while it is being sent")
				}
				close(l.wire.goOn)
				<-ended
				if err := <-done; !errors.Is(err, end.want) {
					t.Errorf("done with %v, want %v", err, end.want)
				}
				time.Sleep(5 * time.Millisecond)
				if l.wire.spoil.Load() || len(done) > 0 {
					t.Errorf("the bytes have changed: %v; done once more: %v", l.wire.spoil.Load(), len(done) > 0)
				}
			})
		})
	}
}

// heldUpPair is an endpoint on such a wire, with a connection to another endpoint.
type heldUpPair struct {
	net  *simnet.Network
	wire *heldUp
	a    *Endpoint
	c    *Conn
}

const heldUpMTU = 9000

func newHeldUpPair(t *testing.T) *heldUpPair {
	t.Helper()
	l := &heldUpPair{net: simnet.New(1)}
	l.wire = &heldUp{Conn: l.net.Attach(addrA, simnet.Config{MTU: heldUpMTU}), holds: make(chan int), goOn: make(chan struct{})}
	memory, _ := NewRegion(1 << 20)
	b, err := New(l.net.Attach(addrB, simnet.Config{MTU: heldUpMTU}), &Config{ID: 2, Memory: memory, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.a, err = New(l.wire, &Config{ID: 1, NoHelp: true}); err != nil {
		t.Fatal(err)
	}
	if l.c, err = l.a.Connect(Peer{ID: 2, Addr: addrB, Size: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.a.Close()
		b.Close()
		l.net.Close()
	})
	return l
}

// later has the wire take its time from now on, and no sooner.
func (l *heldUpPair) later(on bool) { l.wire.once.Store(!on) }

// post posts a transaction of 20000 bytes, which tells its number when it is done.
func (l *heldUpPair) post(t *testing.T, i int, done chan int) {
	data := pattern(i, 20_000)
	x := write(64, data, 0, 1)
	x.Done = func(*Transaction, error) {
		clear(data) // it is the program's again
		done <- i
	}
	if err := l.c.Post(x); err != nil {
		t.Error(err)
	}
}

// TestDoneDoesNotWaitForOthers checks that a transaction of which all has left is done when it is
// acknowledged, also while a batch with the bytes of another one is being sent.
func TestDoneDoesNotWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newHeldUpPair(t)
		l.later(false)
		slow := simnet.Link{Latency: 20 * time.Millisecond}
		l.net.Link(addrA, addrB, slow)
		l.net.Link(addrB, addrA, slow)
		if err := l.c.Write(t.Context(), write(64, pattern(1, 10), 0, 1)); err != nil {
			t.Fatal(err)
		}
		done := make(chan int, 2)
		l.post(t, 1, done)
		time.Sleep(10 * time.Millisecond) // all of it has left
		l.later(true)
		go l.post(t, 2, done)
		<-l.wire.holds
		select {
		case i := <-done:
			if i != 1 {
				t.Errorf("transaction %d is done first", i)
			}
		case <-time.After(5 * time.Second):
			t.Error("a transaction that has left waits for another one")
		}
		close(l.wire.goOn)
		if i := <-done; i != 2 {
			t.Errorf("transaction %d is done last", i)
		}
	})
}

// TestDoneWaitsForTheBatch checks that transactions of which bytes are in the batch that is being
// sent wait until it has left, and no others, whichever goroutine completes them.
func TestDoneWaitsForTheBatch(t *testing.T) {
	f := newFeed(t, Config{})
	e := f.e
	var done []int
	var all [3]Transaction
	var fin finished
	engine{e}.endSend() // a batch that held bytes of the second one
	for i := range all {
		all[i].Done = func(*Transaction, error) { done = append(done, i) }
		if i > 0 {
			frameOf(&e.batch, 34, make([]byte, outgoing.LendingOf(false, false).Least), &all[i], 0)
		}
		if i == 1 {
			engine{e}.endSend()
		}
	}
	for _, i := range []int{2, 0, 1} {
		fin.add(&all[i], nil)
	}
	e.tell(&fin)
	e.deliverNotifications()
	if !slices.Equal(done, []int{0, 1}) {
		t.Errorf("done are %v, while the last one is being sent", done)
	}
	engine{e}.endSend()
	e.deliverNotifications()
	if !slices.Equal(done, []int{0, 1, 2}) {
		t.Errorf("done are %v, when all was sent", done)
	}
}

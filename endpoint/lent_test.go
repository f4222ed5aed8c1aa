package endpoint

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

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
	spoil atomic.Bool   // they changed meanwhile
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

// TestDoneWaitsForWhatIsBeingSent: whatever ends a transaction, its bytes belong to the
// library as long as the transport is sending them, and Done is told afterwards, once.
func TestDoneWaitsForWhatIsBeingSent(t *testing.T) {
	const mtu = 9000
	broken := errors.New("broken")
	for name, end := range map[string]struct {
		how  func(c *Conn)
		want error
		held time.Duration // how long it takes to be told; 0: it does not wait for who sends
	}{
		"reset":             {func(c *Conn) { c.Reset(1) }, ErrReset, 20 * time.Millisecond},
		"connection closed": {func(c *Conn) { c.Close() }, ErrClosed, 20 * time.Millisecond},
		"endpoint closed":   {func(c *Conn) { c.ep.Close() }, ErrClosed, 500 * time.Millisecond},
		"transport broken":  {func(c *Conn) { c.ep.transport.(*heldUp).fails = broken }, broken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			net := simnet.New(1)
			defer net.Close()
			wire := &heldUp{Conn: net.Attach(addrA, simnet.Config{MTU: mtu}), holds: make(chan int), goOn: make(chan struct{})}
			memory, _ := NewRegion(1 << 20)
			b, err := New(net.Attach(addrB, simnet.Config{MTU: mtu}), &Config{ID: 2, Memory: memory, AcceptAny: true})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			a, err := New(wire, &Config{ID: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			c, err := a.Connect(Peer{ID: 2, Addr: addrB, Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			data, done := pattern(1, 100_000), make(chan error, 2)
			x := write(64, data, 0, 1)
			x.Done = func(_ *Transaction, err error) {
				clear(data) // it is ours again
				done <- err
			}
			go func() {
				if err := c.Post(x); err != nil {
					t.Error(err)
				}
			}()
			if n := <-wire.holds; n < mtu {
				t.Fatalf("%d bytes are sent from where they are", n)
			}
			ended := make(chan struct{})
			go func() {
				end.how(c)
				close(ended)
			}()
			if end.held == 0 {
				<-ended
			}
			time.Sleep(end.held)
			if len(done) > 0 {
				t.Error("done while it is being sent")
			}
			close(wire.goOn)
			<-ended
			if err := <-done; !errors.Is(err, end.want) {
				t.Errorf("done with %v, want %v", err, end.want)
			}
			time.Sleep(5 * time.Millisecond)
			if wire.spoil.Load() || len(done) > 0 {
				t.Errorf("the bytes have changed: %v; done once more: %v", wire.spoil.Load(), len(done) > 0)
			}
		})
	}
}

package dgrdma

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestSlabWaitsForSend checks that a frame acknowledged while it is being sent keeps its memory
// until that is over.
func TestSlabWaitsForSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		h, e, c := openHooked(t, n, OpenCPI(true), Config{FirstFrame: 1})
		defer e.Close()
		s := newStranger(t, n, addrA, 1, 2, addrB)
		h.after = func() {
			h.after = nil
			b := s.encode(1)
			frame.PutAck(b, c.profile.FirstFrame, 1)
			s.raw(b)
			for c.Stats().InFlight > 0 {
				runtime.Gosched()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.tx.inFlight.Memory() == 0 {
				t.Error("the memory of a frame that is being sent is free")
			}
		}
		if err := c.Write(context.Background(), write(0, pattern(1, 8), 0, 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the goroutine that sent it may not have come back from the transport
		c.mu.Lock()
		c.tx.inFlight.ReleaseSent()
		if n := c.tx.inFlight.Memory(); n > 0 {
			t.Errorf("%d bytes of memory of a frame that was sent are not free", n)
		}
		c.mu.Unlock()
	})
}

// TestSlabs checks that frames of any length that are kept have memory, and that none is left when all is
// acknowledged.
func TestSlabs(t *testing.T) {
	for _, mtu := range []int{200, 1490, 9000, frame.MaxData} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			open := func(at transport.Addr, id frame.EndpointID) *Endpoint {
				mem, err := NewRegion(1 << 20)
				if err != nil {
					t.Fatal(err)
				}
				e, err := New(n.Attach(at, simnet.Config{MTU: mtu, Headroom: 14}), &Config{ID: id, Memory: mem, AcceptAny: true})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			a, b := open(addrA, 1), open(addrB, 2)
			defer a.Close()
			defer b.Close()
			c, err := a.Connect(Peer{ID: 2, Addr: addrB, Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Write(context.Background(), write(0, nil, 0, 1)); err != nil {
				t.Fatal(err)
			}
			n.Link(addrB, addrA, simnet.Link{Latency: 200 * time.Millisecond}) // acknowledgements take that long
			done := make(chan error, 3)
			for i, size := range []int{8, 1000, 5000} {
				tr := write(8192*uint32(i), pattern(i, size), 0, 1)
				tr.Done = func(_ *Transaction, err error) { done <- err }
				tr.Copied = func(*Transaction) {} // so that frames are kept
				if err := c.Post(tr); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Millisecond)
			c.mu.Lock()
			frames := 0
			for q := c.tx.unacked.Oldest(); q != c.tx.unacked.Next(); q++ {
				if c.tx.inFlight.At(q).IsKept() { // else it carried no message
					frames++
				}
			}
			memory := c.tx.inFlight.Memory()
			c.mu.Unlock()
			if want := 6008 / mtu; frames <= want || memory < 6008 {
				t.Errorf("%d frames of %d bytes in flight, in %d bytes of memory", frames, mtu, memory)
			}
			for range 3 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.tx.inFlight.ReleaseSent()
			if n := c.tx.inFlight.Memory(); n > 0 {
				t.Errorf("frames of %d bytes: %d bytes of memory are left", mtu, n)
			}
		})
	}
}

// TestSlabsOfWhatIsForgotten checks that frames in flight that are forgotten hold no memory.
func TestSlabsOfWhatIsForgotten(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		for range 10 {
			if err := c.Post(write(0, pattern(1, 1000), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		s.recv(time.Millisecond)
		c.mu.Lock()
		held := c.tx.inFlight.Memory()
		c.mu.Unlock()
		if held < 10*1000 {
			t.Fatalf("%d bytes hold what is in flight", held)
		}
		if err := c.Reset(0); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tx.inFlight.ReleaseSent()
		if n := c.tx.inFlight.Memory(); n > 0 {
			t.Errorf("%d bytes are held of frames that were forgotten", n)
		}
	})
}

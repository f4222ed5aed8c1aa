package endpoint

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestSlabWaitsForSend: a frame acknowledged while it is being sent keeps its
// memory until that is over.
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
			if len(c.tx.leaving) != 1 || c.tx.slab == nil || c.tx.slab.held != 1 {
				t.Errorf("the memory of a frame that is being sent is free: %d leaving", len(c.tx.leaving))
			}
		}
		if err := c.Write(context.Background(), write(0, pattern(1, 8), 0, 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // who sent it may not have come back from the transport
		c.mu.Lock()
		c.tx.releaseSent()
		if len(c.tx.leaving) != 0 || c.tx.slab != nil {
			t.Errorf("the memory of a frame that was sent is not free: %d leaving", len(c.tx.leaving))
		}
		c.mu.Unlock()
	})
}

// TestSlabs: frames that are kept lie side by side as they were made, whatever their length,
// one too long for a slab has its own, and none is left when all is acknowledged.
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
			var last []byte
			for q := c.tx.sender.Oldest(); q != c.tx.sender.Next(); q++ {
				o := &c.tx.out[int(q)&(len(c.tx.out)-1)]
				if o.slab == nil {
					continue // it carried no message
				}
				b := o.buf()
				frames++
				if o.at > 0 && unsafe.Pointer(&b[0]) != unsafe.Add(unsafe.Pointer(&last[0]), len(last)) {
					t.Errorf("frame %d begins elsewhere than the one before it ends", q)
				}
				last = b
			}
			c.mu.Unlock()
			if want := 6008 / mtu; frames <= want {
				t.Errorf("%d frames of %d bytes in flight", frames, mtu)
			}
			for range 3 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.tx.releaseSent(); c.tx.slab != nil || len(c.tx.leaving) > 0 {
				t.Errorf("frames of %d bytes: memory is left: %+v", mtu, c.tx.slab)
			}
		})
	}
}

// TestSlabOfTheBatchAtHand: what waits for the batch that is being sent is not freed in
// the midst of it.
func TestSlabOfTheBatchAtHand(t *testing.T) {
	var batches atomic.Uint64
	f := flight{full: 100, batches: &batches, batched: 5}
	f.buffer()
	mem := f.slab
	mem.used, mem.held = 50, 1
	batches.Store(5)
	f.discard(&outFrame{slab: mem, length: 50})
	if f.releaseSent(); mem.held != 1 || f.slab != mem {
		t.Error("freed while it is being sent")
	}
	batches.Store(6)
	if f.releaseSent(); mem.held != 0 || mem.used != 0 || f.slab != nil || len(f.leaving) != 0 {
		t.Errorf("not freed when it was sent: %d held, %d used, %d leaving", mem.held, mem.used, len(f.leaving))
	}
	f.buffer()
	mem = f.slab
	mem.used, mem.held = 50, 1
	if f.discard(&outFrame{slab: mem, length: 50}); mem.held != 0 || f.slab != nil || len(f.leaving) != 0 {
		t.Errorf("not freed when it was sent long ago: %d held, %d leaving", mem.held, len(f.leaving))
	}
}

// TestSlabsAreFilled: frames lie in as little memory as they can, and what is given back
// of one slab leaves the others alone.
func TestSlabsAreFilled(t *testing.T) {
	for _, full := range []int{slabSize + 100, slabSize/2 + 1, 100, slabSize / 3, slabSize / 2, 40_000, slabSize} {
		var batches atomic.Uint64
		batches.Store(1)
		f := flight{full: full, batches: &batches}
		s := sequenced{new(ack.Sender)}
		s.Init(0, ack.SenderConfig{First: 65_000, Window: 10_000, Span: 10_000}, &ack.FixedWindow{})
		inSlabs := make(map[*slab]int)
		var all []uint32
		each := max(1, slabSize/full)
		mark := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, full/2) }
		for i := range 3*each + 1 {
			buf := f.buffer()
			if len(buf) != full || cap(buf) != full {
				t.Fatalf("%d bytes, and up to %d, for %d", len(buf), cap(buf), full)
			}
			q := s.Track(0, full)
			all = append(all, q)
			f.keep(s, q, buf, nil, 0)
			copy(buf, mark(i))
			inSlabs[f.slab]++
		}
		if len(inSlabs) != 4 {
			t.Errorf("%d frames of %d bytes take %d slabs, want 4", len(all), full, len(inSlabs))
		}
		for i, q := range all {
			if o := f.at(q); !bytes.HasPrefix(o.buf(), mark(i)) || len(o.buf()) != full {
				t.Fatalf("frame %d of %d bytes is another one", i, full)
			}
		}
		last := f.slab
		for _, q := range all[:len(all)-1] {
			f.discard(f.at(q))
		}
		if f.slab != last || last.held != 1 || last.used != full {
			t.Errorf("the last of %d frames of %d bytes went with the others", len(all), full)
		}
		if f.discard(f.at(all[len(all)-1])); f.slab != nil {
			t.Errorf("frames of %d bytes: memory is left", full)
		}
	}
}

// TestSlabsOfWhatIsForgotten: frames in flight that are forgotten hold no memory.
func TestSlabsOfWhatIsForgotten(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *stranger) {
		for range 10 {
			if err := c.Post(write(0, pattern(1, 1000), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		s.recv(time.Millisecond)
		c.mu.Lock()
		held := c.tx.slab
		c.mu.Unlock()
		if held == nil || held.held != 10 {
			t.Fatalf("in flight: %+v", held)
		}
		if err := c.Reset(0); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.tx.releaseSent(); c.tx.slab != nil || held.held != 0 {
			t.Errorf("%d frames are held that nobody waits for", held.held)
		}
	})
}

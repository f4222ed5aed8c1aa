package tests

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Attack A2 (SECURITY.md): its table of ids has 256 places by remainder. A frame
// is overtaken, sent again and acknowledged; its first copy comes when 256
// younger ids were used. It must still be known as a copy, else old data
// overwrites what was written to the same place since.
func TestQuirkD1LateFirstCopy(t *testing.T) {
	rigTest(t, 1, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{UDP: true})
		const late = 4 // in the order of first sendings
		var mu sync.Mutex
		var held []byte
		var ids []frame.Seq // first sendings of frames with messages
		r.link(simnet.Link{Script: func(_ int, b []byte) simnet.Verdict {
			mu.Lock()
			defer mu.Unlock()
			f, _ := frame.Parse(b)
			if !f.HasMessages() || slices.Contains(ids, f.Seq) {
				return simnet.Deliver()
			}
			if ids = append(ids, f.Seq); len(ids)-1 == late {
				held = slices.Clone(b)
				return simnet.Drop() // for now
			}
			return simnet.Deliver()
		}}, simnet.Link{})
		r.dial(dgrdma.OpenCPI(true), dgrdma.Config{})
		stop := make(chan struct{})
		var feeding sync.WaitGroup
		defer feeding.Wait()
		defer close(stop)
		feeding.Go(func() { // so that its acknowledgements do not wait
			for i := uint32(1); ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
					d.Post(0x100, i)
				}
			}
		})
		began := time.Now()
		const size = 400
		for {
			r.send(30, size)
			mu.Lock()
			lap := ids[len(ids)-1].Diff(ids[late])
			mu.Unlock()
			if lap >= 256 {
				break
			}
		}
		if took := time.Since(began); took > 40*time.Millisecond {
			t.Fatalf("256 ids took %v: a copy that late is not believable", took)
		}
		elsewhere := r.net.Attach(simnet.Addr(9), simnet.Config{})
		defer elsewhere.Close()
		held = append(make([]byte, elsewhere.Caps().Headroom), held...)
		if _, err := elsewhere.Send([]transport.Outgoing{{To: &rigPeer, Buf: held}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		for s := range 30 {
			if want := rigPattern(r.txns-30+s, size); !bytes.Equal(r.double.Bytes(int(rigSlot(s, size)), size), want) {
				t.Errorf("slot %d holds old data", s)
			}
		}
		r.completed(false)
	})
}

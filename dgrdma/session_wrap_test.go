package dgrdma

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// nearEnd has the endpoint tell a peer an epoch whose ids reach the end of 32 bits after at most that many frames.
func nearEnd(e *Endpoint, peer peerKey, frames uint32) {
	for {
		e.epochs.all = session.Generations{}
		var told session.Epoch
		e.epochs.with(peer, e.now(), func(all session.Epochs) { told = all.Told() })
		if -uint32(told) <= frames {
			return
		}
	}
}

// TestSessionIDsWrap checks that a session goes on over the end of its ids, in both directions, while the network loses,
// reorders and doubles frames and holds them back, and that each transaction is applied once.
func TestSessionIDsWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const within = 1 << 14 // 1 of 2^18 epochs is so near
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		size := 1 << 16
		p.memA, p.memB = p.region(size), p.region(size)
		cfg := Config{GiveUp: time.Minute, MTU: 100}
		a, b := cfg, cfg
		a.ID, a.Memory, a.OnEvent = 1, p.memA, p.note
		b.ID, b.Memory, b.OnEvent = 2, p.memB, p.note
		p.a, p.b = p.open(addrA, &a), p.open(addrB, &b)
		defer p.close()
		nearEnd(p.a, peerKey{ids{1, 2}, addrB}, within)
		nearEnd(p.b, peerKey{ids{2, 1}, addrA}, within)
		for _, x := range [][2]transport.Addr{{addrA, addrB}, {addrB, addrA}} {
			n.Link(x[0], x[1], simnet.Link{
				Latency: 100 * time.Microsecond, Loss: .02, Duplicate: .05, Reorder: .05, ReorderBy: time.Millisecond, HoldBack: .05, HoldFor: 300 * time.Millisecond,
			})
		}
		p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: uint64(size)})
		p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA, Size: uint64(size)})
		var wg sync.WaitGroup
		for i, c := range []*Conn{p.toB, p.toA} {
			mem, other := []*Region{p.memB, p.memA}[i], []*Endpoint{p.b, p.a}[i]
			wg.Go(func() {
				wraps := false
				for writes := uint64(1); !wraps || writes < 10; writes++ {
					data := pattern(int(writes), 50_000)
					if err := c.Write(context.Background(), write(4096, data, 0, uint32(writes))); err != nil {
						t.Error(err)
						return
					}
					if mem.Load32(0) != uint32(writes) || !bytes.Equal(mem.Bytes()[4096:][:len(data)], data) || other.Stats().Completions != writes {
						t.Errorf("write %d is done: word %d, %d completions", writes, mem.Load32(0), other.Stats().Completions)
						return
					}
					wraps = wraps || c.nextID.Load() < 1<<20
					if writes > 40 {
						t.Errorf("ids do not end: the next one is %#x", c.nextID.Load())
						return
					}
				}
			})
		}
		wg.Wait()
		if p.count(PeerRestarted, RefusedNone) != 0 || p.count(PeerUp, RefusedNone) != 2 {
			t.Error("there was more than one session")
		}
	})
}

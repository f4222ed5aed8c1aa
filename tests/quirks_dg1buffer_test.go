package tests

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Observation V6 (docs/peers.md): what waits for its acknowledgement fits the
// buffer of a socket that nobody made larger, else it drops frames while nothing
// is wrong: of full frames, of small ones, and with acknowledgements between them.
func TestQuirkD1FitsSocketBuffer(t *testing.T) {
	const rmemDefault = 212_992
	for _, udp := range []bool{false, true} {
		for _, size := range []int{0, 200, 1200, 4000, 40_000} {
			t.Run(fmt.Sprintf("udp %v/%d bytes", udp, size), func(t *testing.T) {
				rigTest(t, 1, func(t *testing.T, r *rig) {
					d := r.dg1(peers.DG1Config{UDP: udp})
					var mu sync.Mutex
					waiting := make(map[frame.Seq]int)
					bytes, most, acks := 0, 0, 0
					r.link(simnet.Link{Script: func(_ int, b []byte) simnet.Verdict {
						mu.Lock()
						defer mu.Unlock()
						n := len(b) + map[bool]int{false: 0, true: 30}[udp]
						f, _ := frame.Parse(b)
						if !f.HasMessages() {
							acks += peers.Truesize(n)
						} else if waiting[f.Seq] == 0 {
							waiting[f.Seq] = peers.Truesize(n)
							bytes += peers.Truesize(n)
						}
						most = max(most, bytes+acks)
						return simnet.Deliver()
					}}, simnet.Link{Script: func(_ int, b []byte) simnet.Verdict {
						mu.Lock()
						defer mu.Unlock()
						acks = 0 // the peer reads in order: it has seen what came before
						f, _ := frame.Parse(b)
						for i := range int(f.AckCount) {
							q := f.AckStart.Add(i)
							bytes -= waiting[q]
							delete(waiting, q)
						}
						return simnet.Deliver()
					}})
					r.dial(dgrdma.OpenCPI(udp), dgrdma.Config{})
					d.Post(0x100, 1)
					r.await(0x100, 1)
					for range 3 {
						r.send(min(300, 900_000/max(size, 1)), size)
						d.Post(0x100, 1, peers.Part{Addr: 0x200, Data: rigPattern(1, 3000)})
						time.Sleep(time.Millisecond)
					}
					t.Logf("at most %d of %d bytes", most, rmemDefault)
					if most > rmemDefault {
						t.Errorf("%d bytes wait in a buffer of %d", most, rmemDefault)
					}
				})
			})
		}
	}
}

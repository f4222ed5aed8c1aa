package tests

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Attack A16 (SECURITY.md): two of ours that take each other for a driver of before
// 2021 never use the id of a frame without messages twice, so under loss both
// come to where the span of ids is used up: neither had one to acknowledge the
// other under, and both waited for good.
func TestTwoLegacyEndsShareTheirSpans(t *testing.T) {
	for seed := range fixture.Fewer[uint64](12, 4) {
		for _, loss := range []float64{0.1, 0.3} {
			t.Run(fmt.Sprintf("%d/%v", seed, loss), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := simnet.New(seed)
					defer n.Close()
					at := []transport.Addr{rigOurs, rigPeer}
					n.Link(at[0], at[1], simnet.Link{Latency: rigLatency, Loss: loss})
					n.Link(at[1], at[0], simnet.Link{Latency: rigLatency, Loss: loss})
					var regions [2]*dgrdma.Region
					var conns [2]*dgrdma.Conn
					for i := range 2 {
						regions[i], _ = dgrdma.NewRegion(rigMemory)
						ep, err := dgrdma.New(n.Attach(at[i], simnet.Config{MTU: 1500}), &dgrdma.Config{
							ID: frame.EndpointID(1 + i), Memory: regions[i], GiveUp: time.Minute,
						})
						if err != nil {
							t.Fatal(err)
						}
						defer ep.Close()
						p := dgrdma.Legacy(false)
						if conns[i], err = ep.Connect(dgrdma.Peer{ID: frame.EndpointID(2 - i), Addr: at[1-i], Size: rigMemory, Profile: &p}); err != nil {
							t.Fatal(err)
						}
					}
					failed := make(chan error, 2)
					for i := range 2 {
						go func() {
							for k := range 3 {
								if err := conns[i].Write(context.Background(), &dgrdma.Transaction{
									Segments: []dgrdma.Segment{{Addr: rigData, Bytes: rigPattern(k, 300_000)}}, Completion: dgrdma.Word(0, 1),
								}); err != nil {
									failed <- fmt.Errorf("end %d: %w; %+v", i, err, conns[i].Stats())
									return
								}
								if !bytes.Equal(regions[1-i].Bytes()[rigData:rigData+300_000], rigPattern(k, 300_000)) {
									failed <- fmt.Errorf("end %d: memory differs", 1-i)
									return
								}
							}
							failed <- nil
						}()
					}
					began := time.Now()
					for range 2 {
						if err := <-failed; err != nil {
							t.Fatal(err)
						}
					}
					t.Log("took", time.Since(began))
				})
			})
		}
	}
}

package endpoint_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

func TestWriteOverLossyLink(t *testing.T) {
	for _, loss := range []float64{0, 0.01, 0.1, 0.4} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				aAddr, bAddr := transport.SimAddr(1), transport.SimAddr(2)
				ra, _ := endpoint.NewRegion(1 << 20)
				rb, _ := endpoint.NewRegion(1 << 20)
				ev := func(who string) func(endpoint.Event) {
					return func(e endpoint.Event) { t.Log(who, e.Kind, e.Peer, e.Reason, e.Err) }
				}
				a, err := endpoint.New(n.Attach(aAddr, simnet.Config{}), &endpoint.Config{ID: 1, Memory: ra, OnEvent: ev("a")})
				if err != nil {
					t.Fatal(err)
				}
				b, err := endpoint.New(n.Attach(bAddr, simnet.Config{}), &endpoint.Config{ID: 2, Memory: rb, OnEvent: ev("b")})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				defer b.Close()
				l := simnet.Link{Latency: 100 * time.Microsecond, Loss: loss, Rate: 1e9, Queue: 300}
				n.Link(aAddr, bAddr, l)
				n.Link(bAddr, aAddr, l)
				ca, err := a.Connect(endpoint.Peer{ID: 2, Addr: bAddr, Size: rb.Size()})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.Connect(endpoint.Peer{ID: 1, Addr: aAddr}); err != nil {
					t.Fatal(err)
				}
				data := bytes.Repeat([]byte("0123456789abcdef"), 50000)
				start := time.Now()
				for i := range 20 {
					tx := &endpoint.Transaction{Segments: []endpoint.Segment{{Addr: 16, Bytes: data}}, CompletionAddr: 0, CompletionValue: uint32(i + 1)}
					if err := ca.Write(context.Background(), tx); err != nil {
						t.Fatal(i, err)
					}
					if rb.Load32(0) != uint32(i+1) || !bytes.Equal(rb.Bytes()[16:16+len(data)], data) {
						t.Fatal("memory differs")
					}
				}
				t.Log(time.Since(start), 20*len(data))
				t.Logf("%+v", ca.Stats())
			})
		})
	}
}

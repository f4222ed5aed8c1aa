package simnet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// exchange returns a function that sends a batch from A and receives it at B.
func exchange(tb testing.TB, size, count int, l simnet.Link) func() {
	n := simnet.New(1)
	tb.Cleanup(func() { n.Close() })
	a, b := n.Attach(addrA, simnet.Config{}), n.Attach(addrB, simnet.Config{})
	n.Link(addrA, addrB, l)
	batch := make([]transport.Outgoing, count)
	for i := range batch {
		batch[i] = outgoing(a, addrB, make([]byte, size))
	}
	dst := make([]transport.Datagram, count)
	return func() {
		if _, err := a.Send(batch); err != nil {
			tb.Fatal(err)
		}
		for got := 0; got < count; {
			n, err := b.Recv(dst, transport.Forever)
			if err != nil {
				tb.Fatal(err)
			}
			got += n
		}
	}
}

func TestZeroAllocs(t *testing.T) {
	for name, l := range map[string]simnet.Link{
		"Perfect": {},
		"Script":  {Script: func(int, []byte) simnet.Verdict { return simnet.Deliver() }},
	} {
		t.Run(name, func(t *testing.T) {
			turn := exchange(t, 1490, 32, l)
			if got := fixture.Allocations(1000, turn); got != 0 {
				t.Errorf("%v allocations per batch", got)
			}
		})
	}
}

// BenchmarkExchange moves batches of 32 within one goroutine.
func BenchmarkExchange(b *testing.B) {
	for _, bm := range []struct {
		name string
		link simnet.Link
	}{
		{"Perfect", simnet.Link{}},
		{"Faults", simnet.Link{Duplicate: 1e-9}}, // the long way, without delay
		{"Latency", simnet.Link{Latency: time.Nanosecond}},
	} {
		for _, size := range []int{64, 1490} {
			b.Run(fmt.Sprintf("%s/%d", bm.name, size), func(b *testing.B) {
				turn := exchange(b, size, 32, bm.link)
				b.ReportAllocs()
				b.SetBytes(int64(32 * size))
				for b.Loop() {
					turn()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(32*b.N), "ns/datagram")
			})
		}
	}
}

// BenchmarkPingPong wakes a goroutine for every datagram.
func BenchmarkPingPong(b *testing.B) {
	n := simnet.New(1)
	defer n.Close()
	x, y := n.Attach(addrA, simnet.Config{}), n.Attach(addrB, simnet.Config{})
	go func() {
		dst := make([]transport.Datagram, 1)
		back := []transport.Outgoing{outgoing(y, addrA, make([]byte, 64))}
		for {
			if _, err := y.Recv(dst, transport.Forever); err != nil {
				return
			}
			if _, err := y.Send(back); err != nil {
				return
			}
		}
	}()
	dst := make([]transport.Datagram, 1)
	batch := []transport.Outgoing{outgoing(x, addrB, make([]byte, 64))}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Send(batch); err != nil {
			b.Fatal(err)
		}
		if _, err := x.Recv(dst, transport.Forever); err != nil {
			b.Fatal(err)
		}
	}
}

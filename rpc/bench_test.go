package rpc

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// BenchmarkNull measures NULL calls on the loopback interface, so many at once.
func BenchmarkNull(b *testing.B) {
	for _, transport := range []string{"tcp", "rdma"} {
		for _, atOnce := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d", transport, atOnce), func(b *testing.B) {
				benchmark(b, transport, atOnce, func(ctx context.Context, p *Binding) error { return p.Call(ctx, 0, nil, nil, nil) })
			})
		}
	}
}

// BenchmarkEcho measures calls with an item that comes back. Over RDMA the server uses the caller's memory.
func BenchmarkEcho(b *testing.B) {
	for _, transport := range []string{"tcp", "rdma"} {
		for _, size := range []int{4 << 10, 1 << 20} {
			for _, atOnce := range []int{1, 16} {
				b.Run(fmt.Sprintf("%s/%d/%d", transport, size, atOnce), func(b *testing.B) { benchmarkEcho(b, transport, size, atOnce) })
			}
		}
	}
}

func benchmarkEcho(b *testing.B, transport string, size, atOnce int) {
	b.SetBytes(int64(size))
	type buffers struct {
		args, results data
		o             CallOptions
	}
	pool := sync.Pool{New: func() any {
		return &buffers{args: data{b: make([]byte, size)}, o: CallOptions{Into: make([]byte, size), Direct: true}}
	}}
	benchmark(b, transport, atOnce, func(ctx context.Context, p *Binding) error {
		v := pool.Get().(*buffers)
		defer pool.Put(v)
		return p.Call(ctx, procEcho, &v.args, &v.results, &v.o)
	})
}

func benchmark(b *testing.B, transport string, atOnce int, call func(ctx context.Context, p *Binding) error) {
	serve := serve
	if transport == "rdma" {
		serve = serveRDMA
	}
	_, address := serve(b, &service{}, nil)
	p := dial(b, address, nil).Bind(testProgram, None)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			for range (b.N + i) / atOnce {
				if err := call(ctx, p); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

package rpc

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// BenchmarkNull measures NULL calls over TCP on the loopback interface, so many at once.
func BenchmarkNull(b *testing.B) {
	for _, atOnce := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(atOnce), func(b *testing.B) {
			benchmark(b, atOnce, func(ctx context.Context, p *Binding) error { return p.Call(ctx, 0, nil, nil, nil) })
		})
	}
}

// BenchmarkEcho measures calls with an item that comes back.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		for _, atOnce := range []int{1, 16} {
			b.Run(fmt.Sprintf("%d/%d", size, atOnce), func(b *testing.B) {
				b.SetBytes(int64(size))
				var pool sync.Pool
				type buffers struct {
					args, results data
					o             CallOptions
				}
				pool.New = func() any {
					return &buffers{args: data{b: make([]byte, size)}, o: CallOptions{Into: make([]byte, size)}}
				}
				benchmark(b, atOnce, func(ctx context.Context, p *Binding) error {
					v := pool.Get().(*buffers)
					defer pool.Put(v)
					return p.Call(ctx, procEcho, &v.args, &v.results, &v.o)
				})
			})
		}
	}
}

func benchmark(b *testing.B, atOnce int, call func(ctx context.Context, p *Binding) error) {
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

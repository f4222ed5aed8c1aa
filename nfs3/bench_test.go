package nfs3_test

import (
	"sync/atomic"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// BenchmarkRead reads 4 KiB and 1 MiB at once from memory over TCP, 16 calls at a time.
func BenchmarkRead(b *testing.B) {
	m := localfs.NewMemory(nil)
	root, _ := m.Root(b.Context())
	f, _, err := m.Create(b.Context(), nil, root.Handle, "f", &nfs3.CreateHow{})
	if err != nil {
		b.Fatal(err)
	}
	if _, _, err := m.Write(b.Context(), nil, f.Handle, make([]byte, 1<<20), 0, nfs3.Unstable); err != nil {
		b.Fatal(err)
	}
	c := dial(b, serve(b, m, &nfs3.ServerOptions{Squash: nfs3.SquashNone}), "/")
	for name, size := range map[string]int{"4KiB": 4096, "1MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.SetParallelism(8)
			b.ReportAllocs()
			var failed atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				dst := make([]byte, size)
				for pb.Next() {
					if n, _, err := c.Read(b.Context(), nil, f.Handle, dst, 0); err != nil || n != size {
						failed.Add(1)
					}
				}
			})
			if failed.Load() > 0 {
				b.Errorf("%d reads failed", failed.Load())
			}
		})
	}
}

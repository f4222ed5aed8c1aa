package memory_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// BenchmarkFind is what each segment with a STag costs: 100,000 regions, each time another one.
func BenchmarkFind(b *testing.B) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	bytes := make([]byte, 4096)
	stags := make([]uint32, 100_000)
	for i := range stags {
		stags[i] = register(b, domain, bytes, memory.RemoteWrite, nil).STag()
	}
	touch := func(b *testing.B, stag uint32) {
		span, v := stream.Find(stag, 16, 1024, memory.RemoteWrite)
		if v != memory.None || !span.Enter() {
			b.Error(v)
			return
		}
		span.Leave()
	}
	b.Run("one region", func(b *testing.B) {
		for b.Loop() {
			touch(b, stags[0])
		}
	})
	b.Run("any region", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i = (i + 1) % len(stags)
			touch(b, stags[i])
		}
	})
	b.Run("8 goroutines", func(b *testing.B) {
		b.SetParallelism(4) // times two processors
		b.RunParallel(func(p *testing.PB) {
			i := rand.IntN(len(stags)) // streams have memory of their own
			for p.Next() {
				i = (i + 7) % len(stags)
				touch(b, stags[i])
			}
		})
	})
}

func BenchmarkRegister(b *testing.B) {
	domain := memory.NewTable().NewDomain()
	for range 100_000 {
		register(b, domain, nil, 0, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		register(b, domain, nil, 0, nil).Invalidate()
	}
}

func BenchmarkFetchAdd(b *testing.B) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	stag := register(b, domain, words(1), memory.RemoteAtomic, nil).STag()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stream.FetchAdd(stag, 0, 1, 1<<31); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReregister(b *testing.B) {
	domain := memory.NewTable().NewDomain()
	bytes := make([]byte, 4096)
	r := register(b, domain, bytes, memory.RemoteWrite, nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Reregister(bytes, memory.RemoteWrite, 0); err != nil {
			b.Fatal(err)
		}
	}
}

package link

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"
)

// BenchmarkStream writes a stream of bytes over a network in memory: the cost of links, of
// the engine, and of three copies. Everything runs on one core.
func BenchmarkStream(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const size = 256 << 10
	n := newNet(b, 0)
	n.clean = true
	_, _, out, in := pair(b, n, nil, nil)
	data, rest := make([]byte, size), make([]byte, size)
	b.SetBytes(size)
	read := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{in.In}, rest)
		read <- err
	}()
	for b.Loop() {
		if _, err := out.Out.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Out.Close(); err != nil {
		b.Fatal(err)
	}
	if err := <-read; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMessages sends messages, each in a buffer of its own.
func BenchmarkMessages(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, size := range []int{64, 16 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			n := newNet(b, 0)
			n.clean = true
			got := 0
			over := make(chan struct{})
			_, _, out, _ := pair(b, n, nil, &Options{Buffers: 64, Size: 16 << 10, Handle: func(_ *Link, m Message) {
				if got += len(m.Bytes); m.EOF {
					close(over)
				}
			}})
			data := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := out.Out.Send(context.Background(), 0, data); err != nil {
					b.Fatal(err)
				}
			}
			if err := out.Out.Close(); err != nil {
				b.Fatal(err)
			}
			<-over
			if got != b.N*size {
				b.Fatalf("%d bytes of %d messages of %d", got, b.N, size)
			}
		})
	}
}

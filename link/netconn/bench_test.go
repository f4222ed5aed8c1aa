package netconn

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// ends is the two ends of a connection, and a function that makes another one.
type ends struct {
	to   io.Writer
	from io.Reader
	back io.Writer
	here io.Reader
	more func() (dialed, accepted io.ReadWriteCloser)
}

// ways returns what is measured: connections, the link alone, and TCP.
func ways(opt Options) map[string]func(b *testing.B) ends {
	of := func(b *testing.B, l net.Listener, dial func() (net.Conn, error)) ends {
		more := func() (x, y io.ReadWriteCloser) {
			came := make(chan net.Conn)
			go func() {
				c, err := l.Accept()
				if err != nil {
					b.Error(err)
				}
				came <- c
			}()
			c, err := dial()
			if err != nil {
				b.Fatal(err)
			}
			return c, <-came
		}
		x, y := more()
		b.Cleanup(func() { x.Close(); y.Close() })
		return ends{x, y, y, x, more}
	}
	return map[string]func(b *testing.B) ends{
		"netconn": func(b *testing.B) ends {
			l := listen(b, open(b, nil), "port", &opt)
			d := &Dialer{Host: open(b, nil), Options: opt}
			return of(b, l, func() (net.Conn, error) { return d.Dial(Network, l.Addr().String()) })
		},
		"tcp": func(b *testing.B) ends {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { l.Close() })
			return of(b, l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
		},
		"link": func(b *testing.B) ends {
			there, here, ctx := open(b, nil), open(b, nil), context.Background()
			o := &link.Options{Directions: link.Both}
			l, err := there.Listen("port", o)
			if err != nil {
				b.Fatal(err)
			}
			came := make(chan *link.Link)
			go func() {
				x, err := l.Accept(ctx)
				if err != nil {
					b.Error(err)
				}
				came <- x
			}()
			x, err := here.Dial(ctx, there.URL(), "port", o)
			if err != nil {
				b.Fatal(err)
			}
			y := <-came
			return ends{to: x.Out, from: y.In, back: y.Out, here: x.In}
		},
	}
}

// BenchmarkStream copies by Write and Read, 32 KiB at a time, as io.Copy does where neither side has a
// shorter way.
func BenchmarkStream(b *testing.B) {
	for _, opt := range []Options{{}, {Buffers: 16, Size: 16 << 10}, {Buffers: 64, Size: 64 << 10}} {
		for name, way := range ways(opt) {
			if opt != (Options{}) && name != "netconn" {
				continue
			}
			shape := ""
			if opt.Buffers > 0 {
				shape = fmt.Sprintf(" %d of %d", opt.Buffers, opt.Size)
			}
			b.Run(name+shape, func(b *testing.B) {
				e := way(b)
				const size = 32 << 10
				data, got := make([]byte, size), make([]byte, size)
				b.SetBytes(size)
				b.ReportAllocs()
				over := make(chan error, 1)
				n := 0
				b.ResetTimer()
				go func() {
					for n < b.N*size {
						k, err := e.from.Read(got)
						if n += k; err != nil {
							over <- err
							return
						}
					}
					over <- nil
				}()
				for range b.N {
					if _, err := e.to.Write(data); err != nil {
						b.Fatal(err)
					}
				}
				if err := <-over; err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkRoundTrip sends 64 bytes there and back.
func BenchmarkRoundTrip(b *testing.B) {
	for name, way := range ways(Options{}) {
		b.Run(name, func(b *testing.B) {
			e := way(b)
			data, got := make([]byte, 64), make([]byte, 64)
			go func() {
				b := make([]byte, 64)
				for {
					if _, err := io.ReadFull(e.from, b); err != nil {
						return
					}
					if _, err := e.back.Write(b); err != nil {
						return
					}
				}
			}()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				e.to.Write(data)
				if _, err := io.ReadFull(e.here, got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkShort makes a connection, sends a request and its answer, and closes it.
func BenchmarkShort(b *testing.B) {
	for name, way := range ways(Options{}) {
		if name == "link" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			e := way(b)
			data := make([]byte, 1000)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				x, y := e.more()
				x.Write(data)
				io.ReadFull(y, data)
				y.Write(data)
				y.Close()
				if n, err := io.Copy(io.Discard, x); n != 1000 || err != nil {
					b.Fatal(n, err)
				}
				x.Close()
			}
		})
	}
}

// TestNoAllocation checks that what is read and written in the steady state, with a deadline for each
// call, allocates nothing.
func TestNoAllocation(t *testing.T) {
	x, y := pair(t)
	go io.CopyBuffer(struct{ io.Writer }{y}, struct{ io.Reader }{y}, make([]byte, 1000))
	data, got := make([]byte, 1000), make([]byte, 1000)
	turn := func() {
		x.SetDeadline(time.Now().Add(time.Minute))
		x.Write(data)
		if _, err := io.ReadFull(x, got); err != nil {
			t.Error(err)
		}
	}
	for range 200 { // buffers and slots are made as they are needed
		turn()
	}
	most := uint64(0)
	if fixture.Race {
		most = 4 // the detector has a sync.Pool, as of the engine's slabs, lose a part of what it is given
	}
	if n := fixture.Allocations(500, turn); n > most {
		t.Errorf("%v allocations for a write and a read", n)
	}
}

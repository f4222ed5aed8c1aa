package ether_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// BenchmarkSend compares the ways in which frames leave, by what a frame takes of the processor until it is
// in the receiver's ring.
func BenchmarkSend(b *testing.B) {
	for _, c := range []struct{ mtu, size, batch int }{{1500, 64, 1}, {1500, 64, 64}, {1500, 1500, 64}, {9000, 9000, 64}} {
		for _, way := range []string{"calls", "xdp"} {
			b.Run(fmt.Sprintf("%d/%d/%s", c.size, c.batch, way), func(b *testing.B) {
				cable(b, c.mtu)
				from := listen(b, ether.Config{Interface: "d0", NoXDP: way == "calls", NeedXDP: way == "xdp"})
				at := listen(b, ether.Config{Interface: "d1", NoXDP: true})
				batch := make([]transport.Outgoing, c.batch)
				to := new(at.LocalAddr())
				const header = 36
				memory := make([]byte, 4<<20)
				for i := range batch {
					f := frame(1, header, byte(i))
					batch[i] = transport.Outgoing{To: to, Buf: f}
				}
				in := make([]transport.Datagram, 64)
				b.SetBytes(int64(c.size * c.batch))
				began := threadTime(b)
				b.ReportAllocs()
				next := 0
				for b.Loop() {
					for i := range batch {
						batch[i].Rest = memory[next : next+c.size-header]
						if next += c.size - header; next+c.size > len(memory) {
							next = 0
						}
					}
					if _, err := from.Send(batch); err != nil {
						b.Fatal(err)
					}
					for got := 0; got < len(batch); {
						n, err := at.Recv(in, transport.Forever)
						if err != nil {
							b.Fatal(err)
						}
						got += n
					}
				}
				b.ReportMetric(float64(threadTime(b)-began)/float64(b.N*c.batch), "cpu-ns/frame")
			})
		}
	}
}

// threadTime returns the processor time of this thread, in nanoseconds.
func threadTime(b *testing.B) int64 {
	var u unix.Rusage
	check(b, unix.Getrusage(unix.RUSAGE_THREAD, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

package mpa

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// memorySize is what messages are taken from and put into, one after the other: more than caches hold.
const memorySize = 64 << 20

// stock is a source of Writes that go through memory in steps, and place a sink for them.
type stock struct {
	data []byte
	size int
	at   int
	span [1]ddp.Span
	left int
	sent int
}

func (s *stock) Begin()     {}
func (s *stock) End()       {}
func (s *stock) Sent(n int) { s.sent += n }
func (s *stock) Next(m *ddp.Message) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	if s.at+s.size > len(s.data) {
		s.at = 0
	}
	m.Header = ddp.Header{Tagged: true, Control: 0x40, STag: 0x100, TO: uint64(s.at)}
	m.InlineSize = 0
	s.span[0].Bytes = s.data[s.at:][:s.size]
	m.Data = s.span[:]
	m.Length = uint32(s.size)
	s.at += s.size
	return true
}

type place struct {
	memory []byte
	left   int
}

func (p *place) Begin() {}
func (p *place) End()   {}
func (p *place) Place(h *ddp.Header, n int) (ddp.Span, error) {
	return ddp.Span{Bytes: p.memory[h.TO:][:n]}, nil
}
func (p *place) Deliver(*ddp.Header, uint32) error { p.left--; return nil }

// Frames to our own kind are long; those to others fit in a segment of the path, here one of
// Ethernet's, which plain TCP then has as well.
func BenchmarkWrite(b *testing.B) {
	for _, long := range []bool{true, false} {
		for _, size := range []int{1 << 20, 64 << 10, 4096, 64} {
			for _, crc := range []bool{false, true} {
				b.Run(fmt.Sprintf("long=%v/size=%d/crc=%v", long, size, crc), func(b *testing.B) {
					a, z := tcpPair(b, path(long))
					ca, cz := open(b, a, z, &Options{NoCRC: !crc, Strict: !long}, &Options{NoCRC: true})
					benchmark(b, ca, cz, size)
				})
			}
		}
	}
}

func path(long bool) int {
	if long {
		return 0
	}
	return ethernet
}

func benchmark(b *testing.B, ca, cz *Conn, size int) {
	src := &stock{data: pattern(memorySize, 1), size: size, left: b.N}
	sink := &place{memory: pattern(memorySize, 2), left: b.N}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	defer processor(b)()
	done := make(chan error, 1)
	go func() { done <- drain(ca, src) }()
	for sink.left > 0 {
		if err := cz.Receive(sink); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// processor begins the measurement; what it returns reports the processor time of both ends and the kernel, which
// says more than the clock when others use the machine.
func processor(b *testing.B) func() {
	used := func() int64 {
		var u unix.Rusage
		unix.Getrusage(unix.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	b.ResetTimer()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkTCP is the same megabytes in a plain stream; as records, each in a segment of its own as towards
// strangers with CRC, without anything around them.
func BenchmarkTCP(b *testing.B) {
	const size = 1 << 20
	for _, c := range []struct {
		name string
		mss  int
		send func(*net.TCPConn, []byte) error
	}{
		{"long=true", 0, func(a *net.TCPConn, p []byte) error { _, err := a.Write(p); return err }},
		{"long=false", ethernet, func(a *net.TCPConn, p []byte) error { _, err := a.Write(p); return err }},
		{"records", ethernet, sendRecords},
	} {
		b.Run(c.name, func(b *testing.B) {
			a, z := tcpPair(b, c.mss)
			from, to := pattern(memorySize, 1), pattern(memorySize, 2)
			b.SetBytes(size)
			defer processor(b)()
			go func() {
				for i := range b.N {
					if c.send(a, from[i*size%memorySize:][:size]) != nil {
						return
					}
				}
			}()
			for i := range b.N {
				if _, err := io.ReadFull(z, to[i*size%memorySize:][:size]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func sendRecords(a *net.TCPConn, p []byte) error {
	raw, err := a.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	r := new(records)
	err = raw.Write(func(fd uintptr) bool {
		for len(p) > 0 {
			r.n = 0
			for rest := p; r.n < maxRecords && len(rest) > 0; {
				n := min(1448, len(rest))
				r.add(rest[:n])
				rest = rest[n:]
			}
			n, e := r.send(fd)
			if e == unix.EAGAIN {
				return false
			}
			if e != 0 {
				failed = e
				return true
			}
			p = p[n:]
		}
		return true
	})
	return errors.Join(err, failed)
}

package rdmap_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// framed is package mpa as the carrier of a pair, over a socket that has at one end at once what the other end
// wrote.
type framed struct {
	t    *testing.T
	conn map[*side]*mpa.Conn
	fd   map[*side]int
	over map[*side]bool // nothing more is received
}

// driven is a side as package mpa knows it: nobody else calls it meanwhile.
type driven struct{ *side }

func (d driven) Begin() {}
func (d driven) End()   {}

func (d driven) Next(m *ddp.Message) bool {
	if !d.side.Next(m) {
		return false
	}
	b := append([]byte(nil), m.Inline[:m.InlineSize]...)
	for _, s := range m.Data {
		b = append(b, s.Bytes...)
	}
	d.leaves(&m.Header, b)
	return true
}

func newFramed(p *pair, c carrier) *framed {
	p.t.Helper()
	f := &framed{t: p.t, conn: make(map[*side]*mpa.Conn), fd: make(map[*side]int), over: make(map[*side]bool)}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	var nc [2]net.Conn
	for i, fd := range ends {
		file := os.NewFile(uintptr(fd), fmt.Sprint("end ", i))
		if nc[i], err = net.FileConn(file); err != nil {
			p.t.Fatal(err)
		}
		file.Close()
	}
	o := &mpa.Options{NoCRC: !c.crc, Strict: !c.long, IRD: 1, ORD: 1}
	answered := make(chan error, 1)
	go func() {
		request, err := mpa.Await(context.Background(), nc[1], 0)
		if err == nil {
			f.conn[p.b], err = request.Accept(context.Background(), o)
		}
		answered <- err
	}()
	initiator, err := mpa.Initiate(context.Background(), nc[0], o)
	if late := <-answered; err != nil || late != nil {
		p.t.Fatal(err, late)
	}
	f.conn[p.a] = initiator
	for i, s := range []*side{p.a, p.b} {
		raw, err := nc[i].(*net.UnixConn).SyscallConn()
		if err != nil {
			p.t.Fatal(err)
		}
		raw.Control(func(fd uintptr) { f.fd[s] = int(fd) })
		if agreed := f.conn[s].Agreed(); agreed.CRC != c.crc || agreed.Long != c.long {
			p.t.Fatalf("%s: agreed on %+v, want %v", s.name, agreed, c)
		}
	}
	p.t.Cleanup(f.close)
	return f
}

func (f *framed) close() {
	for _, c := range f.conn {
		c.Close()
	}
}

// take moves what a side has to its socket.
func (f *framed) take(s *side) bool {
	before := len(s.wire)
	if _, err := f.conn[s].Send(driven{s}); err != nil {
		f.t.Fatalf("%s: %v", s.name, err)
	}
	return len(s.wire) > before
}

// move gives a side some of what its socket has.
func (f *framed) move(to *side) (bool, error) {
	if n, err := unix.IoctlGetInt(f.fd[to], unix.SIOCINQ); err != nil || n == 0 || f.over[to] {
		return false, err
	}
	err := f.conn[to].Receive(driven{to})
	f.over[to] = err != nil
	return true, err
}

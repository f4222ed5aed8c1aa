package mpa

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// mapped is a file in memory.
func mapped(t *testing.T, size int) (f *os.File, mem []byte) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err == nil {
		t.Cleanup(func() { f.Close() })
		err = f.Truncate(int64(size))
	}
	if err == nil {
		mem, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return f, mem
}

// TestMemoryLostWhileSending cuts the file under memory of which the peer has the beginning of a frame, and checks that the connection is
// aborted (F1).
func TestMemoryLostWhileSending(t *testing.T) {
	for _, k := range kinds {
		a, b := k.pair(t)
		ca, cb := open(t, a, b, &Options{NoCRC: true}, &Options{NoCRC: true})
		if ca.Blocks() {
			continue // all is copied before it is sent
		}
		f, mem := mapped(t, 40<<20)
		g := &gate{}
		m := outgoing(write(1, 0, mem), 0)
		m.Data[0].Guard = g
		src := &listSource{t: t, list: []ddp.Message{m}}
		for p := Busy; p != Blocked; {
			var err error
			if p, err = ca.Send(src); err != nil || p == Idle {
				t.Fatal(k.name, p, err)
			}
		}
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		sink := newSink(t)
		received := receiving(cb, sink)
		err := flushAll(ca, src)
		var lost *ddp.LostError
		if !errors.As(err, &lost) || !errors.Is(err, ddp.Lost) || lost.Received || lost.Behind != 0 || lost.Span.Guard != ddp.Guard(g) || src.sent != 0 || g.in != 0 {
			t.Errorf("%s: %v, %+v, %d sent, %d inside", k.name, err, lost, src.sent, g.in)
		}
		if err := <-received; err == io.EOF || !errors.Is(err, ddp.Lost) || len(sink.got) != 0 {
			t.Errorf("%s: the peer sees %v, and gets %d messages", k.name, err, len(sink.got))
		}
		if _, again := ca.Send(src); again != err {
			t.Errorf("%s: afterwards %v", k.name, again)
		}
	}
}

// TestWhichMemoryIsLost checks that of several messages in a batch the one is named whose memory is lost, and where (F1).
func TestWhichMemoryIsLost(t *testing.T) {
	f, mem := mapped(t, 1<<20)
	for _, long := range []int{0, 4000} {
		for at := range 4 {
			if err := f.Truncate(1 << 20); err != nil {
				t.Fatal(err)
			}
			var list []ddp.Message
			for i := range 4 {
				payload := pattern(10000, i)
				if i == at {
					payload = mem[:20000]
				}
				list = append(list, outgoing(write(1, 0, payload), 0))
			}
			c := &Conn{}
			c.out, c.framer.segment = batches.Get().(*batch), long
			src := &listSource{t: t, list: list}
			src.Begin()
			if dry, err := c.framer.fill(c.out, src); err != nil || !dry && long == 0 {
				t.Fatal(dry, err)
			}
			if err := f.Truncate(4096); err != nil {
				t.Fatal(err)
			}
			e := c.lostPiece()
			where := uintptr(unsafe.Pointer(&e.Span.Bytes[e.At])) - uintptr(unsafe.Pointer(&mem[0]))
			if want := src.next - 1 - at; e.Behind != want || where < 4096 || where >= 20000 {
				t.Errorf("segments of %d, message %d: octet %d, %d behind, want %d", long, at, where, e.Behind, want)
			}
		}
	}
}

// enterer is a guard that calls f when it is entered for the nth time.
type enterer struct {
	gate
	n int
	f func()
}

func (g *enterer) Enter(epoch uint64) bool {
	if g.n--; g.n == 0 {
		g.f()
	}
	return g.gate.Enter(epoch)
}

// TestMemoryLostWhileBuilt cuts a file while a batch is built, so that neither the frame being built nor those before it can be sent, and
// checks which message is named (F1).
func TestMemoryLostWhileBuilt(t *testing.T) {
	f, mem := mapped(t, 1<<20)
	for _, c := range []struct {
		name   string
		before []byte // of a message before, in the batch
		behind int
	}{
		{"one message", nil, 0},
		{"two messages", mem[900000:950000], 1},
	} {
		if err := f.Truncate(1 << 20); err != nil {
			t.Fatal(err)
		}
		g := &enterer{n: 2, f: func() { f.Truncate(0) }}
		var list []ddp.Message
		if c.before != nil {
			list = append(list, outgoing(write(1, 0, c.before), 0))
		}
		list = append(list, outgoing(write(1, 0, mem[:200000]), 0))
		for i := range list {
			list[i].Data[0].Guard = g
		}
		a, b := tcpPair(t, 0)
		ca, _ := open(t, a, b, &Options{NoCRC: true}, &Options{NoCRC: true})
		src := &listSource{t: t, list: list}
		_, err := ca.Send(src)
		var lost *ddp.LostError
		if !errors.As(err, &lost) || !errors.Is(err, ddp.Lost) || lost.Behind != c.behind || g.in != 0 {
			t.Errorf("%s: %v, %+v, want %d behind; %d inside", c.name, err, lost, c.behind, g.in)
		}
	}
}

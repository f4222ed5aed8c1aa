package rpc

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/xdr"
)

// slowTCP returns the two ends of a connection over TCP that has little room for what its peer has not taken.
func slowTCP(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	here, there = nc.(*net.TCPConn), other.(*net.TCPConn)
	here.SetWriteBuffer(64 << 10)
	there.SetReadBuffer(64 << 10)
	return here, there
}

// TestCancelDuringSlowWrite checks that a call whose context ends while its arguments are being written ends no connection whose server
// takes them, however long all of them take.
func TestCancelDuringSlowWrite(t *testing.T) {
	t.Parallel()
	here, there := slowTCP(t)
	c := NewClient(here, nil)
	defer c.Close()
	b := c.Bind(testProgram, None)
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	ended := begin(func() error { return b.Call(ctx, procEcho, &data{b: make([]byte, 4<<20)}, nil, nil) })
	part := make([]byte, 64<<10)
	if _, err := there.Read(part[:1]); err != nil { // the write is in progress
		t.Fatal(err)
	}
	cancel()
	for time.Since(began) < 3*patience {
		if _, err := there.Read(part); err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(patience / 8)
	}
	go func() {
		for err := error(nil); err == nil; {
			_, err = there.Read(part)
		}
	}()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCancelDuringStuckWrite checks that a call whose context ends while its arguments are being written returns where the server takes nothing
// more, over TCP as well.
func TestCancelDuringStuckWrite(t *testing.T) {
	t.Parallel()
	here, there := slowTCP(t)
	c := NewClient(here, nil)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := begin(func() error {
		return c.Bind(testProgram, None).Call(ctx, procEcho, &data{b: make([]byte, 4<<20)}, nil, nil)
	})
	if _, err := there.Read(make([]byte, 1)); err != nil { // the write is in progress
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWithdrawTakesNoMemory checks that withdraw takes none where it waits for a write, as it does after many calls on a busy machine: the reply
// is faster than the goroutine that wrote the call.
func TestWithdrawTakesNoMemory(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector takes memory")
	}
	here, _ := slowTCP(t)
	var s sender
	s.init(here)
	m := &outgoing{items: []xdr.Item{{}}}
	ended := make(chan bool)
	withdraw := func() { ended <- s.withdraw(m) }
	wait := func() {
		m.state = writing
		go withdraw()
		for waits := 0; waits == 0; {
			runtime.Gosched()
			s.mu.Lock()
			waits = s.stuck.waits
			s.mu.Unlock()
		}
		s.mu.Lock()
		m.state = written
		s.change.Broadcast()
		s.mu.Unlock()
		<-ended
	}
	wait()
	if n := testing.AllocsPerRun(100, wait); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSlowReply checks that a server ends no connection whose client takes a reply, however long all of it takes.
func TestSlowReply(t *testing.T) {
	t.Parallel()
	here, there := slowTCP(t)
	s := NewServer(nil)
	defer s.Close()
	c := newServerConn(s, here)
	c.sender.put(&outgoing{inline: make([]byte, 4<<20)})
	written := make(chan struct{})
	go func() {
		c.sender.flush()
		close(written)
	}()
	part := make([]byte, 64<<10)
	now := time.Now()
	for range 5 {
		for before := c.sender.taken(); c.sender.taken() == before; { // there may be room for what is read
			if _, err := there.Read(part); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(writeTime * 2 / 3)
		c.look(now)
		if err := c.reason(); err != nil {
			t.Fatal(err)
		}
	}
	c.close(errDraining)
	<-written
}

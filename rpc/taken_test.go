package rpc

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
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
	if n := fixture.Allocations(100, wait); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// below is a connection above one over TCP, as that of TLS is.
type below struct{ net.Conn }

func (c below) NetConn() net.Conn { return c.Conn }

// TestTaken checks that over TCP, and above it, what the peer has acknowledged is counted, and over other connections the writes.
func TestTaken(t *testing.T) {
	here, _ := slowTCP(t)
	for name, x := range map[string]struct {
		conn  net.Conn
		acked bool
	}{"TCP": {here, true}, "above TCP": {below{here}, true}, "another one": {&stuckConn{}, false}, "above another one": {below{&stuckConn{}}, false}} {
		var s sender
		s.init(x.conn)
		before := s.taken()
		s.writes.Add(1)
		if now := s.taken(); now.writes != before.writes+1 {
			t.Errorf("%s: %d writes, then %d", name, before.writes, now.writes)
		}
		if x.acked {
			if _, err := here.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			waitFor(t, name+": the acknowledgement", func() bool { return s.taken().octets >= before.octets+1000 })
		} else if n := s.taken().octets; n != 0 {
			t.Errorf("%s: %d octets", name, n)
		}
	}
}

// stuckConn is a connection of which only the end is noted.
type stuckConn struct {
	net.Conn
	closed chan struct{}
}

func (c *stuckConn) Close() error {
	close(c.closed)
	return nil
}

// TestPatience checks when withdraw ends a connection whose peer takes nothing: as long after the first of those that wait as patience is, however many begin or end to wait in the
// meantime, and as long again if the peer takes something. It ends none for which nothing waits.
func TestPatience(t *testing.T) {
	const ms = time.Millisecond
	type moment struct {
		at    time.Duration
		begin int // which one begins to wait
		end   int // the write of which ends
		takes bool
	}
	for name, x := range map[string]struct {
		script []moment
		end    time.Duration // of the connection; 0: it does not end
	}{
		"one waits":                         {[]moment{{begin: 1}}, patience},
		"others begin to wait":              {[]moment{{begin: 1}, {at: 300 * ms, begin: 2}, {at: 600 * ms, begin: 3}, {at: 900 * ms, begin: 4}}, patience},
		"the first one ends":                {[]moment{{begin: 1}, {at: 300 * ms, begin: 2}, {at: 600 * ms, end: 1}}, patience},
		"all but one end":                   {[]moment{{begin: 1}, {begin: 2}, {begin: 3}, {at: 100 * ms, end: 2}, {at: 200 * ms, end: 1}}, patience},
		"all end":                           {[]moment{{begin: 1}, {begin: 2}, {at: 100 * ms, end: 2}, {at: 900 * ms, end: 1}}, 0},
		"all end, and another one waits":    {[]moment{{begin: 1}, {at: 900 * ms, end: 1}, {at: 5000 * ms, begin: 2}}, 5*time.Second + patience},
		"one ends at once, and another one": {[]moment{{begin: 1}, {at: ms, end: 1}, {at: 2 * ms, begin: 2}}, 2*ms + patience},
		"the peer takes something":          {[]moment{{begin: 1}, {at: 800 * ms, takes: true}}, patience + patience - firstLook},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				conn := &stuckConn{closed: make(chan struct{})}
				var s sender
				s.init(conn)
				messages := map[int]*outgoing{}
				var all sync.WaitGroup
				write := func(which int) {
					s.mu.Lock()
					messages[which].state = written
					s.mu.Unlock()
					s.change.Broadcast()
					delete(messages, which)
				}
				for _, m := range x.script {
					time.Sleep(time.Until(began.Add(m.at)))
					switch {
					case m.begin > 0:
						out := &outgoing{items: []xdr.Item{{}}, state: writing}
						messages[m.begin] = out
						all.Go(func() { s.withdraw(out) })
					case m.end > 0:
						write(m.end)
					case m.takes:
						s.writes.Add(2)
					}
					synctest.Wait()
				}
				select {
				case <-conn.closed:
					if took := time.Since(began); x.end == 0 || took != x.end {
						t.Errorf("the connection ends after %v, want %v", took, x.end)
					}
				case <-time.After(time.Minute):
					if x.end != 0 {
						t.Errorf("the connection does not end, want after %v", x.end)
					}
				}
				for which := range messages {
					write(which)
				}
				all.Wait()
				if s.look(); s.stuck.timer.Stop() {
					t.Error("the timer runs, and nothing waits")
				}
			})
		})
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

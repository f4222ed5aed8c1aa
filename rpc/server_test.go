package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestStates checks each state of a reply at the wire: what the server answers by itself, and what it makes of a handler's error; none of
// them ends the connection (ONC-002, ONC-003, ONC-004, ONC-010).
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &service{}
		var failed []error
		s := NewServer(&ServerOptions{Failed: func(c *Call, err error) { failed = append(failed, err) }})
		defer s.Close()
		s.Handle(testProgram, h)
		s.Handle(&Program{Number: testProgram.Number, Version: 5, Procedures: testProgram.Procedures}, h)
		p, _ := serveRaw(t, s)
		call := func(program, version, procedure uint32) []byte {
			var e xdr.Encoder
			(&callHeader{xid: 8, program: program, version: version, procedure: procedure}).append(&e)
			return e.Bytes()
		}
		n, v := testProgram.Number, testProgram.Version
		systemErr := errors.New("the disk burns")
		for _, c := range []struct {
			name       string
			send, want []byte
			fail       error
		}{
			{"NULL", call(n, v, 0), words(8, 1, 0, 0, 0, 0), nil},
			{"NULL of the other version", call(n, 5, 0), words(8, 1, 0, 0, 0, 0), nil},
			{"NULL of 4096 octets", append(call(n, v, 0), make([]byte, 4096-40)...), words(8, 1, 0, 0, 0, 0), nil},
			{"unknown program", call(n+1, v, 0), words(8, 1, 0, 0, 0, 1), nil},
			{"version between", call(n, 4, 0), words(8, 1, 0, 0, 0, 2, 3, 5), nil},
			{"version below", call(n, 2, 9), words(8, 1, 0, 0, 0, 2, 3, 5), nil},
			{"procedure beyond the table", call(n, v, 7), words(8, 1, 0, 0, 0, 3), nil},
			{"procedure 2^32-1", call(n, v, 0xffffffff), words(8, 1, 0, 0, 0, 3), nil},
			{"arguments missing", call(n, v, procSleep), words(8, 1, 0, 0, 0, 4), nil},
			{"version of RPC", words(8, 0, 7), words(8, 1, 1, 0, 2, 2), nil},
			{"AUTH_NONE with a body", words(8, 0, 2, n, v, 0, 0, 4, 0, 0, 0), words(8, 1, 1, 1, 1), nil},
			{"verifier", words(8, 0, 2, n, v, 0, 0, 0, 0, 4, 0), words(8, 1, 1, 1, 3), nil},
			{"unknown flavor", words(8, 0, 2, n, v, 1, 6, 0, 0, 0), words(8, 1, 1, 1, 2), nil},
			{"NULL of an unknown flavor", words(8, 0, 2, n, v, 0, 6, 0, 0, 0), words(8, 1, 0, 0, 0, 0), nil},
			{"handler: procedure unavailable", call(n, v, procFail), words(8, 1, 0, 0, 0, 3), fmt.Errorf("because: %w", ErrProcedureUnavailable)},
			{"handler: garbage", call(n, v, procFail), words(8, 1, 0, 0, 0, 4), fmt.Errorf("because: %w", &xdr.Error{})},
			{"handler: garbage, by its name", call(n, v, procFail), words(8, 1, 0, 0, 0, 4), fmt.Errorf("because: %w", ErrGarbageArgs)},
			{"handler: credential", call(n, v, procFail), words(8, 1, 1, 1, 5), fmt.Errorf("because: %w", &AuthError{TooWeak})},
			{"handler: else", call(n, v, procFail), words(8, 1, 0, 0, 0, 5), systemErr},
			{"and again NULL", call(n, v, 0), words(8, 1, 0, 0, 0, 0), nil},
		} {
			h.fail = func() error { return c.fail }
			p.send(c.send)
			p.expect(c.name, c.want)
		}
		if len(failed) != 1 || failed[0] != systemErr {
			t.Errorf("Failed heard of %v", failed)
		}
		if st := s.Stats(); st.Calls != 20 || st.Unavailable != 6 || st.Garbage != 3 || st.Denied != 5 || st.Failed != 1 || st.Connections != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestServerAuth checks that ServerOptions.Auth decides about each call but NULL.
func TestServerAuth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(&service{}, &ServerOptions{Auth: func(c *Call) error {
			if sys, err := c.Auth.Sys(); err != nil || sys.UID != 0 {
				return &AuthError{TooWeak}
			}
			return nil
		}})
		defer s.Close()
		p, _ := serveRaw(t, s)
		root := append(words(8, 0, 2, testProgram.Number, 3, procSleep, 1, 20, 0, 0, 0, 0, 0, 0, 0), words(0)...)
		p.send(root, callOf(9, 0, nil))
		p.expect("NULL", replyTo(9, nil))
		p.expect("root", replyTo(8, nil))
		p.send(callOf(10, procSleep, num(0)))
		p.expect("AUTH_NONE", words(10, 1, 1, 1, 5))
	})
}

// TestNoCalls checks that messages that are no calls are dropped, that others are answered afterwards, and that too many of them
// within a minute end the connection.
func TestNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(&service{}, nil)
		defer s.Close()
		p, done := serveRaw(t, s)
		for range 5 {
			for range mostMalformed {
				p.send(words(8, 1, 0, 0, 0, 0))
			}
			p.send(callOf(1, 0, nil))
			p.expect("NULL", replyTo(1, nil))
			time.Sleep(time.Minute + lookEvery)
		}
		for range mostMalformed + 1 {
			p.send(nil)
		}
		p.expectEnd("too many")
		if err := <-done; err != errMalformed {
			t.Error(err)
		}
		if n := s.Stats().Malformed; n != 6*mostMalformed+1 {
			t.Errorf("%d are counted", n)
		}
	})
}

// TestTooLongCall checks that a call longer than MaxCall is answered by SYSTEM_ERR before the rest of it has come, and that the next one is
// answered (ONC-007).
func TestTooLongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(&service{}, &ServerOptions{MaxCall: 10000})
		defer s.Close()
		p, done := serveRaw(t, s)
		long := fragment(callOf(1, procEcho, &data{b: make([]byte, 20000)}), true)
		if _, err := p.nc.Write(long[:100]); err != nil {
			t.Fatal(err)
		}
		p.expect("too long", words(1, 1, 0, 0, 0, 5))
		if _, err := p.nc.Write(long[100:]); err != nil {
			t.Fatal(err, <-done)
		}
		p.send(callOf(2, procEcho, &data{b: make([]byte, 9000)}))
		p.expect("the next", replyTo(2, &data{b: make([]byte, 9000)}))
		if n := s.Stats().TooLong; n != 1 {
			t.Errorf("%d are counted", n)
		}
	})
}

// TestSlowHandler checks that calls on one connection are answered as they are done: one that takes long delays no other (ONC-009).
func TestSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(&service{}, nil)
		defer s.Close()
		p, _ := serveRaw(t, s)
		began := time.Now()
		p.send(callOf(1, procSleep, num(3000)), callOf(2, procSleep, num(2000)), callOf(3, procSleep, num(1000)), callOf(4, 0, nil))
		for _, xid := range []uint32{4, 3, 2, 1} {
			p.expect("reply", replyTo(xid, nil))
			if after := time.Since(began); after != time.Duration(4-xid)*time.Second {
				t.Errorf("call %d is answered after %v", xid, after)
			}
		}
	})
}

// TestBackPressure checks that the server reads no more of a connection with as many calls in work as Credits says, and of none with as many as
// Calls says; and that others go on.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &service{entered: make(chan struct{}, 100), hold: make(chan struct{})}
		s := testServer(h, &ServerOptions{Credits: 3, Calls: 5, Duplicates: -1})
		defer s.Close()
		var peers []*rawPeer
		for range 3 {
			p, _ := serveRaw(t, s)
			peers = append(peers, p)
			go func() {
				for xid := range uint32(10) {
					p.send(callOf(xid, procAdd, num(1)))
				}
			}()
			go func() {
				for range 10 {
					p.receive()
				}
			}()
			synctest.Wait()
		}
		for _, p := range peers {
			_ = p
		}
		if n := len(h.entered); n != 5 {
			t.Errorf("%d calls are in work", n)
		}
		for i := range 30 {
			h.hold <- struct{}{}
			synctest.Wait()
			if n := len(h.entered); n > i+1+5 {
				t.Errorf("%d calls have begun after %d", n, i+1)
			}
		}
		if h.sum != 30 {
			t.Errorf("%d calls were carried out", h.sum)
		}
	})
}

// TestBackPressureOfOne checks that a connection has at most Credits calls in work.
func TestBackPressureOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &service{entered: make(chan struct{}, 100), hold: make(chan struct{})}
		s := testServer(h, &ServerOptions{Credits: 3})
		p, _ := serveRaw(t, s)
		go func() {
			for xid := range uint32(5) {
				if _, err := p.nc.Write(fragment(callOf(xid, procAdd, num(1)), true)); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if n := len(h.entered); n != 3 {
			t.Errorf("%d calls are in work", n)
		}
		p.nc.Close()
		close(h.hold)
		s.Close()
	})
}

// TestXID checks that a handler knows the XID of its call, so that a log can name the call as a capture does.
func TestXID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &service{}
		var got []uint32
		h.backBy(func(_ context.Context, c *Call) error {
			got = append(got, c.XID)
			return nil
		})
		s := testServer(h, nil)
		p, _ := serveRaw(t, s)
		for _, xid := range []uint32{0x614e9044, 0, 7} {
			p.send(callOf(xid, procBack, nil))
			p.expect("reply", replyTo(xid, nil))
		}
		p.nc.Close()
		s.Close()
		if want := []uint32{0x614e9044, 0, 7}; !slices.Equal(got, want) {
			t.Errorf("%#x, want %#x", got, want)
		}
	})
}

// TestSent checks that memory of a reply is the server's until Sent says so: when the reply was written, and when the
// connection was lost before.
func TestSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int32
		s := NewServer(nil)
		defer s.Close()
		s.Handle(testProgram, HandlerFunc(func(ctx context.Context, c *Call) error {
			c.Sent(func() { sent.Add(1) })
			return c.Reply(&data{b: c.Buffer(100000)})
		}))
		for _, read := range []bool{true, false} {
			p, _ := serveRaw(t, s)
			before := sent.Load()
			p.send(callOf(1, procRead, num(0)))
			synctest.Wait()
			if sent.Load() != before {
				t.Error("sent before it was read")
			}
			if read {
				p.receive()
			} else {
				p.nc.Close()
			}
			synctest.Wait()
			if sent.Load() != before+1 {
				t.Errorf("sent %d times", sent.Load()-before)
			}
		}
	})
}

// TestDuplicateCalls checks that a call of a procedure that is not idempotent is carried out once, though it comes again over another connection, while it is in
// work and afterwards; that other arguments under its XID are another call; and that the replies are the same (RPC1-054).
func TestDuplicateCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &service{hold: make(chan struct{}, 10)}
		s := testServer(h, nil)
		defer s.Close()
		first, done := serveRaw(t, s)
		first.send(callOf(77, procAdd, num(5)))
		synctest.Wait()
		first.nc.Close()
		synctest.Wait()
		second, _ := serveRaw(t, s)
		second.send(callOf(77, procAdd, num(5)), callOf(77, procAdd, num(5)), callOf(1, 0, nil))
		second.expect("NULL", replyTo(1, nil))
		h.hold <- struct{}{}
		second.expect("in work when it came again", replyTo(77, num(5)))
		if err := <-done; err != nil {
			t.Error(err)
		}
		third, _ := serveRaw(t, s)
		third.send(callOf(77, procAdd, num(5)))
		third.expect("done when it came again", replyTo(77, num(5)))
		h.hold <- struct{}{}
		third.send(callOf(77, procAdd, num(6)))
		third.expect("other arguments", replyTo(77, num(11)))
		if st := s.Stats(); st.Duplicates != 3 || h.sum != 11 {
			t.Errorf("%d duplicates, sum %d", st.Duplicates, h.sum)
		}
		time.Sleep(duplicatesFor + lookEvery)
		h.hold <- struct{}{}
		third.send(callOf(77, procAdd, num(5)))
		third.expect("long after", replyTo(77, num(16)))
	})
}

// TestShutdown checks that Shutdown reads no more calls, and ends when those in work are answered; or when its context ends.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			limit, takes time.Duration
			want         error
		}{{time.Minute, 3 * time.Second, nil}, {time.Second, time.Second, context.DeadlineExceeded}} {
			s := testServer(&service{}, nil)
			p, done := serveRaw(t, s)
			idle, idleDone := serveRaw(t, s)
			p.send(callOf(1, procSleep, num(3000)))
			synctest.Wait()
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), c.limit)
			ended := make(chan error, 1)
			go func() { ended <- s.Shutdown(ctx) }()
			idle.expectEnd("the idle one")
			if err := <-idleDone; err != errDraining {
				t.Error(err)
			}
			if c.want == nil {
				p.expect("in work", replyTo(1, nil))
			}
			p.expectEnd("afterwards")
			if err := <-ended; err != c.want {
				t.Errorf("%v, want %v", err, c.want)
			}
			if after := time.Since(began).Truncate(100 * time.Millisecond); after != c.takes {
				t.Errorf("it took %v", after)
			}
			<-done
			cancel()
			late, lateDone := serveRaw(t, s)
			late.expectEnd("a connection afterwards")
			if err := <-lateDone; err != ErrClosed {
				t.Error(err)
			}
		}
	})
}

// TestConnections checks that the connection that is idle for longest gives its place to one more, and that one more is closed when none is idle.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(&service{}, &ServerOptions{Connections: 3})
		defer s.Close()
		busy, _ := serveRaw(t, s)
		busy.send(callOf(1, procSleep, num(60000)))
		old, oldDone := serveRaw(t, s)
		time.Sleep(5 * time.Second)
		young, _ := serveRaw(t, s)
		time.Sleep(5 * time.Second)
		fourth, _ := serveRaw(t, s)
		fourth.send(callOf(2, 0, nil))
		fourth.expect("one more", replyTo(2, nil))
		if err := <-oldDone; err != errEvicted {
			t.Errorf("the idle one ended with %v", err)
		}
		old.expectEnd("the idle one")
		for _, p := range []*rawPeer{young, fourth} {
			p.send(callOf(3, procSleep, num(60000)))
		}
		synctest.Wait()
		fifth, done := serveRaw(t, s)
		fifth.expectEnd("none is idle")
		if err := <-done; err != errFull {
			t.Error(err)
		}
		if st := s.Stats(); st.Evicted != 1 || st.Refused != 1 || st.Connections != 3 {
			t.Errorf("%+v", st)
		}
	})
}

// TestSlowClients checks that a connection ends whose client does not finish a call, and one whose client does not take a reply; and no connection
// that is idle, or whose server is busy.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(&service{}, &ServerOptions{Credits: 1})
		defer s.Close()
		half, halfDone := serveRaw(t, s)
		half.nc.Write(fragment(callOf(1, 0, nil), true)[:20])
		stuck, stuckDone := serveRaw(t, s)
		stuck.send(callOf(1, 0, nil))
		idle, _ := serveRaw(t, s)
		busy, _ := serveRaw(t, s)
		busy.send(callOf(1, procSleep, num(300000)))
		go busy.send(callOf(2, 0, nil)) // it waits for a credit
		time.Sleep(recordTime - lookEvery)
		select {
		case err := <-halfDone:
			t.Errorf("half a call: ended early: %v", err)
		case err := <-stuckDone:
			t.Errorf("stuck: ended early: %v", err)
		default:
		}
		time.Sleep(4 * lookEvery)
		if err := <-halfDone; err != errSlow {
			t.Errorf("half a call: %v", err)
		}
		if err := <-stuckDone; err != errStuck {
			t.Errorf("stuck: %v", err)
		}
		idle.send(callOf(5, 0, nil))
		idle.expect("idle", replyTo(5, nil))
		busy.expect("busy", replyTo(1, nil))
		busy.expect("busy", replyTo(2, nil))
		if n := s.Stats().Slow; n != 2 {
			t.Errorf("%d are counted", n)
		}
	})
}

// TestFragmentedCall checks that a call of several fragments is answered, and that an empty fragment ends the connection (ONC-007).
func TestFragmentedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(&service{}, nil)
		defer s.Close()
		p, done := serveRaw(t, s)
		v := &data{before: 1, b: bytes.Repeat([]byte("x"), 50001), after: "end"}
		call := callOf(9, procEcho, v)
		go p.nc.Write(append(append(fragment(call[:10], false), fragment(call[10:30000], false)...), fragment(call[30000:], true)...))
		p.expect("fragments", replyTo(9, v))
		p.nc.Write(fragment(nil, false))
		p.expectEnd("an empty fragment")
		if err := <-done; err != errEmptyFragment {
			t.Error(err)
		}
	})
}

// TestServeTCP checks that ServeTCP says why it has ended.
func TestServeTCP(t *testing.T) {
	s := NewServer(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeTCP(l) }()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	s.Close()
	if _, err := io.ReadAll(nc); err != nil && !errors.Is(err, io.EOF) {
		t.Log(err)
	}
	if err := s.ServeTCP(l); err != ErrClosed {
		t.Error(err)
	}
}

// TestConnectionsOfHost checks that a host has PerHost connections: one more takes the place of its own that is idle for longest, and is
// refused if none is idle.
func TestConnectionsOfHost(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		b.server.mu.Lock()
		b.server.opts.PerHost = 2
		b.server.mu.Unlock()
		b.there.entered, b.there.hold = make(chan struct{}, 4), make(chan struct{})
		b.options.NoReconnect = true
		first, second := b.dial(), b.dial()
		p := first.Bind(testProgram, None)
		done := make(chan error, 1)
		go func() { done <- p.Call(t.Context(), procAdd, num(1), nil, nil) }()
		<-b.there.entered
		third := b.dial() // for which the second one is closed
		if err := third.Bind(testProgram, None).Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Error(err)
		}
		if err := second.Bind(testProgram, None).Call(t.Context(), 0, nil, nil, nil); err == nil {
			t.Error("the second connection is still there")
		}
		go func() { done <- third.Bind(testProgram, None).Call(t.Context(), procAdd, num(1), nil, nil) }()
		<-b.there.entered
		if fourth, err := Dial(t.Context(), b.address, b.options); err == nil {
			if err := fourth.Bind(testProgram, None).Call(t.Context(), 0, nil, nil, nil); err == nil {
				t.Error("a host has three connections that are not idle")
			}
			fourth.Close()
		}
		close(b.there.hold)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := b.server.Stats(); n.Evicted != 1 || n.Refused != 1 {
			t.Errorf("%d closed, %d refused", n.Evicted, n.Refused)
		}
	})
}

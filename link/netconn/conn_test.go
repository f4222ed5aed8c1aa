package netconn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// wants checks that an error is a net.OpError with the addresses of c, and is each of some errors.
func wants(t *testing.T, what string, c *Conn, op string, err error, want ...error) {
	t.Helper()
	var of *net.OpError
	if !errors.As(err, &of) || of.Op != op || of.Net != Network || of.Source != c.LocalAddr() || of.Addr != c.RemoteAddr() {
		t.Errorf("%s: %T %v, want an OpError of %s", what, err, err, op)
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v, want %v", what, err, w)
		}
	}
	var e net.Error
	timeout := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT)
	if !errors.As(err, &e) || e.Timeout() != timeout {
		t.Errorf("%s: a timeout: %v, want %v; %v", what, !timeout, timeout, err)
	}
}

// TestHalfClose checks that after CloseWrite the peer reads what was written, and end of file, that
// the other direction goes on, and that nothing more is written.
func TestHalfClose(t *testing.T) {
	a, b := pair(t)
	if _, err := a.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.CloseWrite(); err != nil {
			t.Error(err)
		}
	}
	n, err := a.Write([]byte("more"))
	if n != 0 || errors.Is(err, net.ErrClosed) {
		t.Errorf("written after CloseWrite: %d bytes, %v", n, err)
	}
	wants(t, "Write after CloseWrite", a, "write", err, syscall.EPIPE)
	if got, err := io.ReadAll(b); string(got) != "question" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	want := fixture.RandomBytes(1, 1<<20)
	go func() {
		b.Write(want)
		b.CloseWrite()
	}()
	if got, err := io.ReadAll(a); !bytes.Equal(got, want) || err != nil {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	for _, c := range []*Conn{a, b} {
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("read after the end: %d, %v", n, err)
		}
	}
}

// TestCloseDelivers checks that what was written before Close arrives, and end of file after it,
// though the peer does not read before that, has written more than fits, and frames are lost. A Write
// on a closed connection fails.
func TestCloseDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, b := w.pair()
		w.cut(0.1)
		stuck := make(chan error)
		go func() {
			var err error
			for err == nil {
				_, err = b.Write(make([]byte, 10000))
			}
			stuck <- err
		}()
		want := fixture.RandomBytes(2, 63*DefaultSize) // all there is room for
		if n, err := a.Write(want); n != len(want) || err != nil {
			t.Fatal(n, err)
		}
		synctest.Wait()
		began := time.Now()
		if err := a.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		wants(t, "Write to one that closed", b, "write", <-stuck, link.ErrPeerClosed, syscall.EPIPE)
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("the writer was told after %v", d)
		}
		if got, err := io.ReadAll(b); !bytes.Equal(got, want) || err != nil {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
		b.Close()
		nothingLeft(t, w.a, w.b)
	})
}

// TestCloseUnblocks checks that calls that wait in Read and Write, and for the token of others, get
// net.ErrClosed, and that later ones do.
func TestCloseUnblocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, b := w.pair()
		type end struct {
			op  string
			err error
		}
		ends := make(chan end, 6)
		for range 2 {
			go func() { _, err := a.Read(make([]byte, 1)); ends <- end{"read", err} }()
			go func() { _, err := a.WriteTo(io.Discard); ends <- end{"read", err} }()
			go func() { _, err := a.Write(make([]byte, 1<<20)); ends <- end{"write", err} }()
		}
		synctest.Wait()
		began := time.Now()
		a.Close()
		for range cap(ends) {
			e := <-ends
			wants(t, "blocked", a, e.op, e.err, net.ErrClosed)
		}
		if time.Since(began) > 10*time.Millisecond {
			t.Errorf("after %v", time.Since(began))
		}
		_, err := a.Read(nil)
		wants(t, "later", a, "read", err, net.ErrClosed)
		_, err = a.WriteTo(io.Discard)
		wants(t, "later", a, "read", err, net.ErrClosed)
		_, err = a.Write(nil)
		wants(t, "later", a, "write", err, net.ErrClosed)
		wants(t, "later", a, "set", a.SetDeadline(time.Now()), net.ErrClosed)
		wants(t, "later", a, "close", a.CloseWrite(), net.ErrClosed)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		b.Close()
		nothingLeft(t, w.a, w.b)
	})
}

// TestBothClose checks that both ends can close at once, with data in flight in both directions, which
// arrives or is not read, and that nothing is left.
func TestBothClose(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	x, y := open(t, nil), open(t, nil)
	l := listen(t, y, "port", nil)
	for range 50 {
		a, b := join(t, x, l, Options{})
		var both sync.WaitGroup
		for _, c := range []*Conn{a, b} {
			both.Go(func() {
				if _, err := c.Write(make([]byte, 5000)); err != nil && !errors.Is(err, syscall.EPIPE) {
					t.Error(err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	nothingLeft(t, x, y)
}

// TestPeerDies checks that Read and Write fail within one and a half times the time that a silent peer
// is given, that what was delivered before is read, and that nothing is left.
func TestPeerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, b := w.pair()
		if _, err := b.Write([]byte("last words")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		w.cut(1)
		began := time.Now()
		written := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				_, err = a.Write(make([]byte, 10000))
			}
			written <- err
		}()
		got, err := io.ReadAll(a)
		if string(got) != "last words" {
			t.Errorf("read %q", got)
		}
		wants(t, "Read", a, "read", err, dgrdma.ErrPeerDown, syscall.ETIMEDOUT)
		wants(t, "Write", a, "write", <-written, dgrdma.ErrPeerDown, syscall.ETIMEDOUT)
		if d, most := time.Since(began), w.a.Endpoint().GiveUp()*3/2; d > most {
			t.Errorf("told after %v, want %v at most", d, most)
		}
		a.Close()
		b.Close()
		time.Sleep(w.b.Endpoint().GiveUp() * 2)
		nothingLeft(t, w.a, w.b)
	})
}

// TestPeerAborts checks what is read when the peer's host is closed before end of file was sent.
func TestPeerAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, _ := w.pair()
		time.Sleep(100 * time.Millisecond) // the letter that says it was accepted is acknowledged
		w.b.Close()
		_, err := a.Read(make([]byte, 1))
		wants(t, "Read", a, "read", err, link.ErrPeerClosed, syscall.ECONNRESET)
		if !strings.HasSuffix(err.Error(), ": link: the peer ended the link: the host was closed") {
			t.Errorf("it says %q", err)
		}
		_, err = a.Write([]byte("x"))
		wants(t, "Write", a, "write", err, link.ErrPeerClosed, syscall.EPIPE)
		a.Close()
		nothingLeft(t, w.a)
	})
}

// TestShutdownDelivers checks that the host's Shutdown waits for what Close left in flight.
func TestShutdownDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, b := w.pair()
		w.cut(0.2)
		want := fixture.RandomBytes(3, 100_000)
		if _, err := a.Write(want); err != nil {
			t.Fatal(err)
		}
		a.Close()
		if err := w.a.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if got, err := io.ReadAll(b); !bytes.Equal(got, want) || err != nil {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	})
}

// TestNothingToDo checks that a call with no bytes returns at once, and moves nothing.
func TestNothingToDo(t *testing.T) {
	a, b := pair(t)
	if n, err := a.Write(nil); n != 0 || err != nil {
		t.Errorf("Write: %d, %v", n, err)
	}
	if n, err := b.Read(nil); n != 0 || err != nil {
		t.Errorf("Read: %d, %v", n, err)
	}
	if s := a.Link().Stats().Out; s.Messages != 0 {
		t.Errorf("%d messages were sent", s.Messages)
	}
}

// TestWriteTo checks that a writer that fails, or is slow, costs no byte.
func TestWriteTo(t *testing.T) {
	a, b := pair(t)
	want := fixture.RandomBytes(4, 200_000)
	go func() {
		a.Write(want)
		a.CloseWrite()
	}()
	var got bytes.Buffer
	full := errors.New("full")
	for i := 0; ; i++ {
		n := 0
		_, err := b.WriteTo(writer(func(p []byte) (int, error) {
			if n++; n > i {
				k, _ := got.Write(p[:len(p)/2])
				return k, full
			}
			return got.Write(p)
		}))
		if err == nil {
			break
		}
		if err != full {
			t.Fatalf("%v, want what the writer said", err)
		}
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes, want %d", got.Len(), len(want))
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

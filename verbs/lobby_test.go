package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

func listen(t *testing.T) (*verbs.Host, *verbs.Listener) {
	t.Helper()
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	return h, l
}

func dial(t *testing.T, l *verbs.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// closed says whether the other side has ended the connection within that time.
func closed(c net.Conn, within time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(within))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// Attack R7 (SECURITY.md): connections that say nothing keep nobody out, and no more of them than there are
// places have a goroutine.
func TestConnectionsThatSayNothing(t *testing.T) {
	const places, more = 1024, 200
	h, l := listen(t)
	goroutines := runtime.NumGoroutine()
	var silent []net.Conn
	for range places + more {
		silent = append(silent, dial(t, l))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			_, err = r.Accept(ctx, nil)
		}
		accepted <- err
	}()
	began := time.Now()
	q, err := h.Dial(ctx, fmt.Sprint("tcp:", l.Addr()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a peer was kept out for %v", took)
	}
	for i, c := range silent[:more] {
		if !closed(c, 10*time.Second) {
			t.Fatalf("the silent connection %d has its place still", i)
		}
	}
	if n := h.Stats().Crowded; n != more && n != more+1 { // the peer took a place, too
		t.Errorf("%d are counted as crowded out, want %d", n, more)
	}
	if closed(silent[len(silent)-1], time.Millisecond) {
		t.Error("the youngest one has lost its place")
	}
	if n := runtime.NumGoroutine() - goroutines; n > places+50 {
		t.Errorf("%d goroutines", n)
	}
	q.Abort()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if !closed(silent[len(silent)-1], 10*time.Second) {
		t.Error("a connection is open behind the listener's end")
	}
}

// Attack R7: requests that the program does not accept are bounded, too.
func TestBacklog(t *testing.T) {
	h, l := listen(t)
	request := append([]byte("MPA ID Req Frame"), 0x40, 1, 0, 0)
	var all []net.Conn
	for range verbs.Backlog + 1 {
		c := dial(t, l)
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	left := 0
	for deadline := time.Now().Add(30 * time.Second); left == 0; {
		for _, c := range all {
			if closed(c, time.Millisecond) {
				left++
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("one more than the backlog is open")
		}
	}
	if n := h.Stats().Dropped; left != 1 || n != 1 {
		t.Errorf("%d are closed, and %d counted", left, n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for range verbs.Backlog - 1 {
		r, err := l.Accept(ctx)
		if err != nil {
			t.Fatal(err)
		}
		q, err := r.Accept(ctx, &verbs.Options{Revision: 1})
		if err != nil {
			t.Fatal(err)
		}
		q.Abort()
	}
	l.Close()
	open := 0
	for _, c := range all {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	if open > 0 {
		t.Errorf("%d connections are open behind the listener's end", open)
	}
	if _, err := l.Accept(ctx); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after the end: %v", err)
	}
}

package verbs_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestWaitAfterTheEnd: who waits at a queue of a queue pair's own, where nothing is posted, hears that it has ended, before or while it
// waits, and gets what is left first.
func TestWaitAfterTheEnd(t *testing.T) {
	for _, events := range []bool{false, true} {
		e := connect(t, nil, &verbs.Options{Posted: []verbs.Receive{{ID: 1, Data: make([]byte, 8)}, {ID: 2, Data: make([]byte, 8)}}})
		wait := func(q *verbs.CompletionQueue, done []verbs.Completion) (int, error) {
			if events {
				return q.WaitEvent(t.Context(), done)
			}
			return q.Wait(t.Context(), done)
		}
		asleep := make(chan error, 1)
		go func() {
			_, err := wait(e.b.Completions(), make([]verbs.Completion, 1)) // where nothing was posted
			asleep <- err
		}()
		if err := e.a.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Solicited: true, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		e.a.Close()
		if err := <-asleep; !errors.Is(err, verbs.ErrPeerClosed) {
			t.Errorf("events %v: while it waits: %v", events, err)
		}
		<-e.b.Done()
		var done [4]verbs.Completion
		n, err := wait(e.b.Received(), done[:])
		if n != 2 || err != nil || done[0].Err != nil || !errors.Is(done[1].Err, verbs.ErrFlushed) {
			t.Fatalf("events %v: %d, %v: %v", events, n, err, done[:n])
		}
		if n, err := wait(e.b.Received(), done[:]); n != 0 || !errors.Is(err, verbs.ErrPeerClosed) {
			t.Errorf("events %v: after the end: %d, %v", events, n, err)
		}
		if _, err := wait(e.a.Completions(), done[:1]); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("events %v: at who closed: %v", events, err)
		}
	}
}

// ending is a context that ends when somebody waits for that, behind what happens first.
type ending struct {
	context.Context
	cancel context.CancelFunc
	once   sync.Once
	first  func()
}

func (e *ending) Done() <-chan struct{} {
	e.once.Do(func() {
		e.first()
		e.cancel()
	})
	return e.Context.Done()
}

// TestContextEndsWithACall: a call that is done when its context ends has not failed, and its connection goes on.
func TestContextEndsWithACall(t *testing.T) {
	e := connect(t, nil, nil)
	for n := range uint64(64) { // select would see either first
		ctx, cancel := context.WithCancel(t.Context())
		ends := &ending{Context: ctx, cancel: cancel, first: func() {
			if err := e.a.Send(t.Context(), []byte("x")); err != nil {
				t.Error(err)
			}
			for e.b.Stats().Received <= n && e.b.Err() == nil {
				time.Sleep(100 * time.Microsecond)
			}
		}}
		if _, err := e.b.Receive(ends, make([]byte, 8)); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		if err := e.b.Err(); err != nil {
			t.Fatalf("behind call %d: %v", n, err)
		}
	}
	if err := errors.Join(e.a.Close(), e.b.Close()); err != nil {
		t.Error(err)
	}
}

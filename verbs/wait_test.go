package verbs_test

import (
	"errors"
	"net"
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

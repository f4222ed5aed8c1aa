package verbs

import (
	"context"
	"testing"
	"time"
)

// TestCompletionAtTheEndOfAContext: a completion that is there when the context's end is noticed is
// taken, by the one who waited for it.
func TestCompletionAtTheEndOfAContext(t *testing.T) {
	for name, wait := range map[string]func(*CompletionQueue, context.Context, []Completion) (int, error){
		"any": (*CompletionQueue).Wait, "event": (*CompletionQueue).WaitEvent,
	} {
		q := NewCompletionQueue()
		ctx, end := context.WithCancel(t.Context())
		var done [1]Completion
		returned := make(chan error)
		var n int
		go func() {
			var err error
			n, err = wait(q, ctx, done[:])
			returned <- err
		}()
		for asleep := false; !asleep; time.Sleep(time.Millisecond) {
			q.mu.Lock()
			asleep = q.any.n+q.event.n == 1
			q.mu.Unlock()
		}
		q.mu.Lock()
		end()
		time.Sleep(20 * time.Millisecond) // it wakes, and waits for the lock
		q.entries[0], q.tail, q.events = Completion{ID: 7, Solicited: true}, 1, 1
		q.mu.Unlock()
		if err := <-returned; n != 1 || err != nil || done[0].ID != 7 {
			t.Errorf("%s: %d, %v, %+v", name, n, err, done[0])
		}
		if n, err := wait(q, ctx, done[:]); n != 0 || err != context.Canceled {
			t.Errorf("%s: behind it %d, %v", name, n, err)
		}
	}
}

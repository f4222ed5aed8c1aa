package endpoint

import (
	"fmt"
	"testing"
	"time"
)

// TestCopiedDoesNotReturn: nor does Packed. Until the endpoint is failed for that, others look at the
// connection, which is whole: nothing of it waits that is not there.
func TestCopiedDoesNotReturn(t *testing.T) {
	for i, n := range []int{0, 100, 5000, 0, 100, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newHalfRig(t, 1, Native(), Config{Coalesce: time.Millisecond})
			r.come(1 << 20)
			left := false
			x := write(64, make([]byte, n), 0, 1)
			x.Urgent = n == 0 // which does not wait for company
			gone := func(*Transaction) { left = true; panic("gone") }
			if x.Copied = gone; i >= 3 {
				x.Copied, x.Packed = nil, gone
			}
			r.now = r.now.Add(time.Second)
			if _, _, err := r.c.enqueue(x, r.answered, nil, posting{to: whoever, flow: &r.c.plain}); err != nil {
				t.Fatal(err)
			}
			r.now = r.now.Add(time.Second)
			survive(r.serve)
			if !left {
				t.Fatal("it was not called")
			}
			r.batch() // of datagrams, on another goroutine
			r.expire()
			if r.done > 0 {
				t.Error("it is done, and never left")
			}
			r.e.failAll(ErrCallback)
			r.e.deliverFinished()
			if r.done != 1 || r.c.tx.posted.n != 0 || r.c.tx.posted.turn() != nil {
				t.Errorf("answered %d times, and %d are posted", r.done, r.c.tx.posted.n)
			}
		})
	}
}

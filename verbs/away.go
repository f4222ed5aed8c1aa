package verbs

import (
	"context"
	"sync"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// MostTurnedAway is how many requests of a listener are waited for that [Request.TurnAway] has answered, and as many of those
// that [Host.Await] has brought.
const MostTurnedAway = 2 * Backlog

// turnedAway are peers whose request was answered by [Request.TurnAway], and who have not closed their connection.
type turnedAway struct {
	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup

	mu   sync.Mutex
	n    int
	over bool // none is waited for any more
}

func newTurnedAway() *turnedAway {
	t := new(turnedAway)
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// leaves waits for the peer to close the connection, on a goroutine of its own, and reports whether that is possible.
func (t *turnedAway) leaves(r *mpa.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.n == MostTurnedAway {
		return false
	}
	t.n++
	t.all.Go(func() {
		r.Part(t.ctx)
		t.mu.Lock()
		t.n--
		t.mu.Unlock()
	})
	return true
}

// end closes the connections of all, and returns when it is done.
func (t *turnedAway) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.stop()
	t.all.Wait()
}

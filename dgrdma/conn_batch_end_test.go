package dgrdma

import (
	"testing"

	"github.com/dgrdma/dgrdma/ack"
)

// batchCounter is a controller that counts the batches of which it is told.
type batchCounter struct {
	ack.FixedWindow
	batches int
}

func (c *batchCounter) EndBatch(ack.Instant) { c.batches++ }

// TestControllerHearsOfAcks checks that a controller hears of acknowledgements once in a batch of
// datagrams, and of no other batch. A connection that failed, perhaps because its controller did
// not return, tells that nothing more.
func TestControllerHearsOfAcks(t *testing.T) {
	ctl := &batchCounter{}
	ctl.Bytes = 1 << 20
	r := newHalfRig(t, 1, Native(), Config{NewController: func(int) ack.Controller { return ctl }})
	r.come(life)
	r.posts(8)
	r.posts(8)
	r.acknowledges(0)
	if ctl.batches != 1 {
		t.Errorf("one batch acknowledged, the controller was told of %d", ctl.batches)
	}
	r.comes(1)
	r.batch()
	if ctl.batches != 1 {
		t.Errorf("nothing else was acknowledged, the controller was told of %d batches more", ctl.batches-1)
	}
	var fin finished
	r.c.mu.Lock()
	r.c.fail(r.now, &fin, ErrPeerDown)
	r.c.mu.Unlock()
	told := ctl.batches
	r.batch(ack.Range{Start: r.flying[0], Count: 1})
	if ctl.batches != told {
		t.Error("the controller was told of a batch after the end")
	}
}

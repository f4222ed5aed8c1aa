package endpoint

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errNoRegion is why nothing can be waited for.
var errNoRegion = errors.New("dgrdma: this connection's memory is no Region, whose words can be waited for: name one in Config.Memory")

// beats are how often in GiveUp a peer is asked whether it is there, that somebody waits for.
const beats = 4

// Wait blocks until ready says yes to the word at addr of the memory that this peer writes
// into, a Region, and returns that word. It looks at once and after every write of the word,
// and drives the endpoint meanwhile, as [Endpoint.Await] does. A word that is ready wins over
// all else.
//
// It ends with the connection, too, and returns why: a peer of our own kind that is gone
// without a goodbye is noticed in [Config.GiveUp] and a quarter of it, as one that says nothing
// is written to now and then. Of others it is noticed when something is posted to them.
func (c *Conn) Wait(ctx context.Context, addr uint32, ready func(word uint32) bool) (uint32, error) {
	if c.absent() {
		return 0, ErrNil
	}
	r := c.region()
	if r == nil {
		return 0, errNoRegion
	}
	w, err := r.watched(addr, ready)
	if err != nil {
		return 0, err
	}
	defer w.over()
	var asked atomic.Bool
	for {
		if over, err := c.awaitOrBeat(ctx, w); over {
			return w.word, err
		}
		if c.profile.Session && !asked.Swap(true) {
			if c.Post(&Transaction{Done: func(*Transaction, error) { asked.Store(false) }}) != nil {
				asked.Store(false) // what ended it ends this, too
			}
		}
	}
}

// WaitFor blocks until the word at addr is value, or until Wait ends otherwise.
func (c *Conn) WaitFor(ctx context.Context, addr, value uint32) error {
	_, err := c.Wait(ctx, addr, func(v uint32) bool { return v == value })
	return err
}

// region returns the memory that the peer writes into, if it can be waited on.
func (c *Conn) region() *Region {
	if r, ok := c.Memory().(*Region); ok {
		return r
	}
	return c.cfg.Region
}

// awaitOrBeat waits for a word, or the end of the connection, or of the time after which a
// peer is asked whether it is there. It reports whether there is nothing more to wait for.
func (c *Conn) awaitOrBeat(ctx context.Context, w *watched) (over bool, err error) {
	beat := make(chan struct{})
	timer := time.AfterFunc(c.cfg.GiveUp/beats, func() { close(beat) })
	defer timer.Stop()
	if c.ep.Await(ctx, w.waiter, w.look, beat, c.Done()) {
		return true, nil
	}
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	if err := c.Err(); err != nil {
		return true, err
	}
	err = c.ep.Err()
	return err != nil, err
}

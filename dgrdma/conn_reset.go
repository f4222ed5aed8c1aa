package dgrdma

import (
	"fmt"

	"github.com/dgrdma/dgrdma/frame"
)

// Reset begins again with a peer that is down, or that was started again:
// everything pending fails with ErrReset, and what the peer sent so far is
// forgotten. Frame ids start at first where the peer's profile asks for a fixed
// first id (0: that id); peers of our own kind need none and are told. It fails where this machine
// has the address no more from which the peer is sent to, [Peer].Addr.Local: the connection is of no use then, close
// it and make another.
func (c *Conn) Reset(first Seq) error {
	if _, err := c.ep.transport.Towards(c.peer.Addr); err != nil {
		return fmt.Errorf("dgrdma: reset peer %d at %v: %w; close the connection, and make another", c.peer.ID, c.peer.Addr, err)
	}
	if err := c.reset(first); err != nil {
		return err
	}
	c.ep.sched.Work(false)
	return nil
}

func (c *Conn) reset(first frame.Seq) error {
	now := c.ep.now()
	var fin finished
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.ep.finish(&fin)
	tx := &c.tx
	if tx.closed || c.ep.draining.Load() {
		return ErrClosed
	}
	if tx.err == nil {
		tx.abandon(now, &fin, c.peerError("transactions in flight", ErrReset))
		tx.start(now)
	} else {
		tx.revive(now)
	}
	tx.wire.resume(now, first)
	c.resets.Add(1)
	c.giveBack()
	tx.wake(now)
	return nil
}

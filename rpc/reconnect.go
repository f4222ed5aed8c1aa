package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// dialTime is for how long a reconnect may take.
	dialTime = 10 * time.Second
	// leastBackoff and mostBackoff are how long a client waits before it connects again: the first one doubles
	// with each attempt until a reply comes. They are arbitrary.
	leastBackoff = 100 * time.Millisecond
	mostBackoff  = 10 * time.Second
)

// connected begins to use a connection. It sends the calls that wait, in the order in which they were made.
func (c *Client) connected(s carrier) {
	c.mu.Lock()
	c.connecting = false
	if c.ctx.Err() != nil {
		s.begin() // without which it has no end
		c.mu.Unlock()
		s.close(ErrClosed)
		return
	}
	c.counters.connections.Add(1)
	c.carrier, c.reason, c.seen, c.silent = s, nil, 0, 0
	xids := slices.Collect(maps.Keys(c.calls))
	slices.SortFunc(xids, func(a, b uint32) int { return cmp.Compare(int32(a-c.xid), int32(b-c.xid)) })
	for _, xid := range xids {
		c.submit(c.calls[xid])
	}
	s.begin()
	c.mu.Unlock()
	s.flush(nil)
}

// connect begins to connect again. c.mu is held.
func (c *Client) connect() {
	if c.connecting || c.ctx.Err() != nil {
		return
	}
	c.connecting = true
	c.waits(0)
	c.all.Add(1)
	go c.reconnect()
}

// reconnect connects, after pauses that grow, for as long as there are calls.
func (c *Client) reconnect() {
	defer c.all.Done()
	for {
		c.mu.Lock()
		if len(c.calls) == 0 || c.ctx.Err() != nil || c.giveUp(c.reason) {
			c.connecting = false
			c.mu.Unlock()
			return
		}
		pause, left := time.Until(c.attempted.Add(backoff(c.attempts))), c.left()
		pause = min(pause, left)
		c.mu.Unlock()
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-c.ctx.Done():
			}
			continue // with the calls that there are now
		}
		ctx, cancel := context.WithTimeout(c.ctx, min(dialTime, left))
		s, err := c.dial(ctx)
		cancel()
		c.mu.Lock()
		c.attempts++
		c.attempted = time.Now()
		if err != nil {
			c.reason = err
		}
		c.mu.Unlock()
		if err == nil {
			c.connected(s)
			return
		}
	}
}

// waits notes that calls wait for a server that was lost, for some time already. c.mu is held.
func (c *Client) waits(already time.Duration) {
	if c.unanswered.IsZero() {
		c.unanswered = time.Now().Add(-already)
	}
}

// left returns for how long calls still wait. c.mu is held.
func (c *Client) left() time.Duration {
	if c.opts.GiveUp <= 0 {
		return math.MaxInt64
	}
	return max(c.opts.GiveUp-time.Since(c.unanswered), 0)
}

// giveUp ends the calls that wait if they have waited long enough. c.mu is held.
func (c *Client) giveUp(why error) bool {
	already := time.Duration(0)
	if errors.Is(why, errSilent) && c.unanswered.IsZero() {
		already = c.opts.Timeout / watches * (watches + 1) // what look has counted
	}
	c.waits(already)
	if c.left() > 0 {
		return false
	}
	for range c.calls {
		c.counters.lost.Add(1)
	}
	c.failAll(fmt.Errorf("%w within %v (%w)", ErrNoReply, c.opts.GiveUp, why))
	return true
}

// backoff returns how long the pause after a number of attempts is: up to half less than its usual length, so that
// clients of a server that was away do not come all at once.
func backoff(attempts int) time.Duration {
	if attempts == 0 {
		return 0
	}
	d := min(leastBackoff<<min(attempts-1, 10), mostBackoff)
	return d - rand.N(d/2)
}

var errSilent = errors.New("the server has sent nothing for too long")

// watches is how often within the time limit the client looks whether something has come.
const watches = 4

// rewatch looks again later whether something has come. c.mu is held.
func (c *Client) rewatch() {
	next := c.opts.Timeout / watches
	if !c.unanswered.IsZero() {
		next = min(next, max(c.left(), time.Millisecond))
	}
	if c.watch == nil {
		c.watch = time.AfterFunc(next, c.look)
	} else {
		c.watch.Reset(next)
	}
}

// look ends the connection if calls wait and nothing has come for the time limit, or until they are given up.
func (c *Client) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.carrier == nil || len(c.calls) == 0 || c.ctx.Err() != nil {
		c.watching = false
		return
	}
	if n := c.carrier.received(); n != c.seen {
		c.seen, c.silent = n, 0
	} else if c.silent++; c.silent > watches || !c.unanswered.IsZero() && c.left() == 0 {
		c.watching = false
		c.carrier.close(errSilent)
		return
	}
	c.rewatch()
}

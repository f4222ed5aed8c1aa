package main

import (
	"context"
	"time"
)

// sizeWait is how long a server that was heard of may take to say how large pings may be.
const sizeWait = pingWait

// agree asks a server whether it takes pings of that size, and returns why not. Those of 64
// bytes every server takes.
func (c *pingClient) agree(ctx context.Context, p *pingPeer, poll func() error) error {
	size := uint32(c.o.size.value)
	if size == pingBytes {
		return nil
	}
	p.asked = func(most uint32) {
		c.mu.Lock()
		c.most, c.told = most, true
		c.mu.Unlock()
		c.look()
	}
	p.agreed.Store(size)
	p.size.Store(size)
	p.say(size)
	var met time.Time
	var refused error
	err := attend(ctx, poll, c.wake, pingTick, func(now time.Time) (over bool) {
		if c.met = c.heard() > 0; c.met && met.IsZero() {
			met = now
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.told && c.most < size:
			refused = tooLarge(c.o.size.value, uint64(c.most))
		case c.told:
		case c.failed != nil:
			refused = c.failed
		case c.dead() != nil:
			refused = c.dead()
		case c.met && now.Sub(met) > sizeWait:
			refused = badUsage("--size %v: the server does not say that it takes other pings than those of %d bytes; it is an older one", &c.o.size, pingBytes)
		default:
			return false
		}
		return true
	})
	if err != nil {
		return err
	}
	return refused
}

// tooLarge says that a server does not take pings of that size.
func tooLarge(size, most uint64) error {
	return badUsage("--size %d: the server takes pings of %d bytes at most; give ping --serve as large a --size", size, most)
}

package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// counts is what happened in a run.
type counts struct {
	kills, both, stops atomic.Uint64
	done, failed       atomic.Uint64 // transactions
	messages, flushes  atomic.Uint64
	violations         atomic.Uint64

	mu    sync.Mutex
	again []time.Duration // how long it took until pairs worked again
}

func (c *counts) worked(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = append(c.again, max(d, 0))
}

// quantiles returns how long it took until pairs worked again.
func (c *counts) quantiles() (n int, p50, p99, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = len(c.again)
	if n == 0 {
		return 0, 0, 0, 0
	}
	slices.Sort(c.again)
	at := func(q float64) time.Duration { return c.again[int(q*float64(n-1))].Round(100 * time.Microsecond) }
	return n, at(0.5), at(0.99), at(1)
}

func (c *counts) String() string {
	n, p50, p99, most := c.quantiles()
	return fmt.Sprintf("%d kills, %d of them of both at once, %d stops; %d transactions reported done, %d failed; %d messages of links, %d times reported to have arrived; "+
		"worked again %d times, after %v (p50), %v (p99), %v (most); %d violations",
		c.kills.Load(), c.both.Load(), c.stops.Load(), c.done.Load(), c.failed.Load(), c.messages.Load(), c.flushes.Load(), n, p50, p99, most, c.violations.Load())
}

package round

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Counts is what rounds did so far. Many may count at the same time.
type Counts struct {
	Rounds, Sealed         atomic.Uint64 // Sealed are those with keys
	Done, Failed, Bytes    atomic.Uint64 // transactions, and bytes of those that completed
	Links, Messages        atomic.Uint64
	Letters                atomic.Uint64
	FramesSent, FramesCame atomic.Uint64
	Again, Copies          atomic.Uint64 // frames sent again, and those that came again
	Violations             atomic.Uint64

	mu     sync.Mutex
	faults map[string]uint64
}

// fault counts what was done to a round.
func (c *Counts) fault(kind string, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults == nil {
		c.faults = make(map[string]uint64)
	}
	c.faults[kind] += n
}

// Faults returns how many there were of each kind.
func (c *Counts) Faults() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.faults)
}

// String returns all on one line.
func (c *Counts) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d rounds (%d sealed), %d transactions (%d failed, %d MB), %d messages of %d links, %d letters, %d frames (%d again, %d came twice)",
		c.Rounds.Load(), c.Sealed.Load(), c.Done.Load()+c.Failed.Load(), c.Failed.Load(), c.Bytes.Load()/1e6, c.Messages.Load(), c.Links.Load(), c.Letters.Load(),
		c.FramesSent.Load(), c.Again.Load(), c.Copies.Load())
	faults := c.Faults()
	for i, k := range slices.Sorted(maps.Keys(faults)) {
		s.WriteString([]string{"; ", ", "}[min(i, 1)])
		fmt.Fprintf(&s, "%s %d", k, faults[k])
	}
	return s.String()
}

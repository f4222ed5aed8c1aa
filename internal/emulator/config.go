package emulator

import (
	"net/netip"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// Config describes a path. Both ways have the same properties, and share nothing.
type Config struct {
	Bottleneck bottleneck.Config
	// Trip is the round trip without queues.
	Trip time.Duration
	// Trips are round trips of packets from or to some addresses, in place of Trip.
	Trips map[netip.Addr]time.Duration
	// Jitter is the bound of a random addition, each way. It does not reorder.
	Jitter time.Duration
	// Reorder is the chance that a packet takes ReorderBy longer, so that others overtake it.
	Reorder   float64
	ReorderBy time.Duration
	// Loss is the chance that a packet is lost after the bottleneck; Bursts loses more, in bursts.
	Loss   float64
	Bursts bottleneck.GilbertElliott
	Seed   uint64
}

// leastTrip returns the shortest round trip.
func (c *Config) leastTrip() time.Duration {
	least := c.Trip
	for _, trip := range c.Trips {
		least = min(least, trip)
	}
	return least
}

// mostLate is how late a packet may be delivered, so that several are at once. Arbitrary: some packets of 500 Mbit/s.
const mostLate = 200 * time.Microsecond

// late returns how late a packet may be delivered: no more than a hundredth of a round trip.
func (c *Config) late() time.Duration { return min(c.leastTrip()/100, mostLate) }

// Package lossy loses or changes some of what a transport receives, as a network does, where no
// network can be made to: between two processes of one machine, without privileges.
//
//	e, err := dgrdma.OpenOver("udp:7100", cfg, func(t dgrdma.Transport) dgrdma.Transport {
//		return lossy.New(t, 0.01, seed)
//	})
//
// What is lost was sent and received, and costs both sides as much.
package lossy

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/harm"
)

// Conn is a [transport.Conn] that loses datagrams which the one that it wraps received. It
// is like it in everything else.
type Conn struct {
	transport.Conn
	chance     float64
	damage     float64
	rng        *rand.Rand // of who receives
	came, lost atomic.Uint64
	damaged    atomic.Uint64
}

// NewDamaging wraps c as New does, and changes each datagram with that chance where it would lose it,
// behind the checksum of the wire, as the memory of a switch may.
func NewDamaging(c transport.Conn, chance float64, seed uint64) *Conn {
	d := New(c, 0, seed)
	d.damage = chance
	return d
}

// New wraps c. Each datagram is lost with that chance, from 0 to below 1, and independently:
// the i-th one's fate depends on the seed alone.
func New(c transport.Conn, chance float64, seed uint64) *Conn {
	return &Conn{Conn: c, chance: chance, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Recv implements [transport.Conn].
func (c *Conn) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	for {
		n, err := c.Conn.Recv(dst, wait)
		kept := 0
		for i := range n {
			if c.rng.Float64() < c.chance {
				continue
			}
			if c.damage > 0 && c.rng.Float64() < c.damage {
				harm.Do(dst[i].Data, c.rng.Uint64N)
				c.damaged.Add(1)
			}
			dst[kept], dst[i] = dst[i], dst[kept]
			kept++
		}
		c.came.Add(uint64(n))
		c.lost.Add(uint64(n - kept))
		if kept > 0 || err != nil || wait != transport.Forever || n == 0 {
			return kept, err
		}
	}
}

// Lost returns how many datagrams were lost, and of how many.
func (c *Conn) Lost() (lost, of uint64) { return c.lost.Load(), c.came.Load() }

// Damaged returns how many datagrams were changed.
func (c *Conn) Damaged() uint64 { return c.damaged.Load() }

package rpcrdma

import "time"

// Memory registers memory for the peer. Neither method blocks.
type Memory interface {
	// Register lets the peer of this connection, and no other one, use memory: to write it, or else to read it. It sets
	// the Segment and Region of the Lease. Base is the offset of the first octet.
	// If the Lease has a Region, that one is registered again.
	Register(l *Lease, b []byte, write bool, base uint64) error
	// Withdraw ends that. When it returns, the peer touches the memory no more. A Lease that the peer has
	// invalidated is withdrawn as well: part of the peer's last access may still be there.
	Withdraw(l *Lease)
}

// Lease is memory that the peer may use. Leases are inside Calls and are moved with them: Memory keeps no pointer
// to one.
type Lease struct {
	Segment      // as the peer is told
	Region  any  // of Memory
	Live    bool // from Register until Withdraw; kept by the machine
}

// Pool is buffers, of all connections. Neither method blocks.
type Pool interface {
	// Get returns a Buffer whose B has a length of n. It returns nil if there is none now; the machine then tries again
	// when it is told anything, and has Tick called soon.
	Get(n int) *Buffer
	Put(*Buffer)
}

// Buffer is memory that has one owner at a time, who hands it on or gives it back to the Pool.
type Buffer struct {
	B  []byte
	Of any // of the Pool
}

// retryTime is when a machine looks again whether the Pool has a buffer, if it is told nothing before. It is arbitrary.
const retryTime = 10 * time.Millisecond

// get takes a buffer, if there is one.
func (m *Machine) get(n int) *Buffer {
	b := m.pool.Get(n)
	m.short = m.short || b == nil
	return b
}

// put gives a buffer back, if there is one.
func (m *Machine) put(b *Buffer) {
	if b != nil {
		m.pool.Put(b)
	}
}

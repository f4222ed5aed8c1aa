package rpc

import (
	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
)

// rdmaMemory registers memory for the peer of one queue pair.
type rdmaMemory struct {
	domain *verbs.Domain
	only   *verbs.Stream
}

// Register is that of [rpcrdma.Memory].
func (m rdmaMemory) Register(l *rpcrdma.Lease, b []byte, write bool, base uint64) error {
	rights := verbs.RemoteRead
	if write {
		rights = verbs.RemoteWrite
	}
	region, ok := l.Region.(*verbs.Region)
	var err error
	if ok {
		err = region.Reregister(b, rights, base)
	} else {
		region, err = m.domain.Register(b, rights, &verbs.RegionOptions{Base: base, Only: m.only})
	}
	if err != nil {
		return err
	}
	l.Region = region
	l.Segment = rpcrdma.Segment{Handle: region.STag(), Length: uint32(len(b)), Offset: base}
	return nil
}

// Withdraw is that of [rpcrdma.Memory].
func (m rdmaMemory) Withdraw(l *rpcrdma.Lease) { l.Region.(*verbs.Region).Invalidate() }

// rdmaPool is the buffers of all connections.
type rdmaPool struct{}

// Get is that of [rpcrdma.Pool].
func (rdmaPool) Get(n int) *rpcrdma.Buffer {
	m := takeMemory(n)
	m.buffer.B, m.buffer.Of = m.b[:n], m
	return &m.buffer
}

// Put is that of [rpcrdma.Pool].
func (rdmaPool) Put(b *rpcrdma.Buffer) { b.Of.(*memory).release() }

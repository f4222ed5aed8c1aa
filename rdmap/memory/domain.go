package memory

import "github.com/dgrdma/dgrdma/rdmap/ddp"

// Domain is a protection domain: what its streams may touch, and no stream of another one
// (RDMAP-098).
type Domain struct {
	shared Stream // stands for all streams of the domain in grants
}

// Stream is one RDMA stream, as memory sees it. Its methods do what its peer asks for, or
// say why the peer may not. They may be called by many goroutines.
type Stream struct {
	domain *Domain
	table  *Table
}

// NewDomain makes a domain without memory and streams.
func (t *Table) NewDomain() *Domain {
	d := new(Domain)
	d.shared = Stream{domain: d, table: t}
	return d
}

// NewStream makes a stream of the domain. It has nothing that needs to be closed, but memory
// that was registered for it alone stays until somebody invalidates it.
func (d *Domain) NewStream() *Stream { return &Stream{domain: d, table: d.shared.table} }

// Domain is that of the stream.
func (s *Stream) Domain() *Domain { return s.domain }

// Find says where the n bytes from the TO to are, if the stream may do with them all that
// right says. The bytes are to be touched as [ddp.Span] tells: they may be withdrawn since. Of 0
// bytes the offset does not matter.
func (s *Stream) Find(stag uint32, to uint64, n uint32, right Rights) (ddp.Span, Violation) {
	g, bytes, epoch, v := s.find(stag, to, n, right)
	if v != None {
		return ddp.Span{}, v
	}
	return ddp.Span{Bytes: bytes, Guard: g, Epoch: epoch}, None
}

// find is Find in parts.
func (s *Stream) find(stag uint32, to uint64, n uint32, right Rights) (g *Grant, bytes []byte, epoch uint64, v Violation) {
	if g = s.table.lookup(stag); g == nil {
		return nil, nil, 0, STag
	}
	gate := g.gate.Load()
	epoch = gate &^ inside
	now, rights, base := g.stag.Load(), g.Rights(), g.base.Load()
	first, size := g.first.Load(), g.size.Load()
	switch {
	case gate&shut != 0, now != stag, g.gate.Load()&^inside != epoch: // the last: or these are not of one epoch
		return nil, nil, 0, STag
	case g.by != s && g.by != &s.domain.shared:
		return nil, nil, 0, Association
	case rights&right != right:
		return nil, nil, 0, Permission
	}
	at, v := within(base, size, to, n)
	if v != None || n == 0 {
		return g, nil, epoch, v
	}
	return g, run(first, size)[at : at+uint64(n) : at+uint64(n)], epoch, None
}

// Invalidate withdraws what the STag names, with all its windows, because the stream's peer
// wants it (RDMAP-050). It may be called on the goroutine that receives: nobody enters the
// memory any more, but it does not wait for those inside. [Region.Invalidate] still does.
//
// Memory that other streams may use as well is not a peer's to invalidate (RDMAP-103). The
// error is [ddp.ProtectionInvalidate] then, as it is of a STag that names nothing.
func (s *Stream) Invalidate(stag uint32) error {
	g := s.table.lookup(stag)
	if g == nil || g.by != s || !g.region.withdraw(g, stag) {
		return ddp.ProtectionInvalidate
	}
	return nil
}

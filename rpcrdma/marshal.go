package rpcrdma

import (
	"cmp"
	"slices"

	"github.com/dgrdma/dgrdma/xdr"
)

// peerLimits are how many chunks and segments the peer takes: what an ERROR of it said (RPC2-085 to RPC2-087).
type peerLimits struct{ reads, writes, segments int }

// mostParts is how many parts a Reply of version 2 has before a Reply chunk is given for it. The number is arbitrary.
const mostParts = 8

// lists are the memory of a header that is being made.
type lists struct {
	segments [MaxSegments]Segment
	reads    [MaxReadChunks]ReadChunk
	writes   [MaxInto]Chunk
}

// mayMakeCalls reports whether the time of Calls has come (RPC2-061).
func (m *Machine) mayMakeCalls() bool {
	return m.phase == Open && (m.version == Version1 || m.settle.said)
}

// takesCalls reports whether the peer takes Calls of this side (RPC2-076, RPC1-062).
func (m *Machine) takesCalls() bool {
	if m.cfg.Side == Client {
		return true
	}
	return m.cfg.Reverse > 0 && (m.version != Version2 || m.phase != Open || m.settle.peer.Reverse > ReverseNone)
}

// mayLend reports whether Calls of this side may have lists. Those of version 1's reverse direction have none (RPC1-060).
func (m *Machine) mayLend() bool {
	return m.cfg.Side == Client || m.version == Version2 && m.settle.peer.Reverse == ReverseGeneral
}

// mayContinue reports whether Calls of this side, and their Replies, may have parts.
func (m *Machine) mayContinue() bool {
	return m.version == Version2 && (m.cfg.Side == Client || m.settle.peer.Reverse >= ReverseContinued)
}

// plan decides how a Call travels, by what is known of the peer now. It is not ok if the pool has no buffer for that now.
//
//	all of it fits into a Send                  one Send
//	version 1                                   the longest item is a Read chunk; if the rest does not fit either, it is the Read chunk at
//	                                            Position 0. Two chunks of items are never given: Linux's server misplaces the second
//	version 2                                   as many items as needed are Read chunks; what does not fit then has parts
//
//	the longest Reply does not fit into a Send  version 1: a Reply chunk, without Write chunks, which Linux's server miscounts;
//	                                            version 2: a Reply chunk, if it would take many parts
func (m *Machine) plan(o *call) (ok bool, err error) {
	c := o.of
	if !m.takesCalls() {
		return true, ErrReverse
	}
	o.reads, o.writes, o.hasReply, o.special = 0, 0, false, false
	m.planReply(o)
	rest, limit := len(c.Head), m.threshold()
	for i := range c.Items {
		rest += xdr.Padded(len(c.Items[i].Data))
	}
	for m.mayLend() && m.callHeaderSize(o)+rest > limit && m.planRead(o) {
		rest -= xdr.Padded(o.chunks[o.reads-1].length)
	}
	if m.callHeaderSize(o)+rest > limit && !m.mayContinue() {
		if !m.mayLend() {
			return true, ErrTooLong
		}
		o.special = true
		o.chunks[o.reads] = readPlan{0, wholeMessage, rest}
		o.reads++
	}
	slices.SortFunc(o.chunks[:o.reads], func(a, b readPlan) int { return cmp.Compare(a.position, b.position) })
	return m.flatten(o, rest), nil
}

// planReply decides which chunks are given for the Reply.
func (m *Machine) planReply(o *call) {
	c := o.of
	if !m.mayLend() {
		return
	}
	all, into := c.MaxReply, len(c.Into) <= m.req.limits.writes
	for i := range c.Into {
		all += xdr.Padded(len(c.Into[i]))
		into = into && len(c.Into[i]) > 0
	}
	if m.replyFits(o, all) { // a copy costs less than a lease
		return
	}
	long := all
	if into {
		o.writes = len(c.Into)
		switch {
		case !m.headerFits(o), m.version == Version1 && !m.replyFits(o, c.MaxReply):
			o.writes = 0
		default:
			long = c.MaxReply
		}
	}
	if m.replyFits(o, long) || m.mayContinue() && long <= mostParts*m.replyThreshold() {
		return
	}
	o.hasReply, o.replySize = true, long
	o.hasReply = m.headerFits(o) // in version 1 it always does: it has no other segment
}

// headerFits reports whether the header of a Call has as many segments as the peer takes, and fits into a Send.
func (m *Machine) headerFits(o *call) bool {
	return m.segmentsUsed(o) <= m.mostSegments() && m.callHeaderSize(o) <= m.threshold()
}

// replyFits reports whether a Reply of n octets after its header fits into a Send. Linux's server sends what does not fit
// all the same, so that a Reply chunk must be there.
func (m *Machine) replyFits(o *call, n int) bool {
	return m.headerSize(0, o.writes, m.segmentsUsed(o))+n <= m.replyThreshold()
}

// planRead has the longest item that is not reduced be a Read chunk. It reports whether there is one that may be.
func (m *Machine) planRead(o *call) bool {
	most := m.req.limits.reads
	if m.version == Version1 {
		most = 1
	}
	if o.reads >= most {
		return false
	}
	items, best := o.of.Items, -1
	for i := range items {
		if len(items[i].Data) > 0 && !o.reduced(i) && (best < 0 || len(items[i].Data) > len(items[best].Data)) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	o.chunks[o.reads] = readPlan{uint32(xdr.Position(items, best)), best, len(items[best].Data)}
	o.reads++
	if !m.headerFits(o) {
		o.reads--
		return false
	}
	return true
}

// reduced reports whether an item is a Read chunk.
func (o *call) reduced(item int) bool {
	for i := range o.chunks[:o.reads] {
		if o.chunks[i].item == item {
			return true
		}
	}
	return false
}

// lendsItems reports whether the peer may use memory of the program.
func (o *call) lendsItems() bool {
	return o.lent && (o.writes > 0 || o.reads > 1 || o.reads == 1 && !o.special)
}

// segmentsOf returns how many segments a run of n octets takes.
func (m *Machine) segmentsOf(n int) int {
	size := uint64(m.segmentSize())
	return int((uint64(n) + size - 1) / size)
}

// mostSegments returns how many segments a header may have.
func (m *Machine) mostSegments() int {
	if m.version == Version1 {
		return MaxSegments
	}
	return min(m.req.limits.segments, int(m.settle.peer.SegmentCount))
}

// segmentsUsed returns how many segments the header of a Call has.
func (m *Machine) segmentsUsed(o *call) (n int) {
	for i := range o.chunks[:o.reads] {
		n += m.segmentsOf(o.chunks[i].length)
	}
	for i := range o.writes {
		n += m.segmentsOf(len(o.of.Into[i]))
	}
	if o.hasReply {
		n += m.segmentsOf(o.replySize)
	}
	return n
}

// headerSize returns the length of a header whose Read chunks, and all of whose chunks, have so many segments.
func (m *Machine) headerSize(reads, counted, segments int) int {
	n := PrefixSize1 + 3*wordSize
	if m.version == Version2 {
		n = PrefixSize2 + 4*wordSize
	}
	return n + reads*2*wordSize + counted*2*wordSize + segments*segmentSize
}

// callHeaderSize returns the length of the header of a Call, the last one if it has parts.
func (m *Machine) callHeaderSize(o *call) int {
	reads := 0
	for i := range o.chunks[:o.reads] {
		reads += m.segmentsOf(o.chunks[i].length)
	}
	n := m.headerSize(reads, o.writes, m.segmentsUsed(o))
	if o.hasReply {
		n += wordSize
	}
	return n
}

// flatten makes the message without the items that are reduced, of n octets. It reports false if the pool has no buffer.
func (m *Machine) flatten(o *call, n int) bool {
	c := o.of
	if n == len(c.Head) && !o.special {
		o.head = c.Head
		return true
	}
	if o.flat = m.get(n); o.flat == nil {
		return false
	}
	b, done := o.flat.B[:0], 0
	for i, item := range c.Items {
		b = append(b, c.Head[done:item.At]...)
		done = item.At
		if !o.reduced(i) {
			b = appendPad(append(b, item.Data...), len(item.Data))
		}
	}
	o.head = append(b, c.Head[done:]...)
	return true
}

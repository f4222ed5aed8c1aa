package tests

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// propertyTx is one transaction and what is known of it.
type propertyTx struct {
	idx   uint32 // also the completion value
	flow  *propertyFlow
	place *propertyPlace
	life  int // of the poster
	t     dgrdma.Transaction

	posted    bool
	done      int
	err       error
	withdrawn bool
	at        []propertyTrace // by life of the receiver
}

// propertyTrace is what a transaction did to one life of a memory.
type propertyTrace struct {
	placed    int
	completed int
}

// propertyPlace is a part of the receiver's memory: a completion word and
// segments. Places that are not reused belong to one transaction.
type propertyPlace struct {
	node       int
	completion uint32
	segments   []uint32
	lengths    []int
	total      int
	txs        []*propertyTx // in order of posting
	latest     uint32        // youngest transaction whose data came
	latestLife int           // of the receiver
}

const propertyGranule = 16

func (x *propertyTx) trace(life int) *propertyTrace {
	for len(x.at) <= life {
		x.at = append(x.at, propertyTrace{})
	}
	return &x.at[life]
}

// pattern returns the bytes of a segment.
func (x *propertyTx) pattern(segment int) []byte {
	n := x.place.lengths[segment]
	at := int((x.idx*2654435761 + uint32(segment)*40503*7) >> 8)
	at %= len(worlds.Table) - n
	return worlds.Table[at : at+n]
}

func (x *propertyTx) name() string {
	return fmt.Sprintf("transaction %d (flow %d, %d->%d)", x.idx, x.flow.index, x.flow.plan.from, x.flow.plan.to)
}

// propertyMemory is a Region that checks what is done to it.
type propertyMemory struct {
	*dgrdma.Region
	w    *propertyWorld
	node int
	life int
}

var errPropertyMemory = errors.New("the memory does not want this")

// owner returns whose data lies at an address.
func (m *propertyMemory) owner(msg *frame.Message) *propertyTx {
	w := m.w
	if msg.Completes() {
		if v := msg.CompletionValue; v >= 1 && int(v) <= len(w.txs) {
			return w.txs[v-1]
		}
		return nil
	}
	owners := w.owners[m.node]
	if g := int(msg.Addr) / propertyGranule; g < len(owners) && owners[g] != nil && len(owners[g].txs) > 0 {
		return owners[g].txs[0]
	}
	return nil
}

// position finds the segment and offset of a message's data.
func (x *propertyTx) position(m *frame.Message) (segment, off int, ok bool) {
	for i, a := range x.place.segments {
		n := x.place.lengths[i]
		if off := int(m.Addr) - int(a); off >= 0 && off < n && off+int(m.Len) <= n+3 {
			return i, off, true
		}
	}
	return 0, 0, false
}

// Admit checks that a message is one that was posted, and not one of a
// transaction after which others have come.
func (m *propertyMemory) Admit(src frame.EndpointID, msg *frame.Message) ([]byte, error) {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if msg.Len == 0 && !msg.Completes() {
		return nil, nil
	}
	if src >= propertyFirstGuest {
		return nil, dgrdma.Swallow(errPropertyMemory)
	}
	x := m.owner(msg)
	switch {
	case x == nil:
		w.failf("node %d: message of no transaction: %+v", m.node, *msg)
		return nil, errPropertyMemory
	case x.flow.plan.to != m.node || src != w.nodes[x.flow.plan.from].id:
		w.failf("node %d: %s came from %d", m.node, x.name(), src)
	case x.withdrawn:
		w.failf("node %d: %s was withdrawn and yet sent", m.node, x.name())
	case !x.posted:
		w.failf("node %d: %s was not posted and yet sent", m.node, x.name())
	case msg.Completes() && msg.CompletionAddr != x.place.completion:
		w.failf("node %d: %s completes at %#x, want %#x", m.node, x.name(), msg.CompletionAddr, x.place.completion)
	}
	if msg.Len > 0 {
		if _, _, ok := x.position(msg); !ok {
			w.failf("node %d: %s has no data at %#x+%d", m.node, x.name(), msg.Addr, msg.Len)
		}
	}
	if x.flow.plan.reuse {
		p := x.place
		if p.latestLife != m.life {
			p.latestLife, p.latest = m.life, 0
		}
		if p.latest > x.idx {
			w.failf("node %d: %s comes after %d, which was posted when it was done", m.node, x.name(), p.latest)
		}
		p.latest = max(p.latest, x.idx)
	}
	if x.idx%3 == 0 {
		switch x.flow.plan.fate {
		case fateRefused:
			return nil, errPropertyMemory
		case fateSwallowed:
			return nil, dgrdma.Swallow(errPropertyMemory)
		}
	}
	return m.Region.Admit(src, msg)
}

// Placed counts the bytes of each transaction.
func (m *propertyMemory) Placed(_ frame.EndpointID, msg *frame.Message) {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	x := m.owner(msg)
	if x == nil {
		return
	}
	seg, off, ok := x.position(msg)
	if !ok {
		return
	}
	tr := x.trace(m.life)
	tr.placed += min(int(msg.Len), x.place.lengths[seg]-off)
	if tr.placed > x.place.total {
		w.failf("node %d: %s was placed more than once: %d bytes of %d", m.node, x.name(), tr.placed, x.place.total)
	}
}

// Complete checks that a completion comes once, and after its data.
func (m *propertyMemory) Complete(src frame.EndpointID, msg *frame.Message) {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	x := m.owner(msg)
	if x == nil {
		w.failf("node %d: completion of no transaction: %+v", m.node, *msg)
		return
	}
	tr := x.trace(m.life)
	if tr.completed++; tr.completed > 1 {
		w.failf("node %d: %s completed %d times", m.node, x.name(), tr.completed)
	}
	if w.log != nil {
		w.logf("node %d: %s completed", m.node, x.name())
	}
	if tr.placed != x.place.total {
		w.failf("node %d: %s completed with %d of %d bytes", m.node, x.name(), tr.placed, x.place.total)
	}
	m.compare(x, "at its completion")
	m.Region.Complete(src, msg)
}

// compare checks that all of a transaction's data is there.
func (m *propertyMemory) compare(x *propertyTx, when string) {
	for i, a := range x.place.segments {
		want := x.pattern(i)
		if got := m.Bytes()[a : int(a)+len(want)]; !bytes.Equal(got, want) {
			at := 0
			for got[at] == want[at] {
				at++
			}
			m.w.failf("node %d: %s differs %s: segment %d at %#x, byte %d of %d is %#x, want %#x",
				m.node, x.name(), when, i, a, at, len(want), got[at], want[at])
			return
		}
	}
}

// applied reports whether some life of the receiver got all of a transaction.
func (x *propertyTx) applied() bool {
	for i := range x.at {
		if x.at[i].completed > 0 || !x.flow.plan.completion && x.at[i].placed == x.place.total {
			return true
		}
	}
	return x.place.total == 0 && !x.flow.plan.completion
}

// image checks the whole memory: transactions that are done are there, those
// that failed only with bytes of theirs, and nothing is anywhere else.
func (m *propertyMemory) image() {
	w, mem := m.w, m.Bytes()
	for _, p := range w.places[m.node] {
		var last *propertyTx
		for _, x := range p.txs {
			if m.life < len(x.at) && x.at[m.life] != (propertyTrace{}) {
				last = x
			}
		}
		if last != nil && last.at[m.life].placed == p.total {
			m.compare(last, "at the end")
		}
		for i, a := range p.segments {
			got := mem[a : int(a)+p.lengths[i]]
			if len(p.txs) == 1 && last != nil {
				for j, want := range last.pattern(i) {
					if got[j] != want && got[j] != 0 {
						w.failf("node %d: %s left a wrong byte at %#x", m.node, last.name(), int(a)+j)
						break
					}
				}
			}
			if last != nil {
				clear(got)
			}
		}
		m.completionWord(p, last)
	}
	for i, b := range mem {
		if b != 0 {
			w.failf("node %d: byte %#x is %#x and nobody's", m.node, i, b)
			return
		}
	}
}

func (m *propertyMemory) completionWord(p *propertyPlace, last *propertyTx) {
	if p.completion == frame.NoCompletion {
		return
	}
	want := uint32(0)
	for _, x := range p.txs {
		if m.life < len(x.at) && x.at[m.life].completed > 0 {
			want = x.idx
		}
	}
	if got := m.Load32(p.completion); got != want {
		m.w.failf("node %d: completion word %#x is %d, want %d", m.node, p.completion, got, want)
	}
	m.Store32(p.completion, 0)
}

package tcp

import (
	"cmp"
	"container/heap"
	"slices"
)

// End says that the capture has ended. What waits, of all connections, is told in the order of the capture.
func (t *Connections) End() {
	var rest []*Connection
	for _, c := range t.all {
		rest = append(rest, c)
	}
	slices.SortFunc(rest, func(a, b *Connection) int { return cmp.Compare(a.Number, b.Number) })
	var all ends
	for _, c := range rest {
		c.beginAll()
		if e, ok := c.next(); ok {
			heap.Push(&all, e)
		}
	}
	for len(all) > 0 {
		e := heap.Pop(&all).(end)
		t.tellNext(e.c, e.way)
		if e, ok := e.c.next(); ok {
			heap.Push(&all, e)
		}
	}
	for _, c := range rest {
		t.tellAcked(c)
		t.remove(c, Ended)
	}
}

// end is what is told next of a connection of which no more comes.
type end struct {
	c      *Connection
	way    Way
	record int
}

// ends are a heap of those.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].record < e[j].record }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// drainAll tells all that there is of a connection, since nothing more comes.
func (t *Connections) drainAll(c *Connection) {
	c.beginAll()
	for e, ok := c.next(); ok; e, ok = c.next() {
		t.tellNext(c, e.way)
	}
	t.tellAcked(c)
}

// tellAcked says what is missing at the end of a direction: what the other side has acknowledged, and nothing captured follows.
func (t *Connections) tellAcked(c *Connection) {
	if c.ignored || c.over {
		return
	}
	for w := range c.Halves {
		h := &c.Halves[w]
		if n, at := h.hole(); h.begun && n > 0 && !h.ackedSYN {
			h.next += uint32(n)
			t.missing(c, Way(w), int(n), at)
		}
	}
}

// beginAll begins directions where they were captured first.
func (c *Connection) beginAll() {
	for w := range c.Halves {
		if h := &c.Halves[w]; !h.begun && len(h.pieces) > 0 {
			h.start(h.pieces[0].seq)
		}
	}
}

// next returns what is told next: pieces, and behind them the ends of directions.
func (c *Connection) next() (e end, ok bool) {
	if c.ignored || c.over {
		return e, false
	}
	for w := range c.Halves {
		if h := &c.Halves[w]; len(h.pieces) > 0 && (!ok || c.before(Way(w), e.way)) {
			e, ok = end{c, Way(w), h.pieces[0].at.Record}, true
		}
	}
	if ok {
		return e, true
	}
	for w := range c.Halves {
		if h := &c.Halves[w]; h.begun && h.fin && !h.finished && (!ok || h.finRef.Record < e.record) {
			e, ok = end{c, Way(w), h.finRef.Record}, true
		}
	}
	return e, ok
}

// tellNext tells of the next piece of a direction, or of its end, and before that what is missing in front.
func (t *Connections) tellNext(c *Connection, w Way) {
	h := &c.Halves[w]
	if len(h.pieces) == 0 {
		t.fill(c, w, h.finAt, h.finRef)
		h.fin = t.advance(c, w) // an end too far from what is known is none
		return
	}
	if t.unheard(c, w) {
		return
	}
	t.fill(c, w, h.pieces[0].seq, h.pieces[0].at)
	t.advance(c, w)
}

// before reports whether what waits of a direction is told before that of the other one: what its sender had not heard yet, and else what
// was captured first.
func (c *Connection) before(w, other Way) bool {
	p, o := c.Halves[w].pieces[0], c.Halves[other].pieces[0]
	if a, b := c.early(w, p), c.early(other, o); a != b {
		return b
	}
	return p.at.Record < o.at.Record
}

// unheard says what is missing of what the sender of the next piece had heard: an answer does not come before the hole that has its request. It reports
// whether the other direction goes on first: its next piece was heard as well, and does not wait itself.
func (t *Connections) unheard(c *Connection, w Way) bool {
	p, o := c.Halves[w].pieces[0], &c.Halves[1-w]
	if !o.begun || !c.early(w, p) {
		return false
	}
	to, at := p.ack, p.at
	if len(o.pieces) > 0 && int32(o.pieces[0].seq-to) < 0 {
		to, at = o.pieces[0].seq, o.pieces[0].at
	} else if o.fin && to == o.finAt+1 {
		to--
	}
	if len(o.pieces) > 0 || to-o.next > 1 { // else it may be the end of the direction
		t.fill(c, 1-w, to, at)
	}
	return len(o.pieces) > 0 && o.pieces[0].seq == o.next && c.early(w, p) && !c.early(1-w, o.pieces[0])
}

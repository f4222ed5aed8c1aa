package endpoint

import "iter"

// turnBytes is how much of one flow is packed before it is the next one's turn.
// Arbitrary: eleven full frames on Ethernet, which take 1 Gbit/s 0.13 ms.
const turnBytes = 16 << 10

// mostAmid is how many flows may be amid a transaction of several frames: each is one that
// the peer has to keep open, of which it may keep no more than a few, see reserve. What
// fits a frame does not count. Arbitrary.
const mostAmid = 32

// first returns what is to be packed next.
func (f *Flow) first() *Transaction {
	if f.part != nil {
		return f.part
	}
	return f.waiting.head
}

// fenced reports whether the next one, which is there, has to wait until the others are done.
func (f *Flow) fenced() bool {
	t := f.first()
	return !t.begun && t.Fence && f.open > 0
}

// rota is a ring of flows.
type rota struct{ cur *Flow }

// add puts a flow behind all others.
func (r *rota) add(f *Flow) {
	f.rota = r
	if r.cur == nil {
		r.cur, f.prev = f, f
	}
	f.prev, f.next = r.cur.prev, r.cur
	f.prev.next, f.next.prev = f, f
}

func (r *rota) remove(f *Flow) {
	if f.next == f {
		r.cur = nil
	} else {
		f.prev.next, f.next.prev = f.next, f.prev
		if r.cur == f {
			r.cur = f.next
		}
	}
	f.rota, f.prev, f.next = nil, nil, nil
}

func (r *rota) all() iter.Seq[*Flow] {
	return func(yield func(*Flow) bool) {
		for f := r.cur; f != nil; {
			if !yield(f) {
				return
			}
			if f = f.next; f == r.cur {
				return
			}
		}
	}
}

// lanes are the transactions posted on a connection: those that have begun, by their
// ids, and those that wait, in flows.
type lanes struct {
	n      int   // of them all
	begun  chain // of which not all need be in frames
	urgent Flow
	turns  rota    // flows with something to pack
	fences rota    // flows that wait until what they have begun is done
	amid   []*Flow // those of which a transaction is in some frames and not in all
	left   int     // bytes that are left of the turn
	strict bool    // the peer wants one transaction after the other
}

// queue returns where a transaction waits.
func (l *lanes) queue(t *Transaction) *Flow {
	if t.Urgent && !t.Fence {
		return &l.urgent
	}
	return t.flow
}

// push adds a transaction of a flow, and reports whether it is to be packed next.
func (l *lanes) push(f *Flow, t *Transaction) (next bool) {
	t.flow = f
	f.n++
	q := l.queue(t)
	q.waiting.push(t)
	l.n++
	if q.rota == nil { // else what is first in it is what was
		l.place(q)
	}
	return q.first() == t && l.turn() == q
}

// has reports whether t is posted, as opposed to on its way to Done.
func (l *lanes) has(t *Transaction) bool { return t.flow != nil }

// place puts a flow where it belongs.
func (l *lanes) place(q *Flow) {
	var where *rota
	switch {
	case q == &l.urgent || q.first() == nil:
	case q.fenced():
		where = &l.fences
	default:
		where = &l.turns
	}
	if where == q.rota {
		return
	}
	if q.rota != nil {
		if q == l.turns.cur {
			l.left = turnBytes
		}
		q.rota.remove(q)
	}
	if where != nil {
		if l.turns.cur == nil {
			l.left = turnBytes
		}
		where.add(q)
	}
}

// turn returns the flow whose first transaction is to be packed next; nil: there is none.
func (l *lanes) turn() *Flow {
	switch {
	case l.strict && len(l.amid) > 0: // no more than one is, and nothing urgent beside it
		return l.amid[0]
	case l.urgent.first() != nil:
		return &l.urgent
	}
	return l.turns.cur
}

// turnBegun is turn where that transaction has not begun, and none may begin. So nothing
// urgent has, and nothing at all if the peer wants one after the other.
func (l *lanes) turnBegun() *Flow {
	if len(l.amid) == 0 {
		return nil
	}
	return l.amid[0]
}

// crowded reports whether no other flow may be amid a transaction.
func (l *lanes) crowded() bool { return len(l.amid) >= mostAmid }

// enter notes that a flow is amid that transaction, and leave that it is no more.
func (l *lanes) enter(q *Flow, t *Transaction) {
	q.part = t
	if q != &l.urgent {
		l.amid = append(l.amid, q)
		q.amid = len(l.amid)
	}
}

func (l *lanes) leave(q *Flow) {
	q.part = nil
	if q == &l.urgent {
		return
	}
	last := len(l.amid) - 1
	moved := l.amid[last]
	l.amid[q.amid-1], moved.amid = moved, q.amid
	l.amid[last], l.amid = nil, l.amid[:last]
	q.amid = 0
}

// begin notes that the first transaction of a flow got its id.
func (l *lanes) begin(q *Flow) {
	t := q.waiting.pop()
	l.begun.push(t)
	q.open++
}

// joins reports whether messages of t may follow those of last in a frame: frames know
// their transactions as neighbours, and what has begun goes on with a frame of its own,
// as was counted when it began.
func (l *lanes) joins(last, t *Transaction) bool {
	return last == nil || !t.begun && l.begun.tail == last
}

// packed notes that so many bytes of a transaction of a flow are in a frame.
func (l *lanes) packed(q *Flow, t *Transaction, bytes int) {
	switch {
	case !t.complete && q.part == nil:
		l.enter(q, t)
	case t.complete:
		if q.part != nil {
			l.leave(q)
		}
		if h := q.waiting.head; h == nil || h.Fence {
			l.place(q)
		}
	}
	if q == l.turns.cur {
		if l.left -= bytes; l.left <= 0 {
			l.turns.cur, l.left = q.next, turnBytes
		}
	}
}

// remove takes a transaction out.
func (l *lanes) remove(t *Transaction) {
	q := l.forget(t)
	if !t.begun {
		q.waiting.remove(t)
		l.place(q)
		return
	}
	l.begun.remove(t)
	q.open--
	if q.part == t {
		l.leave(q)
	}
	if q.rota != nil && (q.rota == &l.fences || q.first() == nil) {
		l.place(q)
	}
}

// done is remove of one that is complete: its flow stays where it is, but for a fence that
// waited for it.
func (l *lanes) done(t *Transaction) {
	q := l.forget(t)
	l.begun.remove(t)
	if q.open--; q.rota == &l.fences {
		l.place(q)
	}
}

// forget counts a transaction no more, and returns its lane.
func (l *lanes) forget(t *Transaction) *Flow {
	q := l.queue(t)
	t.flow.n--
	t.flow = nil
	l.n--
	return q
}

// some returns a transaction; nil: there is none.
func (l *lanes) some() *Transaction {
	if l.begun.head != nil {
		return l.begun.head
	}
	for t := range l.waiting() {
		return t
	}
	return nil
}

// waiting returns the transactions that have not begun.
func (l *lanes) waiting() iter.Seq[*Transaction] {
	return func(yield func(*Transaction) bool) {
		for t := l.urgent.waiting.head; t != nil; t = t.next {
			if !yield(t) {
				return
			}
		}
		for _, r := range [...]*rota{&l.turns, &l.fences} {
			for f := range r.all() {
				for t := f.waiting.head; t != nil; t = t.next {
					if !yield(t) {
						return
					}
				}
			}
		}
	}
}

// chain is a list of transactions.
type chain struct{ head, tail *Transaction }

func (c *chain) push(t *Transaction) {
	t.prev, t.next = c.tail, nil
	if c.tail == nil {
		c.head = t
	} else {
		c.tail.next = t
	}
	c.tail = t
}

// pop takes the first one out, which is there.
func (c *chain) pop() *Transaction {
	t := c.head
	if c.head = t.next; c.head == nil {
		c.tail = nil
	} else {
		c.head.prev = nil
	}
	return t
}

func (c *chain) remove(t *Transaction) {
	if t.prev == nil {
		c.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		c.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

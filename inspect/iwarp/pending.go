package iwarp

import (
	"cmp"
	"slices"

	"github.com/dgrdma/dgrdma/rdmap"
)

// pending are the requests of a direction without an answer. To add one and to take one off costs the same however many wait.
type pending struct {
	byAnswer map[rdmap.Opcode]*line // by the opcode of the answer
	waiting  int
	asked    int
	looked   int // requests that were taken off, which tests compare with those that were added
}

// line are the requests of one kind, which are answered in their order.
type line struct {
	waiting []request // the oldest first
	gone    int       // number of waiting[0]: so many were before
	alike   map[what]span
}

type request struct {
	Request
	what what
	next int // number of the next one of which what is the same, unless it is the last
}

// what tells a request from others of its kind in the answer.
type what struct {
	known bool
	id    uint32
	stag  uint32
	to    uint64
	size  uint64
}

// span has the numbers of the first and the last request of which what is the same.
type span struct{ first, last int }

// whatOf returns what the answer to a request has.
func whatOf(r *Request) what {
	switch {
	case !r.Whole:
		return what{}
	case r.Opcode == rdmap.AtomicRequest:
		return what{known: true, id: r.ID}
	}
	return what{known: true, stag: r.Read.SinkSTag, to: r.Read.SinkTO, size: uint64(r.Read.Size)}
}

// whatIn returns what an answer has. Not ok: it does not tell.
func (v *way) whatIn(e *Event) (k what, ok bool) {
	switch {
	case e.Opcode == rdmap.AtomicResponse && e.HasOperands:
		return what{known: true, id: e.Operands.AtomicReply.ID}, true
	case e.Opcode != rdmap.ReadResponse || !e.Started:
		return k, false
	}
	first := &v.tagged.first
	return what{known: true, stag: first.STag, to: first.TO, size: e.Message}, true
}

// add adds a request.
func (p *pending) add(r Request) {
	answer, _ := r.Opcode.Answer()
	l := p.byAnswer[answer]
	if l == nil {
		l = &line{alike: map[what]span{}}
		if p.byAnswer == nil {
			p.byAnswer = map[rdmap.Opcode]*line{}
		}
		p.byAnswer[answer] = l
	}
	p.asked++
	p.waiting++
	r.order = p.asked
	n, k := l.gone+len(l.waiting), whatOf(&r)
	s, there := l.alike[k]
	if there {
		l.waiting[s.last-l.gone].next = n
	} else {
		s.first = n
	}
	s.last = n
	l.alike[k] = s
	l.waiting = append(l.waiting, request{Request: r, what: k})
}

// oldest takes the oldest request with that answer off.
func (p *pending) oldest(answer rdmap.Opcode) (r Request, ok bool) {
	l := p.byAnswer[answer]
	if l == nil || len(l.waiting) == 0 {
		return r, false
	}
	return p.upTo(l, l.gone), true
}

// fitting takes the oldest request off that an answer with k can be for, and those of its kind before it: they were answered before.
func (p *pending) fitting(answer rdmap.Opcode, k what) (r Request, ok bool) {
	l := p.byAnswer[answer]
	if l == nil {
		return r, false
	}
	s, fits := l.alike[k]
	if any, there := l.alike[what{}]; there && (!fits || any.first < s.first) {
		s, fits = any, true
	}
	if !fits {
		return r, false
	}
	return p.upTo(l, s.first), true
}

// upTo takes requests off up to the one with number n, which it returns.
func (p *pending) upTo(l *line, n int) Request {
	for {
		r := l.waiting[0]
		l.waiting[0] = request{}
		l.waiting = l.waiting[1:]
		l.gone++
		p.waiting--
		p.looked++
		if s := l.alike[r.what]; s.last >= l.gone {
			l.alike[r.what] = span{r.next, s.last}
		} else {
			delete(l.alike, r.what)
		}
		if l.gone > n {
			return r.Request
		}
	}
}

// clear forgets all.
func (p *pending) clear() {
	p.byAnswer, p.waiting = nil, 0
}

// all returns the requests in the order in which they were made.
func (p *pending) all() (all []Request) {
	for _, l := range p.byAnswer {
		for i := range l.waiting {
			all = append(all, l.waiting[i].Request)
		}
	}
	slices.SortFunc(all, func(a, b Request) int { return cmp.Compare(a.order, b.order) })
	return all
}

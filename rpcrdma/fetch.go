package rpcrdma

import (
	"slices"
	"time"
)

// Place says where the items of an Incoming go, after ActPlace. Memory that is missing, or too short, is of the pool.
func (m *Machine) Place(now time.Time, in *Incoming, into [][]byte) {
	switch {
	case in.state != inPlacing:
		return
	case in.Gone:
		m.rsp.release(m, in)
		return
	}
	for i := range in.Items {
		n := in.itemLength(i)
		if i < len(into) && len(into[i]) >= n {
			in.Items[i].Data = into[i][:n:n]
		}
	}
	in.state, in.fetching, in.from, in.since = inFetching, 0, segmentCursor{}, now
	m.rsp.now = now
	if !m.rsp.advance(m, now, in) {
		m.rsp.turn = append(m.rsp.turn, in)
	}
}

// room has a place for all that is to be fetched now. It reports false if the pool has none: then nothing is held
// that another Call may wait for.
func (r *responder) room(m *Machine, in *Incoming) bool {
	if in.state == inHead {
		if in.buffer == nil {
			if in.buffer = m.get(int(in.head.Length())); in.buffer == nil {
				return false
			}
			in.Message = in.buffer.B[:in.head.Length()]
		}
		return true
	}
	if in.hasPlaces {
		return true
	}
	in.places = append(in.places[:0], make([]*Buffer, len(in.Items))...)
	for i := range in.Items {
		n := in.itemLength(i)
		if in.Items[i].Data != nil || n == 0 {
			continue
		}
		if in.places[i] = m.get(n); in.places[i] == nil {
			for j, p := range in.places[:i] {
				m.put(p)
				in.places[j] = nil
			}
			return false
		}
	}
	for i, p := range in.places {
		if p != nil {
			n := in.itemLength(i)
			in.Items[i].Data = p.B[:n:n]
		}
	}
	in.hasPlaces = true
	return true
}

// wants returns the next Read of an Incoming, and where it goes. There is none if all are posted.
func (in *Incoming) wants() (from Segment, into []byte, ok bool) {
	if in.state == inHead {
		from, ok = in.from.next(in.head, len(in.Message)-in.from.octets)
		if ok {
			into = in.Message[in.from.octets-int(from.Length):][:from.Length]
		}
		return from, into, ok
	}
	for ; in.fetching < len(in.reads); in.fetching++ {
		data := in.Items[in.fetching].Data
		// The pad that a chunk of version 1 may have is left where it is.
		if from, ok = in.from.next(in.reads[in.fetching].Segments, len(data)-in.from.octets); ok {
			return from, data[in.from.octets-int(from.Length):][:from.Length], true
		}
		in.from = segmentCursor{}
	}
	return from, nil, false
}

// fetched reports whether all Reads of what is being fetched are posted.
func (in *Incoming) fetched() bool {
	from, fetching := in.from, in.fetching
	_, _, more := in.wants()
	in.from, in.fetching = from, fetching
	return !more
}

// advance goes on with an Incoming of which no Read is outstanding, if it needs none any more, and reports whether it does.
func (r *responder) advance(m *Machine, now time.Time, in *Incoming) bool {
	if !r.room(m, in) || !in.fetched() {
		return false
	}
	if in.state == inHead {
		r.headIsThere(m, now, in)
		return true
	}
	in.deliver(m)
	return true
}

// nextRead posts the next Read. At most ORD are outstanding, since verbs completes works in order: a Send after a Read that waits for its
// turn would wait as well. Incomings take turns, one Read each.
func (r *responder) nextRead(m *Machine, room int, a *Action) bool {
	for tries := len(r.turn); tries > 0 && r.reading < m.cfg.ORD; tries-- {
		in := r.turn[0]
		r.turn = slices.Delete(r.turn, 0, 1)
		if !r.room(m, in) {
			r.turn = append(r.turn, in)
			continue
		}
		from, into, ok := in.wants()
		if !ok { // it has nothing to fetch, and waited for the pool alone
			if r.advance(m, r.now, in); m.actions.take(a) {
				return true
			}
			continue
		}
		if !in.fetched() {
			r.turn = append(r.turn, in)
		}
		if in.reading == 0 {
			in.since = r.now
		}
		in.reading++
		r.reading++
		a.To = from
		m.post(a, room, OpRead, into, true, work{in: in, read: true})
		return true
	}
	return false
}

// completed takes a work of an Incoming that is complete.
func (r *responder) completed(m *Machine, now time.Time, w work) {
	in := w.in
	r.now = now
	if !w.read {
		if in.writing--; in.writing == 0 && in.conveyed {
			r.answered = slices.DeleteFunc(r.answered, func(c *Incoming) bool { return c == in })
			r.finish(m, in)
		}
		return
	}
	r.reading--
	in.reading--
	in.since = now
	if in.reading == 0 {
		r.advance(m, now, in)
	}
}

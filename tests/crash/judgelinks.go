package main

import "fmt"

// linkWay is one direction of a link.
type linkWay struct {
	in       int // life of who receives
	received uint32
	life     int // of who accepted it last
	accepted int // how often, in that life
	over     int
	flushes  []flush
}

// flush is that so many messages were reported to have arrived.
type flush struct {
	count uint32
	t     instant
}

func (w *way) link(n name) *linkWay {
	l := w.links[n]
	if l == nil {
		l = &linkWay{}
		w.links[n] = l
	}
	return l
}

// noteLink takes what is known from now on.
func (j *judge) noteLink(w *way, here *seen, s said) {
	n := name{s.life, s.number}
	switch s.kind {
	case isDialed:
		l := j.ways[1-s.side].link(n)
		if l.life != s.own {
			l.life, l.accepted, l.over = s.own, 0, 0
		}
		l.accepted++
	case isFlushed:
		l := w.link(n)
		l.flushes = append(l.flushes, flush{s.extra, s.t})
		here.sent = j.noted(here.sent, s.t)
		j.counts.flushes.Add(1)
	case isReceived:
		l := w.link(n)
		switch {
		case l.in != 0 && l.in != s.own:
			j.violate(s, wrongLife, fmt.Sprintf("message %d; others were in life %d", s.extra, l.in))
		case l.received != s.extra:
			j.violate(s, badMessage, fmt.Sprintf("message %d behind %d others", s.extra, l.received))
		}
		l.in, l.received = s.own, s.extra+1
		here.came = j.noted(here.came, s.t)
		j.counts.messages.Add(1)
	}
}

// linkOver judges that all was received that is to be: also what was reported before that to have arrived.
func (j *judge) linkOver(w *way, s said) {
	l := w.link(name{s.life, s.number})
	if l.over++; l.over < l.accepted {
		return // a Dial that was not answered in time may be accepted twice
	}
	arrived := uint32(0)
	for _, f := range l.flushes {
		if f.t < s.t {
			arrived = f.count
		}
	}
	if l.received < arrived && (l.in == 0 || l.in == s.own) {
		j.violate(s, notReceived, fmt.Sprintf("%d of %d", l.received, arrived))
	}
	l.flushes = nil
}

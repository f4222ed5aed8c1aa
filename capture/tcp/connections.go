package tcp

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/dgrdma/dgrdma/capture"
)

// Bounds. All are arbitrary, but for the time that a byte takes to be searched for.
const (
	Patience    = 64
	InARow      = 10
	PatientFor  = 2 * time.Second
	MostPieces  = 1024
	MostWaiting = 1 << 20
	MostInAll   = 64 << 20
	MostKept    = 1024
	MostOthers  = 8192

	// far is how far from what is expected no sequence number is believed. No window is larger than four times that, and
	// few come near; it leaves the arithmetic of pieces away from its wrap.
	far = 1 << 28
)

// Ref is where something was captured.
type Ref struct {
	Record int
	Time   time.Time
}

// Way is a direction of a connection: by the place of the sender in Connection.Ends.
type Way int

// Handler is told what happens on connections, in the order of the capture. What it is given it must not keep.
type Handler interface {
	// Segment says that a segment is of a connection, before what it brings, also if the connection is ignored or gone.
	Segment(c *Connection)
	// Data has the next bytes of a direction.
	Data(c *Connection, way Way, b []byte, at Ref)
	// Missing says that n bytes follow that were not captured.
	Missing(c *Connection, way Way, n int, at Ref)
	// Finished says that a direction has ended, after its last byte.
	Finished(c *Connection, way Way, at Ref)
	// Reset says that a side has reset the connection. Bytes that were captured before may still follow.
	Reset(c *Connection, way Way, at Ref)
	// Gone says that no more follows.
	Gone(c *Connection, why Why)
}

// Why says why nothing follows of a connection.
type Why int

// Reasons.
const (
	Closed  Why = iota // both directions have ended, or it was reset
	Reused             // another connection has its ports
	Evicted            // there were more than are followed
	Ended              // the capture ends
)

// Connection is one that a capture has segments of.
type Connection struct {
	Number int               // from 1, in the order of their first segments
	Ends   [2]netip.AddrPort // who began the connection is the first, if Begun
	Begun  bool              // its first segment is in the capture
	First  Ref
	Halves [2]Half // by their senders

	Segments int // so far, of both directions
	Refused  Ref // where the SYN of who began was answered by RST; the record is 0: nowhere

	// Of is for the handler, and Held is how many bytes that keeps of the connection.
	Of   any
	Held int

	kept    bool
	ignored bool
	over    bool
	in      *list.List
	place   *list.Element

	decided bool          // nothing is waited for any more from before what was captured
	inARow  int           // segments until now that each follow on those before
	waits   *list.Element // in Connections.undecided
}

// Keep makes the connection one that the handler has an interest in. All others give way to it.
func (c *Connection) Keep() { c.kept = true }

// Ignore says that nothing of the connection is of interest.
func (c *Connection) Ignore() { c.ignored = true }

// Kept reports whether it is kept.
func (c *Connection) Kept() bool { return c.kept }

// Connections are those of a capture.
type Connections struct {
	handler Handler
	all     map[key]*Connection
	kept    list.List // the one that was silent for longest at the front
	holding list.List // of which something waits, here or with the handler
	others  list.List
	// undecided are those of which it is not known where they begin, in the order of their first segments.
	undecided list.List
	number    int
	waiting   int // bytes, of all
}

type key [2]netip.AddrPort

// New returns Connections of which a handler is told.
func New(h Handler) *Connections {
	return &Connections{handler: h, all: map[key]*Connection{}}
}

func keyOf(a, b netip.AddrPort) key {
	if a.Compare(b) > 0 {
		return key{b, a}
	}
	return key{a, b}
}

// Add takes the next segment of the capture, and returns its connection.
func (t *Connections) Add(s *capture.Segment, at Ref) *Connection {
	t.decideOld(at.Time)
	k := keyOf(s.Src, s.Dst)
	c := t.all[k]
	if c != nil && s.Flags&capture.SYN != 0 && c.another(s) {
		t.remove(c, Reused)
		c = nil
	}
	if c == nil {
		c = t.open(k, s, at)
	}
	t.handler.Segment(c)
	if !c.ignored && !c.over {
		t.segment(c, s, at)
	}
	t.settle(c)
	c.in.MoveToBack(c.place)
	return c
}

// way returns who of a connection sent a segment.
func (c *Connection) way(s *capture.Segment) Way {
	if s.Src == c.Ends[0] && s.Dst == c.Ends[1] {
		return 0
	}
	return 1
}

// another reports whether a SYN begins another connection than c.
func (c *Connection) another(s *capture.Segment) bool {
	w := c.way(s)
	h := &c.Halves[w]
	switch {
	case h.syn:
		return s.Seq != h.first-1
	case c.ignored, c.over:
		return true
	case h.begun:
		return s.Seq != h.first-1
	case len(h.pieces) == 0:
		return false
	}
	ahead := int32(h.pieces[0].seq - s.Seq - 1)
	return ahead < 0 || ahead > MostWaiting
}

func (t *Connections) open(k key, s *capture.Segment, at Ref) *Connection {
	t.number++
	c := &Connection{Number: t.number, Ends: [2]netip.AddrPort{s.Src, s.Dst}, First: at}
	if s.Flags&(capture.SYN|capture.ACK) == capture.SYN|capture.ACK {
		c.Ends = [2]netip.AddrPort{s.Dst, s.Src}
	}
	t.all[k] = c
	c.waits = t.undecided.PushBack(c)
	c.in, c.place = &t.others, t.others.PushBack(c)
	if t.others.Len() > MostOthers {
		t.remove(t.others.Front().Value.(*Connection), Evicted)
	}
	return c
}

// settle puts the connection where it belongs, if that is elsewhere behind the others there, and has one give way if there are too many.
func (t *Connections) settle(c *Connection) {
	if !c.over && c.Halves[0].finished && c.Halves[1].finished {
		c.over = true
		t.handler.Gone(c, Closed)
	}
	if c.ignored || c.over {
		t.forget(c)
	}
	if c.ignored || c.over || c.decided || c.Halves[0].begun && c.Halves[1].begun {
		t.decidedOn(c)
	}
	to, most := &t.others, MostOthers
	switch {
	case c.over:
	case c.kept:
		to, most = &t.kept, MostKept
	case c.Held+c.Halves[0].waiting+c.Halves[1].waiting > 0:
		to = &t.holding
	}
	if c.in == to {
		return
	}
	c.in.Remove(c.place)
	c.in, c.place = to, to.PushBack(c)
	if to.Len() > most {
		t.remove(to.Front().Value.(*Connection), Evicted)
	}
}

// GiveWay ends, of the connections of which something waits and that the handler does not keep, the one that was silent for
// longest, and reports whether there was one. A handler that holds too much calls it behind Add.
func (t *Connections) GiveWay() bool { return t.giveWay(nil) }

// giveWay spares the connection of which a segment is looked at.
func (t *Connections) giveWay(but *Connection) bool {
	e := t.holding.Front()
	if e != nil && e.Value == but {
		e = e.Next()
	}
	if e == nil {
		return false
	}
	t.remove(e.Value.(*Connection), Evicted)
	return true
}

// forget drops what waits of a connection.
func (t *Connections) forget(c *Connection) {
	for w := range c.Halves {
		h := &c.Halves[w]
		t.waiting -= h.waiting
		h.pieces, h.waiting = nil, 0
	}
}

// remove ends a connection: what waits is told first.
func (t *Connections) remove(c *Connection, why Why) {
	t.drainAll(c)
	if !c.ignored && !c.over {
		c.over = true
		t.handler.Gone(c, why)
	}
	t.forget(c)
	t.decidedOn(c)
	c.in.Remove(c.place)
	delete(t.all, keyOf(c.Ends[0], c.Ends[1]))
}

package iwarp

import (
	"slices"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// Options say which connections are iWARP's.
type Options struct {
	// Ports of TCP, at either end. None: those that begin as iWARP does.
	Ports []uint16
	// Passed is called with each record that is a segment of a connection of iWARP's, unless it is nil; with the first ones of
	// a connection, which were captured before it was known for one, when it is. What it is given it must not keep.
	Passed func(r *capture.Record, c *tcp.Connection) error
	// Failed is called with each connection of TCP that somebody asked for and that did not come about, unless it is nil; nobody knows
	// what it would have been of, unless its port is named.
	Failed func(Attempt)
}

// Bounds. All are arbitrary.
const (
	MostHeld     = 64 << 20
	MostSearched = 1 << 20
	MostChecked  = 16 << 20
	MostRequests = 4 << 10

	// MostEarly segments of a connection are remembered for Options.Passed until it is known, and MostEarlyBytes.
	MostEarly      = 64
	MostEarlyBytes = 256 << 10

	// strangeSearched and strangeChecked are for connections that nothing says are iWARP's.
	strangeSearched = 256 << 10
	strangeChecked  = 4 << 20

	// maxFrame is the longest frame.
	maxFrame = mpa.LengthSize + 1<<16 - 1 + 3 + mpa.CRCSize
	// mostUnsettled is how much of a direction waits for the set-up of the other one.
	mostUnsettled = 4 * maxFrame
)

// Decoder finds events in the records of a capture.
type Decoder struct {
	options  Options
	emit     func(*Event) error
	all      *tcp.Connections
	number   int
	held     int
	grown    grown
	record   *capture.Record // that is looked at
	now      int             // its number
	ended    bool            // no more follow
	settling bool            // what has waited for a set-up is told
	segments int
	evicted  int
	unsure   int
	err      error
	event    Event
}

// New returns a Decoder that calls emit with each event. When that fails, the Decoder does nothing more.
func New(o Options, emit func(*Event) error) *Decoder {
	d := &Decoder{options: o, emit: emit}
	d.all = tcp.New((*handler)(d))
	return d
}

// Add takes the next record of the capture, which has that number there. The error is that of emit, or of Options.Passed.
func (d *Decoder) Add(number int, r *capture.Record) error {
	s, ok := r.Segment()
	if !ok && r.HasCutSegment() {
		d.unsure++
	}
	if !ok || d.err != nil || !d.wanted(&s) {
		return d.err
	}
	d.record, d.now = r, number
	c := d.all.Add(&s, tcp.Ref{Record: number, Time: r.Time})
	d.record = nil
	d.relieve()
	k := d.of(c)
	k.at(r)
	k.cut = k.cut || len(s.Data) < s.Length
	if k.Number > 0 {
		d.countSegments(k)
	}
	return d.err
}

// relieve has connections give way where too much waits: those that have shown nothing of iWARP yet first, so that who only connects
// takes nothing from the others, and then the direction that grew last.
func (d *Decoder) relieve() {
	for d.held > MostHeld && d.all.GiveWay() {
	}
	if g := d.grown; d.held > MostHeld && g.c != nil && g.c.ways[g.w].held > 0 {
		d.giveUp(g.c, g.w, "too much waits for frames to be complete")
	}
}

// at takes down where a segment was captured.
func (c *Connection) at(r *capture.Record) {
	if !c.placed {
		c.place, c.placed = r.Interface, true
	}
	c.SeveralPlaces = c.SeveralPlaces || r.Interface != c.place || r.Cooked()
}

// countSegments counts the segments of a connection that is known.
func (d *Decoder) countSegments(c *Connection) {
	d.segments += c.segments
	c.segments = 0
}

func (d *Decoder) wanted(s *capture.Segment) bool {
	return len(d.options.Ports) == 0 || slices.Contains(d.options.Ports, s.Src.Port()) || slices.Contains(d.options.Ports, s.Dst.Port())
}

// End says that the capture ends.
func (d *Decoder) End() error {
	if d.err == nil {
		d.ended = true
		d.all.End()
	}
	return d.err
}

// Stats are counts of what was seen.
type Stats struct {
	Connections int // of iWARP
	Segments    int // of TCP, of those connections
	Evicted     int // connections that were not followed to their end, as there were too many
	// Unsure are segments of which a snap length cut what would show whether their connections are iWARP's.
	Unsure int
}

// Stats returns the counts so far.
func (d *Decoder) Stats() Stats {
	return Stats{Connections: d.number, Segments: d.segments, Evicted: d.evicted, Unsure: d.unsure}
}

// Tap is a source whose records a Decoder sees before they are used.
type Tap struct {
	capture.Source
	Decoder *Decoder
	records int
	ended   bool
}

// Next implements [capture.Source]. An error of the Decoder ends the source. So does the end of the records, which the Decoder is told.
func (t *Tap) Next() (capture.Record, error) {
	r, err := t.Source.Next()
	if err != nil {
		if t.ended {
			return r, err
		}
		t.ended = true
		if wrong := t.Decoder.End(); wrong != nil {
			err = wrong
		}
		return r, err
	}
	t.records++
	return r, t.Decoder.Add(t.records, &r)
}

// handler is what package tcp tells.
type handler Decoder

func (d *Decoder) of(c *tcp.Connection) *Connection {
	if c.Of == nil {
		c.Of = &Connection{TCP: c}
	}
	return c.Of.(*Connection)
}

// says returns a connection that says something: if it is of a port that was named, that is iWARP.
func (h *handler) says(c *tcp.Connection) *Connection {
	d := (*Decoder)(h)
	k := d.of(c)
	if len(d.options.Ports) > 0 {
		d.know(k)
	}
	return k
}

// know makes the connection one of iWARP.
func (d *Decoder) know(c *Connection) {
	if c.Number == 0 {
		d.number++
		c.Number = d.number
		d.passEarly(c)
	}
}

// keep keeps one that has shown a whole frame. Of a port that was named, a connection is known before, but not kept: anybody can connect.
func (d *Decoder) keep(c *Connection) {
	d.know(c)
	c.TCP.Keep()
}

func (h *handler) Segment(c *tcp.Connection) {
	d := (*Decoder)(h)
	k := d.of(c)
	k.segments++
	if k.unsure {
		d.unsure++
	}
	d.pass(k)
}

func (h *handler) Data(c *tcp.Connection, w tcp.Way, b []byte, at tcp.Ref) {
	if h.err == nil {
		(*Decoder)(h).data(h.says(c), w, b, at)
	}
}

func (h *handler) Missing(c *tcp.Connection, w tcp.Way, n int, at tcp.Ref) {
	if h.err == nil {
		(*Decoder)(h).missing(h.says(c), w, n, at)
	}
}

func (h *handler) Finished(c *tcp.Connection, w tcp.Way, at tcp.Ref) {
	h.ends(c, w, at, Finished)
}

func (h *handler) Reset(c *tcp.Connection, w tcp.Way, at tcp.Ref) {
	h.ends(c, w, at, Reset)
}

func (h *handler) ends(c *tcp.Connection, w tcp.Way, at tcp.Ref, kind Kind) {
	d := (*Decoder)(h)
	k := d.of(c)
	if h.err != nil || k.Number == 0 {
		return
	}
	if v := &k.ways[w]; kind == Finished && v.state == unsettled && len(v.buf) > 0 {
		v.closed, v.closedAt = true, at
		return
	}
	if kind == Reset { // no set-up follows
		d.resumeUnsettled(k, 0)
		d.resumeUnsettled(k, 1)
	}
	d.say(d.begin(kind, k, w, at, at))
}

// whys are the reasons why nothing follows.
var whys = [...]string{
	tcp.Closed: "", tcp.Ended: "", tcp.Reused: "its ports are used for another connection",
	tcp.Evicted: "too many connections are under way to follow it",
}

func (h *handler) Gone(t *tcp.Connection, why tcp.Why) {
	d := (*Decoder)(h)
	c := d.of(t)
	defer d.drop(c)
	for w := range c.ways {
		if c.Number > 0 && h.err == nil {
			d.last(c, tcp.Way(w))
		}
	}
	if c.Number == 0 || h.err != nil {
		if c.Number == 0 && c.cut {
			c.unsure = true
			d.unsure += c.segments
			c.segments = 0
		}
		d.failed(c, why)
		c.ignored = c.Number == 0
		return
	}
	d.countSegments(c)
	if why == tcp.Evicted {
		d.evicted++
	}
	at := c.ways[0].at
	if c.ways[1].at.Record > at.Record {
		at = c.ways[1].at
	}
	e := d.begin(Gone, c, 0, at, at)
	e.Why = whys[why]
	d.say(e)
}

// begin begins an event.
func (d *Decoder) begin(k Kind, c *Connection, w tcp.Way, first, last tcp.Ref) *Event {
	d.event = Event{Kind: k, Conn: c, Way: w, First: first, Last: last}
	return &d.event
}

func (d *Decoder) say(e *Event) {
	if e.Last.Record < d.now || d.ended {
		e.Late = d.late(e.Kind)
	}
	if d.err == nil {
		d.err = d.emit(e)
	}
}

// late says why an event was not told with its record.
func (d *Decoder) late(k Kind) string {
	switch {
	case k == Missing || k == GivenUp || k == Lost || k == Incomplete || k == Gone:
		return "it is known only now"
	case d.settling:
		return "it waited for the set-up of the other side"
	}
	return "it waited for what is before it on the connection"
}

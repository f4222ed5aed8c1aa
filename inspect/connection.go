package inspect

import (
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// mostConnections is how many connections of iWARP are told of.
const mostConnections = 256

// opcodes is how many operations there are.
const opcodes = int(rdmap.AtomicWriteReply) + 1

// connection is one of iWARP, as far as it was seen.
type connection struct {
	of                  *iwarp.Connection
	first, last         time.Duration
	firstRecord, record int
	ways                [2]direction
	mid                 int // record of the first frame that was found, if the beginning is not in the capture
	gone                string
	rpc                 rpcs
}

// direction is what one side of a connection sent.
type direction struct {
	frames     int
	messages   [opcodes]int
	bytes      [opcodes]int64
	trips      [opcodes]*histogram // from a request of that kind to the end of its answer
	bad        counted             // frames whose CRC is wrong
	cut        counted             // frames with pad and CRC in several segments of TCP
	order      counted             // frames out of their order, or at odds with what they answer
	orderWhy   string
	missing    counted // bytes that are not in the capture
	givenUp    int     // record
	givenUpWhy string
	began      []byte  // if that was no frame of set-up
	incomplete counted // bytes
	closed     int     // record
	reset      int
	terminate  *rdmap.TerminateError
	terminated int // record
	recent     [recentFrames]seenFrame
	at         int
	requests   []iwarp.Request // without an answer, in the end
	unfinished bool
	tcp        tcp.Half // in the end
}

// counted is how often something was seen, and where first.
type counted struct{ n, first int }

func (c *counted) add(n, record int) {
	if c.n += n; c.first == 0 {
		c.first = record
	}
}

// recentFrames is among how many the one is looked for that a Terminate names. Arbitrary: it was sent a round trip before.
const recentFrames = 256

type seenFrame struct {
	header ddp.Header
	record int
}

// Event takes an event of iWARP. It keeps nothing of e.
func (a *Analyzer) Event(e *iwarp.Event) {
	if e.Kind == iwarp.Frame || e.Kind == iwarp.SetUp {
		a.capture.FPDUs++
	}
	a.records = max(a.records, e.Last.Record)
	c := a.connections[e.Conn]
	if c == nil {
		if len(a.streams) >= mostConnections {
			if e.Kind == iwarp.SetUp && !e.SetUp.Reply {
				a.unfollowed.add(1, e.Last.Record)
			}
			return
		}
		at := a.since(e.First.Time)
		c = &connection{of: e.Conn, first: at, firstRecord: e.First.Record}
		a.connections[e.Conn] = c
		a.streams = append(a.streams, c)
	}
	if e.Kind != iwarp.Gone {
		c.last, c.record = max(c.last, a.since(e.Last.Time)), max(c.record, e.Last.Record)
	}
	c.event(e)
	if m := a.rpc.Event(e); m != nil {
		c.rpc.message(m)
	}
	if c.rpc.of == nil {
		c.rpc.of = a.rpc.Of(e.Conn)
	}
	if e.Kind == iwarp.Gone {
		delete(a.connections, e.Conn)
	}
}

// since is a time since the capture began.
func (a *Analyzer) since(t time.Time) time.Duration {
	if t.IsZero() {
		return a.at
	}
	if !a.begun {
		a.begun, a.begin = true, t
	}
	at := min(max(t.Sub(a.begin), 0), longest)
	a.end = max(a.end, at)
	return at
}

func (c *connection) event(e *iwarp.Event) {
	d := &c.ways[e.Way]
	switch e.Kind {
	case iwarp.Frame:
		d.frame(&c.ways[1-e.Way], e)
	case iwarp.SetUp:
		if e.Absent > 0 {
			d.missing.add(e.Absent, e.Last.Record)
		}
	case iwarp.Begins:
		c.mid = e.First.Record
	case iwarp.Missing:
		d.missing.add(e.N, e.Last.Record)
	case iwarp.GivenUp:
		d.givenUp, d.givenUpWhy, d.began = max(e.Last.Record, 1), e.Why, e.Began
	case iwarp.Lost:
		d.order.add(1, e.Last.Record)
		d.orderWhy = e.Why
	case iwarp.Finished:
		d.closed = e.Last.Record
	case iwarp.Reset:
		d.reset = e.Last.Record
	case iwarp.Incomplete:
		d.incomplete.add(e.N, e.First.Record)
	case iwarp.Gone:
		c.gone = e.Why
		for w := range c.ways {
			d := &c.ways[w]
			d.requests, d.unfinished = e.Conn.Waiting(tcp.Way(w))
			d.tcp = e.Conn.TCP.Halves[w]
		}
	}
}

// frame counts a frame; requests that it answers are of the other direction.
func (d *direction) frame(other *direction, e *iwarp.Event) {
	d.frames++
	record := e.Last.Record
	switch {
	case e.CRC == iwarp.Bad:
		d.bad.add(1, record)
	case e.CutEnd && e.CRC == iwarp.Good:
		d.cut.add(1, record)
	}
	if why := wrongness(e); why != "" {
		if d.order.n == 0 {
			d.orderWhy = why
		}
		d.order.add(1, record)
	}
	d.missing.n += e.Absent
	if d.missing.n > 0 && d.missing.first == 0 {
		d.missing.first = record
	}
	if e.Segments == 0 || int(e.Opcode) >= opcodes {
		return
	}
	d.recent[d.at%recentFrames] = seenFrame{e.Header, record}
	d.at++
	d.bytes[e.Opcode] += int64(e.Length)
	if e.Header.Last {
		d.messages[e.Opcode]++
	}
	if e.Terminate != nil {
		d.terminate, d.terminated = e.Terminate, record
	}
	if r := e.Answers; r != nil && !e.Last.Time.IsZero() && !r.At.Time.IsZero() {
		h := other.trips[r.Opcode]
		if h == nil {
			h = new(histogram)
			other.trips[r.Opcode] = h
		}
		h.add(e.Last.Time.Sub(r.At.Time))
	}
}

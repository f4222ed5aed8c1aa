package inspect

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// wrongness says how a frame is not what it should be.
func wrongness(e *iwarp.Event) string {
	switch {
	case e.WantMSN != 0:
		return fmt.Sprintf("message %d of queue %d came where %d would be next", e.Header.MSN, e.Header.QN, e.WantMSN)
	case e.Odd != "":
		return fmt.Sprintf("%s %s", e.Opcode.One(), e.Odd)
	case e.Fault != nil:
		return e.Fault.Error()
	case e.Wrong != nil:
		return fmt.Sprintf("the operands of %s are wrong", e.Opcode.One())
	case !e.Fits && !e.NoHeader && e.Segments > 0:
		return fmt.Sprintf("control octet %#02x does not fit the rest of the header", e.Header.Control)
	}
	return ""
}

func (a *Analyzer) aboutConnections(c *findings) {
	for i, k := range a.streams {
		c.connection = i + 1
		k.aboutSetUp(c)
		for w := range k.ways {
			k.aboutEnd(c, w)
			k.aboutFrames(c, w)
			k.aboutTCP(c, w)
		}
	}
	c.connection = 0
	aboutRPC(c, a.streams)
	if a.unfollowed.n > 0 {
		c.add(Note, "more connections", a.unfollowed.n, []int{a.unfollowed.first}, "%s of iWARP %s not told of: at most %d are.",
			count(a.unfollowed.n, "further connection"), isAre(a.unfollowed.n), mostConnections)
	}
}

// name is what a side is called.
func (k *connection) name(w int) string { return k.of.TCP.Ends[w].String() }

// aboutSetUp tells of connections that did not come about, and why if that can be told.
func (k *connection) aboutSetUp(c *findings) {
	i := k.initiator()
	request, reply := k.of.Request, k.of.Reply
	replier := 1 - int(k.of.Initiator) // if there is no request
	switch {
	case k.strange():
		k.aboutStrangers(c)
	case k.mid != 0 && k.of.TCP.Begun:
		c.add(Note, "mid-connection", 0, []int{k.mid}, "The set-up between %s and %s is not in the capture (snap length, or the capture lost packets): frames were found by their CRC from this record on.", k.name(0), k.name(1))
	case k.mid != 0:
		c.add(Note, "mid-connection", 0, []int{k.mid}, "The beginning of the connection between %s and %s is not in the capture: frames were found by their CRC from this record on.", k.name(0), k.name(1))
	case k.unrequested():
		what := "%s answered with an MPA reply, and %s had sent no request."
		if replier == 0 {
			what = "%s opened the connection to %s and sent an MPA reply where a request belongs."
		}
		c.add(Problem, "no request", 1, []int{reply.At.Record}, what, k.name(replier), k.name(1-replier))
	case reply != nil && reply.Reject && request != nil && k.ways[0].frames+k.ways[1].frames == 0:
		why := "It does not say why."
		switch {
		case len(reply.Private) > 0:
			why = "It says " + quoted(reply.Private) + "."
		case request.Markers:
			why = "The request asks for markers, which hardly anybody makes."
		case request.CRC && !reply.CRC:
			why = "The request asks for CRC, and the reply has none: the responder forbids it."
		case reply.Absent > 0:
			why = "Why, if it says so, is not in the capture (snap length)."
		case request.PeerToPeer && reply.Ready == 0:
			why = "The reply takes none of the ready-to-receive frames that were offered (" + request.Ready.String() + ")."
		}
		c.add(Problem, "rejected", 1, []int{request.At.Record, reply.At.Record}, "%s rejected the connection from %s. %s", k.name(1-i), k.name(i), why)
	case k.unanswered() && k.ways[1-i].givenUp == 0:
		records := []int{request.At.Record}
		end := "The capture ends before anything else happens."
		switch d := k.ways; {
		case d[1-i].reset != 0:
			end, records = "The responder reset the connection instead.", append(records, d[1-i].reset)
		case d[1-i].closed != 0 && (d[i].closed == 0 || d[1-i].closed < d[i].closed):
			end = "The responder closed the connection instead."
		case d[i].closed != 0 || d[i].reset != 0:
			end = "The initiator gave up after " + Span(max(k.last-k.first, 0)) + "."
		}
		c.add(Problem, "no reply", 1, records, "The request of %s was never answered by %s. %s", k.name(i), k.name(1-i), end)
	}
}

// initiator returns the side that asked for the connection, the first one if that is not known. Where no request was sent, that is the side
// of the SYN: a reply alone makes none of its receiver.
func (k *connection) initiator() int {
	if !k.of.Known || k.unrequested() {
		return 0
	}
	return int(k.of.Initiator)
}

// unrequested reports whether a side sent a set-up reply to a side that had sent nothing, as far as the capture shows, which has the
// connection from its first segment on.
func (k *connection) unrequested() bool {
	if k.of.Reply == nil || k.of.Request != nil || !k.of.TCP.Begun {
		return false
	}
	h := &k.of.TCP.Halves[k.of.Initiator] // that should have sent the request
	return h.Begun() && h.Bytes == 0 && h.Missing == 0
}

// unanswered reports whether a set-up request got no reply.
func (k *connection) unanswered() bool { return k.of.Request != nil && k.of.Reply == nil && k.mid == 0 }

// mostHex is how many bytes of private data are shown that are no text. Arbitrary: MPA bounds text by itself.
const mostHex = 64

// quoted shows private data: all of it as text if it is some.
func quoted(b []byte) string {
	for _, x := range b {
		if x >= ' ' && x <= '~' {
			continue
		}
		if len(b) > mostHex {
			return fmt.Sprintf("%x...", b[:mostHex])
		}
		return fmt.Sprintf("%x", b)
	}
	return strconv.Quote(string(b))
}

// aboutEnd tells how a side ended the connection, and of what was not done by then.
func (k *connection) aboutEnd(c *findings, w int) {
	d, other := &k.ways[w], &k.ways[1-w]
	if t := d.terminate; t != nil {
		records, about := []int{d.terminated}, ""
		if t.HasHeader {
			op, _ := rdmap.OpcodeOf(&t.Header)
			about = " It is about " + op.One()
			if op != rdmap.ReadRequest { // of which siw says that it has none
				about += ", " + count(int(t.Segment), "byte")
			}
			if t.Header.Tagged {
				about += fmt.Sprintf(" to STag %#x at offset %#x", t.Header.STag, t.Header.TO)
			}
			about += "."
			if at := other.find(&t.Header); at != 0 {
				records = []int{at, d.terminated}
			}
		}
		if t.Fault == ddp.Checksum && other.cut.n > 0 {
			about += " The end of a segment cut the pad and CRC of a frame before: Linux's siw takes such a frame for damaged, which it is not."
			records = append([]int{other.cut.first}, records...)
		}
		c.add(Problem, "terminate", 1, records, "%s ended the connection with a Terminate: %v.%s", k.name(w), t.Fault, about)
	}
	switch n := len(d.requests); {
	case n == 0:
	case d.terminate == nil && other.terminate == nil:
		s := Problem
		if d.closed == 0 && other.closed == 0 && d.reset == 0 && other.reset == 0 {
			s = Note // the answer may come
		}
		r := d.requests[0]
		c.add(s, "unanswered", n, []int{r.At.Record}, "%s of %s %s never answered. The first is %s in this record.", count(n, "request"), k.name(w), wasWere(n), r.Opcode.One())
	default:
		c.add(Note, "unanswered", n, []int{d.requests[0].At.Record}, "%s of %s %s not answered before the connection was terminated.", count(n, "request"), k.name(w), wasWere(n))
	}
	// Else what was not done is told with the set-up, or with the Calls.
	if told := k.strange() || k.unanswered() || k.unansweredCalls(); d.reset != 0 && !told {
		waiting := len(d.requests) + len(other.requests)
		if d.unfinished || other.unfinished || waiting > 0 || d.incomplete.n+other.incomplete.n > 0 {
			c.add(Problem, "reset", 1, []int{d.reset}, "%s reset the connection while messages were under way.", k.name(w))
		} else if d.terminate == nil && other.terminate == nil {
			c.add(Note, "reset", 0, []int{d.reset}, "%s reset the connection; nothing was under way that the capture shows.", k.name(w))
		}
	}
	if d.incomplete.n > 0 && d.closed != 0 {
		c.add(Problem, "incomplete", d.incomplete.n, []int{d.incomplete.first, d.closed}, "%s closed the connection within a frame, of which %s were sent.", k.name(w), count(d.incomplete.n, "byte"))
	}
}

// unansweredCalls reports whether Calls of RPC-over-RDMA had no Reply at the end.
func (k *connection) unansweredCalls() bool {
	return k.rpc.of != nil && k.rpc.of.Found[rpcrdma.Unanswered].N > 0
}

// find returns the record of the latest frame with a header, 0 if it is not known. Of a Read siw writes something else in the place of its
// MSN: there the latest one has to do.
func (d *direction) find(h *ddp.Header) int {
	alike := 0
	for i := range min(d.at, recentFrames) {
		f := &d.recent[(d.at-1-i)%recentFrames]
		if f.header == *h {
			return f.record
		}
		op, _ := rdmap.OpcodeOf(&f.header)
		if alike == 0 && op == rdmap.ReadRequest && f.header.Control == h.Control && f.header.QN == h.QN {
			alike = f.record
		}
	}
	return alike
}

// aboutFrames tells what is wrong with the frames of a side.
func (k *connection) aboutFrames(c *findings, w int) {
	d := &k.ways[w]
	if n := d.bad.n; n > 0 {
		c.add(Problem, "bad CRC", n, []int{d.bad.first}, "%s from %s %s a wrong CRC. TCP has its own checksum: something between the two programs changes bytes, or the sender computes it wrongly.",
			count(n, "frame"), k.name(w), has(n))
	}
	if n := d.order.n; n > 0 {
		c.add(Problem, "out of order", n, []int{d.order.first}, "%s from %s %s not as the protocol has it. The first: %s.", count(n, "frame"), k.name(w), isAre(n), d.orderWhy)
	}
	if n := d.cut.n; n > 0 {
		c.add(Note, "cut by a segment", n, []int{d.cut.first}, "%s from %s %s pad and CRC in several segments of TCP. "+
			"The protocol allows it, but Linux's siw takes such a frame for damaged when CRC is on.", count(n, "frame"), k.name(w), has(n))
	}
	if n := d.missing.n; n > 0 {
		c.add(Warning, "not captured", n, []int{d.missing.first}, "%s from %s are not in the capture (snap length, or the capture lost packets): what was in them is not known.",
			count(n, "byte"), k.name(w))
	}
	if d.givenUp != 0 && d.began == nil {
		c.add(Warning, "given up", 1, []int{d.givenUp}, "From this record on nothing is known of what %s sent: %s.", k.name(w), d.givenUpWhy)
	}
}

// leastZero is how long a side lets its peer send nothing until that is a warning: three times as long as Linux lets one program run where others wait
// for the processor (base_slice_ns of its scheduler, about 3 ms), so that a program that only waits for its turn is none. The factor is arbitrary.
const leastZero = 10 * time.Millisecond

// aboutTCP tells what is below.
func (k *connection) aboutTCP(c *findings, w int) {
	h := &k.ways[w].tcp
	if n := h.Resent; n > 0 {
		s := Note
		if 100*n > h.Segments && n > 2 {
			s = Warning
		}
		where := ""
		if k.of.SeveralPlaces {
			where = " (interface \"any\")"
		}
		c.add(s, "segments sent again", n, []int{h.FirstResent}, "TCP sent %s from %s again, %s, or the capture has packets twice%s.", count(n, "segment"), k.name(w), percent(n, h.Segments), where)
	}
	if n := h.Late; n > 0 {
		c.add(Note, "late segments", n, []int{h.FirstLate}, "%s from %s came after later ones: reordered, or lost before the point of capture and sent again.", count(n, "segment"), k.name(w))
	}
	if n := h.ZeroWindows; n > 0 {
		long := h.LongestZero > 0 // else it is the last that the capture has of the connection, or has no times
		lasted := ""
		if long {
			lasted = ", for " + Span(h.LongestZero) + " at most"
		}
		if h.LongestZero >= leastZero {
			c.add(Warning, "zero window", n, []int{h.LongestZeroAt}, "%s told its peer %s to send nothing (a TCP window of 0)%s, from this record on: its program or memory does not keep up.", k.name(w), times(n), lasted)
		} else {
			c.add(Note, "zero window", n, []int{h.LongestZeroAt}, "%s told its peer %s to send nothing (a TCP window of 0)%s: its buffer was full for a moment, as it may be at full rate.", k.name(w), times(n), lasted)
		}
	}
}

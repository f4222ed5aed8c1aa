package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// mostFlows is how many flows are followed: 64 peers in both directions. Each may
// take some 300 KB.
const mostFlows = 128

// longest is as long as a capture may last: sums of times do not overflow.
const longest = 100 * 365 * 24 * time.Hour

// Analyzer follows the flows of a capture. Give it the frames in the order of
// the file.
type Analyzer struct {
	flows         map[flowKey]*flow
	order         []*flow
	ways          map[flowKey]*sealedWay
	wayOrder      []*sealedWay
	questions     map[flowKey]*asked
	questionOrder []*asked
	connections   map[*iwarp.Connection]*connection // under way
	streams       []*connection                     // of iWARP, in the order in which they were found
	rpc           *rpcrdma.Decoder
	unfollowed    counted // connections of iWARP
	attempts      map[attemptKey]*attempt
	attemptOrder  []*attempt
	notices       map[noticeKey]*notice
	noticeOrder   []*notice
	moreFailures  counted
	slots         int // in use by all flows, beyond the least

	capture        Capture
	records        int // the latest with a frame
	begun          bool
	begin          time.Time
	at, end        time.Duration // of the last frame, of the latest
	untimed        int
	firstMalformed int
	joined         joinedRecord
	offload        bool // there are records of several frames
	hiddenIn       int  // records
	firstHidden    int
	unsplit        counted // records that may be of several frames, of which the first is cut
	headless       int     // frames cut within their headers
	firstChanged   int
	firstUnfollow  int
	firstBackwards int
	mostBackwards  time.Duration
	fragments      int
	unknownLink    int
	onlyUDP        bool // ports of DG/RDMA were named
	onlyTCP        bool // ports of iWARP
	unsure         int  // records of TCP of which a snap length hides whether they are iWARP
	damage         *capture.Error

	seen seen // scratch
}

// New returns an Analyzer that has seen nothing.
func New() *Analyzer {
	return &Analyzer{flows: map[flowKey]*flow{}, ways: map[flowKey]*sealedWay{}, questions: map[flowKey]*asked{}, connections: map[*iwarp.Connection]*connection{},
		attempts: map[attemptKey]*attempt{}, notices: map[noticeKey]*notice{}, rpc: rpcrdma.New()}
}

// Begins tells when the capture begins, from which times are counted; without it, they are from the first frame on.
func (a *Analyzer) Begins(t time.Time) { a.begun, a.begin = true, t }

// Add takes the next frame. It keeps nothing of p.
func (a *Analyzer) Add(p *captured.Packet) {
	a.opens(p)
	c := &a.capture
	c.Frames++
	a.records = max(a.records, p.Record) // of which one may hold several frames
	c.Bytes += int64(p.Length)
	s := &a.seen
	*s = seen{record: p.Record, place: c.Frames, at: a.time(p), wire: p.Length, cut: p.Cut(), messages: s.messages[:0]}
	if kind := p.Seal(); kind != datagram.Plain {
		if s.cut {
			c.Cut++
		}
		a.sealed(p, kind, s.at)
		return
	}
	if p.Session() {
		a.inSession(p, s)
		return
	}
	var ok bool
	if s.Header, ok = p.Header(); p.Cut() {
		c.Cut++
	} else if b, sum := p.Whole(); sum == frame.WrongChecksum {
		a.changed(p)
		return
	} else if f, err := frame.Parse(b); err != nil {
		ok = false
	} else {
		s.services, s.told = f.Services()
		s.refusal, s.refused = f.Refusal()
	}
	if !ok && p.Cut() && p.Length >= frame.HeaderSize {
		a.headless++
		return
	}
	a.messagesOf(p, s)
	if len(s.messages) == 1 {
		s.shake, _ = frame.HandshakeOf(&frame.Frame{Header: s.Header}, &s.messages[0])
	}
	if nobody := s.Src == 0 || s.Dst == 0; !ok || nobody && !s.ofHandshake() {
		a.malformed(p)
		return
	} else if nobody {
		a.asks(flowKey{p.Src, p.Dst, s.Src, s.Dst}, p.Record)
		return
	}
	k := flowKey{p.Src, p.Dst, s.Src, s.Dst}
	if s.HasMessages() && len(s.messages) == 0 { // cut before its first message: there is nothing to tell it by
		a.headless++
		a.flows[k].headless(s)
		a.reverse(k).acknowledged(s)
		return
	}
	a.unsealed(k, s)
	if f := a.flow(k, s); f != nil {
		restarts := f.nRestart
		f.add(s)
		a.reads(f, p, s)
		if f.reverse == nil {
			f.reverse = a.reverse(k)
		}
		f.heardOf(s, f.nRestart > restarts)
		f.reverse.acknowledged(s)
		return
	}
	a.unfollow(p.Record)
	a.reverse(k).acknowledged(s)
}

// messagesOf takes the messages of a frame as far as they were captured.
func (a *Analyzer) messagesOf(p *captured.Packet, s *seen) {
	for m := range p.Messages() {
		s.messages = append(s.messages, m)
		s.data += int64(m.Len)
	}
}

// changed counts a frame with a wrong checksum: nothing in it is known to be true.
func (a *Analyzer) changed(p *captured.Packet) {
	if a.capture.Changed++; a.firstChanged == 0 {
		a.firstChanged = p.Record
	}
}

// malformed counts a frame that its receiver drops.
func (a *Analyzer) malformed(p *captured.Packet) {
	if a.capture.Malformed++; a.firstMalformed == 0 {
		a.firstMalformed = p.Record
	}
}

// time is since the capture began.
func (a *Analyzer) time(p *captured.Packet) time.Duration {
	if p.Time.IsZero() {
		a.untimed++
		return a.at
	}
	if !a.begun {
		a.begun, a.begin = true, p.Time
	}
	at := min(max(p.Time.Sub(a.begin), 0), longest)
	if back := a.begin.Add(a.at).Sub(p.Time); back > 0 {
		if a.capture.Backwards++; back > a.mostBackwards {
			a.mostBackwards, a.firstBackwards = back, p.Record
		}
	}
	a.at, a.end = at, max(a.end, at)
	return at
}

// unfollow counts a frame for which there is no place among what is followed.
func (a *Analyzer) unfollow(record int) {
	if a.capture.Unfollow++; a.firstUnfollow == 0 {
		a.firstUnfollow = record
	}
}

func (a *Analyzer) flow(k flowKey, s *seen) *flow {
	f := a.flows[k]
	if f == nil && len(a.order) < mostFlows {
		f = a.newFlow(k, s)
		a.flows[k] = f
		a.order = append(a.order, f)
	}
	return f
}

// reverse finds the flow of the other direction, nil if there is none.
func (a *Analyzer) reverse(k flowKey) *flow { return opposite(a.flows, a.order, k) }

// directed is what goes from one end to another.
type directed interface {
	comparable
	direction() flowKey
}

// opposite finds what goes the other way, among all in their order; nil if nothing does. Cooked
// captures do not know where a frame goes: there the ids must do.
func opposite[D directed](all map[flowKey]D, order []D, k flowKey) (none D) {
	if d := all[flowKey{k.dst, k.src, k.dstID, k.srcID}]; d != none || k.dst != (capture.Addr{}) {
		return d
	}
	for _, d := range order {
		if o := d.direction(); o.dst == k.dst && o.src != k.src && o.srcID == k.dstID && o.dstID == k.srcID {
			return d
		}
	}
	return none
}

// moreSlots reports whether a flow may double its window.
func (a *Analyzer) moreSlots(f *flow) bool {
	n := len(f.ids.slots)
	if n >= mostSlots || a.slots+n > slotsBudget || !f.anyAcked && n >= 4*leastSlots {
		return false
	}
	a.slots += n
	return true
}

// Damaged notes why the capture could not be read to its end.
func (a *Analyzer) Damaged(err error) {
	a.capture.Damage = err.Error()
	if !errors.As(err, &a.damage) {
		return
	}
	switch d := a.damage; {
	case errors.Is(err, io.ErrUnexpectedEOF):
		a.capture.Damage = fmt.Sprintf("it ends within record %d, which begins at offset %d", d.Record, d.Offset)
	default:
		a.capture.Damage = fmt.Sprintf("record %d at offset %d: %v", d.Record, d.Offset, d.Err)
	}
}

// Counted notes what the reader of the capture counted beside the frames.
func (a *Analyzer) Counted(s capture.Stats) {
	a.capture.Records = s.Records
	a.fragments, a.unknownLink = s.Fragments, s.UnknownLink
}

// OnlyPorts notes that frames of DG/RDMA over UDP, or connections of iWARP, were looked for at some ports alone.
func (a *Analyzer) OnlyPorts(udp, tcp bool) { a.onlyUDP, a.onlyTCP = udp, tcp }

// CountedTCP notes what the decoder of iWARP counted besides its events.
func (a *Analyzer) CountedTCP(s iwarp.Stats) { a.unsure = s.Unsure }

// Dropped notes how many packets the host that captured had no room for, as the capture says.
func (a *Analyzer) Dropped(n int) { a.capture.Dropped = n }

// Report ends the analysis; the Analyzer takes no more frames.
func (a *Analyzer) Report() *Report {
	a.hides()
	a.capture.Duration = a.end
	if y := a.begin.Year(); y >= 0 && y <= 9999 { // what a calendar, and JSON, can say
		a.capture.Begin = a.begin
	}
	a.capture.Records = cmp.Or(max(a.capture.Records, a.records), a.capture.Frames)
	slices.SortStableFunc(a.order, func(f, g *flow) int { return cmp.Compare(g.dataFirst, f.dataFirst) })
	for i, f := range a.order {
		f.number = i
		if f.reverse == nil { // it may have begun behind the last frame
			f.reverse = a.reverse(f.key)
		}
		f.finish(a.end)
	}
	for _, w := range a.wayOrder {
		w.finish()
	}
	r := &Report{Capture: a.capture, Findings: a.findings(), Flows: []Flow{}}
	for _, f := range a.order {
		r.Flows = append(r.Flows, f.report())
	}
	for _, w := range a.wayOrder {
		r.Sealed = append(r.Sealed, w.report())
	}
	for i, k := range a.streams {
		r.Connections = append(r.Connections, k.report(i+1))
	}
	return r
}

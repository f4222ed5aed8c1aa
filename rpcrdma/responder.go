package rpcrdma

import (
	"fmt"
	"math"
	"time"
)

// responder is the half of a machine that answers the peer's Calls: forward ones at a server, and reverse ones at a client.
type responder struct {
	// calls are those whose answer has not left completely. A peer that has more of them than it was granted
	// does not follow the protocol.
	calls []*Incoming
	// answered are those whose answer has left, and which hold memory until their works are complete.
	answered []*Incoming
	free     []*Incoming

	collecting *Incoming // the Call whose parts are coming
	// Of a sequence that was refused, the rest is dropped.
	dropping   bool
	droppedXID uint32

	turn    []*Incoming // those that want buffers or Reads, in turn
	reading int         // Reads that are posted and not complete
	now     time.Time   // when the machine was last told anything
}

func (r *responder) open(m *Machine) {}

// most returns how many Calls of the peer are in work at once.
func (r *responder) most(m *Machine) int {
	switch {
	case m.cfg.Side == Server:
		return m.cfg.Window
	case m.cfg.Reverse == 0:
		return 0
	case m.version == Version2:
		return m.cfg.Window // RPC2-114
	}
	return m.cfg.Reverse
}

// chunks reports whether the peer's Calls may have chunks. Reverse Calls of version 1 have none (RPC1-060).
func (r *responder) chunks(m *Machine) bool { return m.cfg.Side == Server || m.version == Version2 }

// refusal is why a Call is not carried out. A Code of 0 has it dropped.
type refusal struct {
	report Report
	// limit says that the Call is well-formed, and beyond what this side takes: the peer cannot know that.
	limit bool
}

// malformed is the refusal of a Call that is not what the XDR says.
func (r *responder) malformed(m *Machine) *refusal {
	return &refusal{report: Report{Code: shapes[m.version].malformed}}
}

// beyond is the refusal of a Call that is beyond a limit of this side. Version 1 has one code for all.
func (r *responder) beyond(m *Machine, report Report) *refusal {
	if m.version == Version1 {
		report = Report{Code: CodeChunk}
	}
	return &refusal{report, true}
}

// received takes a Call, or a part of it.
func (r *responder) received(m *Machine, now time.Time, h *Header, payload []byte, b *Buffer) {
	r.now = now
	if r.most(m) == 0 { // RPC1-064, RPC2-076
		m.countMalformed(now)
		m.put(b)
		return
	}
	if m.version == Version2 && r.partOf(m, now, h, payload, b) {
		return
	}
	in := r.begin(m, now, h)
	if in == nil {
		m.put(b)
		return
	}
	in.buffer, in.Message = b, payload
	r.complete(m, now, in, h)
}

// begin makes an Incoming of the first message of a Call. It returns nil if there is none to be made.
func (r *responder) begin(m *Machine, now time.Time, h *Header) *Incoming {
	for _, in := range r.calls {
		if in.XID == h.XID { // RPC1-053, RPC2-002: it will be answered, once
			m.countMalformed(now)
			return nil
		}
	}
	if len(r.calls) >= r.most(m) {
		m.close(fmt.Errorf("%w: it has more Calls without a Reply than it was granted", ErrProtocol))
		return nil
	}
	var in *Incoming
	if n := len(r.free); n > 0 {
		in, r.free = r.free[n-1], r.free[:n-1]
	} else {
		in = new(Incoming)
	}
	in.reset(h, now)
	r.calls = append(r.calls, in)
	return in
}

// complete takes the lists of a Call whose payload is there. What is wrong with it is found before the first Read.
func (r *responder) complete(m *Machine, now time.Time, in *Incoming, h *Header) {
	if x := r.check(m, in, h); x != nil {
		r.refuse(m, now, in, x)
		return
	}
	in.take(h)
	in.invalid = r.invalidation(m, in, h)
	if n, _ := h.Unreduced(len(in.Message)); n > uint64(m.cfg.MaxCall) {
		in.deliverLong(m, int(min(n, math.MaxInt)))
		return
	}
	if !in.locate() { // a Position is where no item can be
		r.refuse(m, now, in, r.malformed(m))
		return
	}
	if in.hasHead {
		in.state, in.from = inHead, segmentCursor{}
		m.put(in.buffer)
		in.buffer, in.Message = nil, nil
		r.turn = append(r.turn, in)
		return
	}
	r.headIsThere(m, now, in)
}

// check holds the header of a Call against the limits of this side.
func (r *responder) check(m *Machine, in *Incoming, h *Header) *refusal {
	if !r.chunks(m) && !h.noLists() { // RPC1-060
		return r.malformed(m)
	}
	if _, ok := h.Unreduced(len(in.Message)); !ok { // a Position is beyond the message
		return r.malformed(m)
	}
	if len(h.Reads) > 0 && m.cfg.ORD == 0 { // no Reads may be outstanding
		return r.beyond(m, Report{Code: CodeReadChunks})
	}
	// The Reply says what was written into chunks, and its header must fit one Send.
	answer := Header{Version: h.Version, Type: TypeNoMsg, Writes: h.Writes, Reply: h.Reply, HasReply: h.HasReply}
	if size, limit := answer.Size(), m.threshold(); size > limit {
		fewer := (size - limit + segmentSize - 1) / segmentSize
		return r.beyond(m, Report{Code: CodeSegments, Max: uint32(max(answer.segments()-fewer, 0))})
	}
	return nil
}

// segments returns how many segments the lists have.
func (h *Header) segments() (n int) {
	for i := range h.Reads {
		n += len(h.Reads[i].Segments)
	}
	for _, w := range h.Writes {
		n += len(w)
	}
	return n + len(h.Reply)
}

// invalidation returns the handle that the Reply invalidates, or 0. In version 1 that is any handle if the
// client's private data allow it, and there is only one: of several, one may be to stay (RPC1-040).
func (r *responder) invalidation(m *Machine, in *Incoming, h *Header) uint32 {
	if m.version == Version2 {
		return h.InvHandle // that it is in the lists is the Decoder's to know (RPC2-064)
	}
	if handle, only := in.onlyHandle(); only && m.cfg.Peer.Invalidate {
		return handle
	}
	return 0
}

// headIsThere goes on with a Call whose Message is complete.
func (r *responder) headIsThere(m *Machine, now time.Time, in *Incoming) {
	switch {
	case len(in.Message) < leastRPC || word(in.Message, 0) != in.XID: // RPC2-066
		x := r.malformed(m)
		if m.version == Version1 {
			x.report = Report{} // RPC1-002
		}
		r.refuse(m, now, in, x)
	case word(in.Message, wordSize) != msgCall: // RPC2-110
		r.refuse(m, now, in, r.malformed(m))
	case !in.measure(): // a Read chunk has not the length of its item
		r.refuse(m, now, in, r.malformed(m))
	case len(in.reads) == 0:
		in.deliver(m)
	default:
		for i := range in.Items {
			in.Items[i].Data = nil
		}
		in.state = inPlacing
		m.actions.add(Action{Kind: ActPlace, In: in})
	}
}

// deliver hands a Call to the program.
func (in *Incoming) deliver(m *Machine) {
	in.state = inWork
	m.actions.add(Action{Kind: ActDeliver, In: in})
}

// deliverLong hands a Call to the program that is longer than Config.MaxCall, with what there is of its head (RPC2-104).
func (in *Incoming) deliverLong(m *Machine, length int) {
	in.TooLong = length
	if b := in.Message; len(b) < leastRPC || word(b, 0) != in.XID || word(b, wordSize) != msgCall {
		in.Message = nil
	}
	in.deliver(m)
}

// refuse answers a Call that is not carried out by an ERROR, or drops it.
func (r *responder) refuse(m *Machine, now time.Time, in *Incoming, x *refusal) {
	if !x.limit {
		m.countMalformed(now)
	}
	if x.report.Code != 0 {
		m.sendError(m.version, in.XID, x.report)
	}
	r.forget(in)
	r.release(m, in)
}

// refused answers a message of which the Decoder has said what is wrong.
func (r *responder) refused(m *Machine, now time.Time, f *Fault, h *Header, b *Buffer) {
	m.put(b)
	if r.most(m) == 0 {
		return
	}
	if m.version == Version2 && r.brokenBy(m, f, h) {
		return
	}
	if !f.Dropped() {
		m.sendError(f.Version, f.XID, f.Report)
	}
}

// release gives back what an Incoming holds, and keeps it for the next Call.
func (r *responder) release(m *Machine, in *Incoming) {
	m.put(in.buffer)
	in.buffer, in.Message = nil, nil
	for i, p := range in.places {
		m.put(p)
		in.places[i] = nil
	}
	clear(in.Items)
	in.state = inDone
	in.answering = answering{}
	r.free = append(r.free, in)
}

// tick ends a connection whose peer leaves a Call unfinished, or does not answer Reads. Both hold memory of this side. A peer without credits cannot
// send the next part.
func (r *responder) tick(m *Machine, now time.Time) (next time.Time) {
	r.now = now
	for _, in := range r.calls {
		if in.reading == 0 && (in.state != inCollecting || m.credits.withheld()) {
			continue
		}
		end := in.since.Add(m.cfg.PartTime)
		if now.Before(end) {
			next = sooner(next, end)
			continue
		}
		what := "has not answered a Read"
		if in.state == inCollecting {
			what = "has not sent all parts of a Call"
		}
		m.close(fmt.Errorf("%w: it %s within %v", ErrProtocol, what, m.cfg.PartTime))
		return time.Time{}
	}
	return next
}

// lost lets go of all Calls but those that the program has: their Replies are taken, and go nowhere.
func (r *responder) lost(m *Machine, err error) {
	r.collecting, r.turn, r.reading = nil, nil, 0
	for i := range m.actions.list[m.actions.first:] {
		// The program has not heard of these, and need not carry them out.
		if a := &m.actions.list[m.actions.first+i]; a.Kind == ActPlace || a.Kind == ActDeliver {
			a.In.state = inHead
			*a = Action{Kind: ActAnswered}
		}
	}
	for _, in := range r.calls {
		in.Gone = true
		in.reading, in.writing = 0, 0
		switch in.state {
		case inPlacing, inWork:
		case inAnswering:
			r.finish(m, in)
		default:
			r.release(m, in)
		}
	}
	for _, in := range r.answered {
		r.finish(m, in)
	}
	r.calls, r.answered = nil, nil
}

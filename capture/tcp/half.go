package tcp

import (
	"bytes"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/capture"
)

// Half is one direction of a connection. What it counts is of segments with payload.
type Half struct {
	Segments    int
	Bytes       int64 // of payload that were told, each once
	Missing     int64
	Resent      int // segments that brought nothing new
	FirstResent int // its record
	Late        int // segments that filled a hole, before which others were captured
	FirstLate   int
	SYNs        int // of all kinds, again ones too
	ZeroWindows int // segments that allow the other side to send nothing, of all kinds

	LongestZero   time.Duration // the longest time for which nothing was allowed, as far as the capture shows
	LongestZeroAt int           // where that began: its record

	zero   bool // nothing is allowed
	zeroAt Ref  // since then

	syn      bool // its beginning is in the capture
	begun    bool // next is known
	finished bool
	reset    bool
	first    uint32   // sequence number of the first byte
	next     uint32   // of the next byte to be told
	pieces   []*piece // in their order
	waiting  int      // cost of pieces
	since    int      // segments of the connection when the hole in front was found
	fin      bool
	finAt    uint32
	finRef   Ref
	seen     bool   // a segment was
	seenTo   uint32 // behind the last byte that was captured
	acked    bool
	ackedTo  uint32
	ackedAt  Ref
	ackedSYN bool // by a SYN, which may answer another SYN of the past
}

// piece is a stretch of bytes that was captured before what is in front of it. Pieces do not overlap.
type piece struct {
	seq    uint32
	length int
	data   []byte // shorter, if it was cut
	at     Ref
	heard  bool // its sender had heard everything of the other side before ack
	ack    uint32
}

// cost is what a piece takes of memory, about.
func (p *piece) cost() int { return len(p.data) + 128 }

func (p *piece) end() uint32 { return p.seq + uint32(p.length) }

// part returns the stretch between two sequence numbers, which are in the piece.
func (p *piece) part(from, to uint32) piece {
	a, b := int(from-p.seq), int(to-p.seq)
	return piece{seq: from, length: b - a, data: p.data[min(a, len(p.data)):min(b, len(p.data))], at: p.at, heard: p.heard, ack: p.ack}
}

// Begun reports whether the first segment of the direction is in the capture.
func (h *Half) Begun() bool { return h.syn }

// segment takes one of a connection.
func (t *Connections) segment(c *Connection, s *capture.Segment, at Ref) {
	c.Segments++
	w := c.way(s)
	h := &c.Halves[w]
	data := piece{seq: s.Seq, length: max(s.Length, 0), data: s.Data, at: at, heard: s.Flags&capture.ACK != 0, ack: s.Ack}
	if s.Flags&capture.SYN != 0 {
		data.seq++
		h.SYNs++
		h.start(data.seq)
		h.syn = true
		if o := &c.Halves[1-w]; s.Flags&capture.ACK != 0 && (len(o.pieces) == 0 || int32(o.pieces[0].seq-s.Ack) >= 0) {
			o.start(s.Ack) // nothing but a SYN was before that
		}
		switch initiates := s.Flags&capture.ACK == 0; {
		case initiates == (w == 0):
			c.Begun = true
		case c.untold(): // segments of the other side were captured before
			c.Ends[0], c.Ends[1] = c.Ends[1], c.Ends[0]
			c.Halves[0], c.Halves[1] = c.Halves[1], c.Halves[0]
			c.Begun = true
			w = 1 - w
			h = &c.Halves[w]
		}
	}
	c.follow(w, s, &data)
	if s.Flags&capture.ACK != 0 {
		o := &c.Halves[1-w]
		if !o.acked || int32(s.Ack-o.ackedTo) > 0 {
			o.acked, o.ackedTo, o.ackedAt, o.ackedSYN = true, s.Ack, at, s.Flags&capture.SYN != 0
		}
	}
	h.window(s, at)
	c.Halves[1-w].stays(at)
	if data.length > 0 {
		t.payload(c, w, data)
	}
	// TCP takes no end that is behind what it has, or far from it.
	if rel := int32(data.end() - h.origin(&data)); s.Flags&capture.FIN != 0 && !h.fin && rel >= 0 && rel <= far {
		h.fin, h.finAt, h.finRef = true, data.end(), at
	}
	if o := &c.Halves[0]; w == 1 && s.Flags&(capture.RST|capture.ACK) == capture.RST|capture.ACK && !h.syn && o.syn && s.Ack == o.first {
		c.Refused = at
	}
	if s.Flags&capture.RST != 0 && !h.reset {
		h.reset = true
		t.handler.Reset(c, w, at)
	}
	for t.waiting > MostInAll && t.giveWay(c) {
	}
	c.decided = c.decided || c.Segments >= Patience || c.inARow >= InARow
	t.begin(c)
}

// window takes how much a segment allows the other side to send.
func (h *Half) window(s *capture.Segment, at Ref) {
	h.stays(at)
	zero := s.Window == 0 && s.Flags&(capture.SYN|capture.RST|capture.FIN) == 0
	if zero {
		h.ZeroWindows++
	}
	if zero && !h.zero {
		if h.zeroAt = at; h.LongestZeroAt == 0 {
			h.LongestZeroAt = at.Record
		}
	}
	h.zero = zero
}

// stays notes that nothing was allowed until now, if so.
func (h *Half) stays(at Ref) {
	if !h.zero || at.Time.IsZero() || h.zeroAt.Time.IsZero() {
		return
	}
	if d := at.Time.Sub(h.zeroAt.Time); d > h.LongestZero {
		h.LongestZero, h.LongestZeroAt = d, h.zeroAt.Record
	}
}

// begin begins directions whose first segment is not waited for, and tells what can be told.
func (t *Connections) begin(c *Connection) {
	for w := range c.Halves {
		// Both, before anything of either is told: what early compares is of the other one.
		if h := &c.Halves[w]; !h.begun && len(h.pieces) > 0 && (c.decided || t.full(h)) {
			h.start(h.pieces[0].seq)
		}
	}
	for t.drain(c, 0) || t.drain(c, 1) {
	}
}

// untold reports whether the handler has heard nothing of what was sent.
func (c *Connection) untold() bool {
	for w := range c.Halves {
		if h := &c.Halves[w]; h.Bytes > 0 || h.Missing > 0 || h.reset || h.finished {
			return false
		}
	}
	return true
}

func (h *Half) start(seq uint32) {
	if !h.begun {
		h.begun, h.first, h.next = true, seq, seq
	}
}

// origin is what sequence numbers of a direction are compared with.
func (h *Half) origin(p *piece) uint32 {
	switch {
	case h.begun:
		return h.next
	case len(h.pieces) > 0:
		return h.pieces[0].seq
	}
	return p.seq
}

// payload puts what is new of a segment among the pieces.
func (t *Connections) payload(c *Connection, w Way, p piece) {
	h := &c.Halves[w]
	h.Segments++
	origin := h.origin(&p)
	rel := int32(p.seq - origin)
	if rel > far || rel < -far || p.length > far {
		return
	}
	if n := len(h.pieces); n > 0 && int32(h.pieces[n-1].end()-p.seq) > 2*far {
		return
	}
	if h.begun && rel < 0 {
		if int(rel)+p.length <= 0 {
			if rel != -1 || p.length > 1 { // else it asks whether the peer is there
				h.again(&p)
			}
			return
		}
		p = p.part(origin, p.end())
	}
	if h.begun && p.seq == h.next && len(h.pieces) == 0 && !c.early(w, &p) {
		t.tell(c, w, &p)
		return
	}
	fresh := 0
	late := len(h.pieces) > 0 && int32(p.seq-h.pieces[len(h.pieces)-1].seq) < 0
	i := h.endsAfter(p.seq)
	for p.length > 0 {
		for i < len(h.pieces) && int32(h.pieces[i].end()-p.seq) <= 0 {
			i++
		}
		stop := p.end()
		if i < len(h.pieces) && int32(h.pieces[i].seq-stop) < 0 {
			stop = h.pieces[i].seq
		}
		if int32(stop-p.seq) > 0 {
			one := p.part(p.seq, stop)
			one.data = bytes.Clone(one.data)
			h.pieces = slices.Insert(h.pieces, i, &one)
			h.waiting += one.cost()
			t.waiting += one.cost()
			fresh += one.length
			i++
		}
		if i == len(h.pieces) || int32(p.end()-h.pieces[i].end()) <= 0 {
			break
		}
		p = p.part(h.pieces[i].end(), p.end())
	}
	switch {
	case fresh == 0:
		h.again(&p)
	case late:
		if h.Late++; h.FirstLate == 0 {
			h.FirstLate = p.at.Record
		}
	}
}

// endsAfter returns the place of the first piece that ends after a sequence number.
func (h *Half) endsAfter(seq uint32) int {
	i, _ := slices.BinarySearchFunc(h.pieces, seq, func(p *piece, seq uint32) int {
		if int32(p.end()-seq) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

func (h *Half) again(p *piece) {
	if h.Resent++; h.FirstResent == 0 {
		h.FirstResent = p.at.Record
	}
}

// early reports whether a piece was captured before what its sender had heard when it was sent.
func (c *Connection) early(w Way, p *piece) bool {
	o := &c.Halves[1-w]
	switch {
	case !p.heard || o.finished:
		return false
	case !o.begun:
		return !c.decided
	}
	ahead := int32(p.ack - o.next)
	if o.fin && p.ack == o.finAt+1 {
		ahead--
	}
	return ahead > 0 && ahead < credible
}

// credible bounds how much can be acknowledged that is not in the capture.
const credible = 1 << 22

// drain tells what comes next of a direction, and reports whether there was something.
func (t *Connections) drain(c *Connection, w Way) bool {
	h := &c.Halves[w]
	if c.ignored || c.over {
		return false
	}
	if !h.begun {
		return false
	}
	hole, at := h.hole()
	waits := hole > 0 || len(h.pieces) > 0 && c.early(w, h.pieces[0])
	switch {
	case !waits:
		h.since = 0
		return t.advance(c, w)
	case h.since == 0:
		h.since = c.Segments
	}
	acked := h.acked && int32(h.ackedTo-h.next) >= hole
	if !t.full(h) && (hole > 0 && !acked || c.Segments-h.since < Patience) {
		return false
	}
	if hole > 0 {
		h.since = 0
		h.next += uint32(hole)
		t.missing(c, w, int(hole), at)
		return true
	}
	if t.unheard(c, w) {
		return t.drain(c, 1-w)
	}
	h.since = 0
	return t.advance(c, w)
}

// hole returns how many bytes are missing in front of what was captured, or of what the other side has acknowledged, and where that
// is known from.
func (h *Half) hole() (n int32, at Ref) {
	if len(h.pieces) > 0 {
		return int32(h.pieces[0].seq - h.next), h.pieces[0].at
	}
	if !h.acked {
		return 0, at
	}
	n = int32(h.ackedTo - h.next)
	if n == 1 || h.fin || n > credible { // one may be the end of the direction, which counts as a byte
		return 0, at
	}
	return max(n, 0), h.ackedAt
}

// advance tells of the next piece, or of the end of the direction.
func (t *Connections) advance(c *Connection, w Way) bool {
	h := &c.Halves[w]
	if len(h.pieces) > 0 {
		one := h.pieces[0]
		h.waiting -= one.cost()
		t.waiting -= one.cost()
		h.pieces[0] = nil
		if h.pieces = h.pieces[1:]; len(h.pieces) == 0 {
			h.pieces = nil
		}
		t.tell(c, w, one)
		return true
	}
	if !h.begun || !h.fin || h.finished || int32(h.next-h.finAt) < 0 {
		return false
	}
	h.finished = true
	t.handler.Finished(c, w, h.finRef)
	return true
}

// fill says that what is in front of a place is missing.
func (t *Connections) fill(c *Connection, w Way, to uint32, at Ref) {
	h := &c.Halves[w]
	if n := int32(to - h.next); n > 0 && n < far {
		h.next = to
		t.missing(c, w, int(n), at)
	}
}

// tell tells of the piece that is next.
func (t *Connections) tell(c *Connection, w Way, p *piece) {
	h := &c.Halves[w]
	h.next = p.end()
	if len(p.data) > 0 && !c.ignored {
		h.Bytes += int64(len(p.data))
		t.handler.Data(c, w, p.data, p.at)
	}
	if lost := p.length - len(p.data); lost > 0 && !c.ignored {
		t.missing(c, w, lost, p.at)
	}
}

func (t *Connections) missing(c *Connection, w Way, n int, at Ref) {
	c.Halves[w].Missing += int64(n)
	t.handler.Missing(c, w, n, at)
}

// full reports whether no more may wait of a direction.
func (t *Connections) full(h *Half) bool {
	return len(h.pieces) > MostPieces || h.waiting > MostWaiting || t.waiting > MostInAll
}

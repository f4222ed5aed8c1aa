package peers

import (
	"encoding/binary"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// Part is data of a transaction and where it goes.
type Part struct {
	Addr uint32
	Data []byte
}

func word(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// Post sends a transaction under the next id of the process. A transaction of
// one message says count 0, even if that has data (D1-1). Post returns the id.
func (d *DG1) Post(flagAddr, flagValue uint32, parts ...Part) uint32 {
	txn := d.NextTransaction()
	d.PostAs(txn, flagAddr, flagValue, parts...)
	return txn
}

// NextTransaction takes an id. The driver does that outside its lock, so
// another thread may post with a later id before (D1-14).
func (d *DG1) NextTransaction() uint32 { return d.cfg.Process.transactions.Add(1) }

// PostAs is Post under a given id: a legacy driver uses one id for all posts of
// a transfer (L5).
func (d *DG1) PostAs(txn, flagAddr, flagValue uint32, parts ...Part) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.post(txn, flagAddr, flagValue, parts, nil)
}

// Request is a transfer that the layer above makes once and posts again and
// again, with other data and another flag. Frames are not copied: one that is
// sent again has the header and the data that its request has by then (V3).
type Request struct {
	FlagAddr, FlagValue uint32
	Parts               []Part
	txn                 uint32
}

// PostRequest sends what the request is now, under the next id, or if the driver
// is the one before 2021, under the first that the request had (L5).
func (d *DG1) PostRequest(r *Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.txn == 0 || !d.cfg.legacy {
		r.txn = d.cfg.Process.transactions.Add(1)
	}
	d.post(r.txn, r.FlagAddr, r.FlagValue, r.Parts, r)
}

// Fill changes a request and its data, as the layer above does before it posts it
// again.
func (d *DG1) Fill(r *Request, change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *DG1) post(txn, flagAddr, flagValue uint32, parts []Part, r *Request) {
	var pieces []Part
	for _, p := range parts {
		for len(p.Data) > 0 {
			n := min(len(p.Data), d.chunk())
			pieces = append(pieces, Part{p.Addr, p.Data[:n]})
			p.Addr, p.Data = p.Addr+uint32(n), p.Data[n:]
		}
	}
	m := frame.Message{Txn: txn, CompletionAddr: flagAddr, CompletionValue: flagValue, Count: uint16(len(pieces))}
	if len(pieces) <= 1 {
		m.Count = 0
	}
	if len(pieces) == 0 {
		pieces = []Part{{}}
	}
	var out body
	var data [][]byte
	for i, p := range pieces {
		if out.n > 0 && out.room(d.limit()) < len(p.Data)+frame.PadLen(len(p.Data)) {
			d.frame(txn, &out, r, data)
			data = nil
		}
		m.Index, m.Addr = uint16(i+1), p.Addr
		out.add(m, p.Data, dg1Junk)
		data = append(data, p.Data)
	}
	d.frame(txn, &out, r, data)
}

// limit is what messages may take of a frame.
func (d *DG1) limit() int {
	if d.cfg.UDP {
		return 500
	}
	return 1490
}

func (d *DG1) chunk() int {
	switch {
	case d.cfg.legacy && d.cfg.UDP:
		return 470
	case d.cfg.legacy:
		return 1460
	case d.cfg.UDP:
		return 464
	}
	return 1456
}

// Outstanding returns how many frames wait for acknowledgement.
func (d *DG1) Outstanding() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy
}

// Span returns how many ids there are from the oldest frame that waits on. The
// original asserts that they are no more than 256 (D1-6).
func (d *DG1) Span() (span int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.tx {
		if s := &d.tx[i]; s.busy {
			span = max(span, d.next.Diff(s.seq))
		}
	}
	return span
}

// Waits reports whether frames of a transaction wait for acknowledgement.
func (d *DG1) Waits(txn uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[txn] > 0
}

// frame sends what is collected. The last message is padded as well, with
// whatever lies behind the data (D1-15).
func (d *DG1) frame(txn uint32, out *body, r *Request, data [][]byte) {
	for len(out.bytes)%8 != 0 {
		out.bytes = append(out.bytes, dg1Junk)
	}
	s := &d.tx[d.next%dg1Frames]
	if s.busy {
		d.violate("D1-6: assertion: frame %d is 256 ahead of one that was not acknowledged", d.next)
		return
	}
	now := time.Now()
	*s = dg1Sent{busy: true, seq: d.next, txn: txn, first: now, at: now, request: r, pieces: data}
	s.buf = make([]byte, frame.HeaderSize, frame.HeaderSize+len(out.bytes))
	h := frame.Header{Dst: d.cfg.Remote, Src: d.cfg.Local, Seq: d.next, Flags: 1}
	h.AckStart, h.AckCount = d.takeRun()
	h.Put(s.buf)
	s.buf = append(s.buf, out.bytes...)
	d.next++
	d.busy++
	d.pending[txn]++
	*out = body{}
	d.transmit(s.buf)
}

// takeRun returns what can be acknowledged in one frame: a run, in the order of
// arrival (D1-19).
func (d *DG1) takeRun() (start frame.Seq, count uint8) {
	if len(d.owed) == 0 {
		return 0, 0
	}
	longest := 255
	if d.cfg.legacy {
		longest = 2
	}
	n := 1
	for n < len(d.owed) && n < longest && d.owed[n] == d.owed[0].Add(n) {
		n++
	}
	start = d.owed[0]
	d.owed = d.owed[n:]
	d.ackedAt = time.Now()
	return start, uint8(n)
}

// refresh makes a frame say what its request says by now.
func (s *dg1Sent) refresh() {
	if s.request == nil {
		return
	}
	for i, at := 0, frame.HeaderSize; i < len(s.pieces); i++ {
		le := binary.LittleEndian
		le.PutUint32(s.buf[at:], s.request.txn)
		le.PutUint32(s.buf[at+4:], s.request.FlagAddr)
		le.PutUint32(s.buf[at+8:], s.request.FlagValue)
		at += frame.MessageHeaderSize
		n := copy(s.buf[at:], s.pieces[i])
		at += n + frame.PadLen(n)
	}
}

func (d *DG1) poll() {
	now := time.Now()
	for i := range d.tx {
		s := &d.tx[i]
		if !s.busy || now.Sub(s.at) < dg1Resend {
			continue
		}
		if !d.cfg.legacy {
			start, count := d.takeRun()
			frame.PutAck(s.buf, start, count)
		}
		s.at = now
		s.refresh()
		d.counters.Resent++
		d.transmit(s.buf)
	}
	wait := dg1AckWait
	if d.cfg.legacy {
		wait = legacyAckWait
	}
	if len(d.owed) > 0 && now.Sub(d.ackedAt) > wait {
		d.alone()
	}
}

// alone sends an acknowledgement by itself. It takes an id, but is forgotten at
// once.
func (d *DG1) alone() {
	if d.tx[d.next%dg1Frames].busy {
		d.violate("D1-6: assertion: frame %d is 256 ahead of one that was not acknowledged", d.next)
		return
	}
	b := make([]byte, frame.HeaderSize)
	h := frame.Header{Dst: d.cfg.Remote, Src: d.cfg.Local, Seq: d.next}
	h.AckStart, h.AckCount = d.takeRun()
	h.Put(b)
	d.next++
	d.transmit(b)
}

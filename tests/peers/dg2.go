package peers

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// DG2Config describes a process with the second C++ driver.
type DG2Config struct {
	Local, Remote frame.EndpointID // mailboxes, its own and ours; 0: 2 and 1
	Retransmit    bool             // off, frames are forgotten when they are sent
	Timeout       time.Duration    // 0: 500 ms
	MTU           int              // 0: 1500
	Buffer        int              // bytes of its socket buffer; 0: any number
	FrameTime     time.Duration    // that it takes for each of the frames in there
	Busy          Busy             // its machine; the zero value is an idle one
	Memory        int              // bytes; 0: 1 MiB
}

// dg2History is how many ids it remembers.
const dg2History = 255

// DG2 is the second C++ driver. It never acknowledges (D2-2).
type DG2 struct {
	Port
	cfg DG2Config

	known    map[frame.Seq]bool
	order    []frame.Seq
	incoming map[uint32]int // messages missing
	finished map[uint32]bool

	next     frame.Seq
	txn      uint32
	out      body
	sent     []dg2Sent // in the order of the last sending
	acks     map[frame.Seq]bool
	highest  frame.Seq // last id that was acknowledged
	anyAcked bool
}

type dg2Sent struct {
	seq frame.Seq
	buf []byte
	at  time.Time
}

// NewDG2 starts a driver that sends to the given address.
func NewDG2(conn transport.Conn, to transport.Addr, cfg DG2Config) *DG2 {
	if cfg.Local == 0 {
		cfg.Local, cfg.Remote = 2, 1
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 500 * time.Millisecond
	}
	if cfg.MTU == 0 {
		cfg.MTU = 1500
	}
	d := &DG2{
		cfg: cfg, next: 1, txn: 1, known: make(map[frame.Seq]bool), acks: make(map[frame.Seq]bool),
		incoming: make(map[uint32]int), finished: make(map[uint32]bool),
	}
	d.start(conn, to, portConfig{
		memory: cfg.Memory, tick: 2 * time.Millisecond, buffer: cfg.Buffer, perRead: cfg.FrameTime, busy: cfg.Busy,
	}, d.receive, d.poll)
	return d
}

func (d *DG2) receive(b []byte) {
	if len(b) < frame.HeaderSize {
		d.violate("frame of %d bytes: its length wraps", len(b))
		return
	}
	h := headerAt(b)
	if h.Dst != d.cfg.Remote {
		// Connections are looked up by destination id, under the id of the
		// other side (D2-1).
		d.counters.NotForUs++
		return
	}
	if d.known[h.Seq] {
		d.counters.Duplicates++
		if h.AckCount > 0 {
			d.counters.AcksIgnored++ // D2-3
		}
		return
	}
	d.remember(h.Seq)
	d.acknowledged(&h)
	if h.Flags == 0 {
		d.counters.AckOnly++
		return
	}
	first, mixed := messageAt(b[frame.HeaderSize:]).Txn, false
	if !eachMessage(b, func(m frame.Message, data []byte) {
		mixed = mixed || m.Txn != first
		d.message(&m, data)
	}) {
		d.violate("frame %d: message past its end", h.Seq)
	}
	if mixed {
		d.counters.Shared++
	}
}

func (d *DG2) remember(q frame.Seq) {
	d.known[q] = true
	if d.order = append(d.order, q); len(d.order) > dg2History {
		delete(d.known, d.order[0])
		d.order = d.order[1:]
	}
}

// acknowledged puts ids into a set. One that nobody waits for stays there until
// its id is used again, and then is taken for an acknowledgement (D2-4).
func (d *DG2) acknowledged(h *frame.Header) {
	for i := range int(h.AckCount) {
		q := h.AckStart.Add(i)
		waited := false
		for _, s := range d.sent {
			waited = waited || s.seq == q
		}
		switch {
		case !waited:
			d.counters.AcksStray++
		case !d.acks[q]:
			d.counters.AcksGot++
		}
		if d.anyAcked && q.Before(d.highest) {
			d.counters.AcksLate++
		}
		d.highest, d.anyAcked = q, true
		d.acks[q] = true
	}
	d.retire()
}

// retire looks at the oldest frame only (D2-5).
func (d *DG2) retire() {
	for len(d.sent) > 0 && d.acks[d.sent[0].seq] {
		delete(d.acks, d.sent[0].seq)
		d.sent = d.sent[1:]
	}
}

func (d *DG2) message(m *frame.Message, data []byte) {
	d.counters.Messages++
	if m.Len > 0 && !d.write(m.Addr, data) {
		d.violate("D2-8: transaction %d writes to %#x: the process exits", m.Txn, m.Addr)
		return
	}
	left, open := d.incoming[m.Txn]
	if !open {
		if d.finished[m.Txn] {
			d.violate("D2-13: transaction id %d is used again", m.Txn)
		}
		left = max(int(m.Count), 1)
	}
	if left--; left > 0 {
		d.incoming[m.Txn] = left
		return
	}
	delete(d.incoming, m.Txn)
	d.finished[m.Txn] = true
	if m.CompletionAddr == allOnes || m.CompletionValue == allOnes {
		return // D2-7: one of them is enough
	}
	if !d.write(m.CompletionAddr, word(m.CompletionValue)) {
		d.violate("D2-8: completion at %#x: the process exits", m.CompletionAddr)
		return
	}
	d.complete(m.Txn, m.CompletionAddr, m.CompletionValue)
}

// Post adds a transaction to the frame being built. Lengths are rounded up to
// whole words (D2-9). A frame leaves when it is full, or with Flush.
func (d *DG2) Post(flagAddr, flagValue, addr uint32, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	limit := d.cfg.MTU - frame.HeaderSize
	var pieces []int
	room := d.out.room(limit)
	for rest := (len(data) + 3) &^ 3; rest > 0; {
		n := rest
		if n > room {
			n = room &^ 15
		}
		if n > 0 {
			pieces = append(pieces, n)
			rest -= n
		} else {
			pieces = append(pieces, 0)
		}
		room = limit - frame.MessageHeaderSize
	}
	count := 0
	for _, n := range pieces {
		if n > 0 {
			count++
		}
	}
	m := frame.Message{Txn: d.txn, CompletionAddr: flagAddr, CompletionValue: flagValue, Count: uint16(count), Addr: addr}
	d.txn++
	if count == 0 {
		if room < 0 {
			d.flush()
		}
		d.out.add(m, nil, 0)
		return
	}
	data = append(append([]byte(nil), data...), 0, 0, 0)
	for i, n := range pieces {
		if n > 0 {
			m.Index++
			d.out.add(m, data[:n], 0)
			m.Addr += uint32(n)
			data = data[n:]
		}
		if i < len(pieces)-1 {
			d.flush()
		}
	}
}

// Flush sends the frame being built.
func (d *DG2) Flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flush()
}

func (d *DG2) flush() {
	if d.out.n == 0 {
		return
	}
	b := make([]byte, frame.HeaderSize, frame.HeaderSize+len(d.out.bytes))
	h := frame.Header{Dst: d.cfg.Remote, Src: d.cfg.Local, Seq: d.next, Flags: 1}
	h.Put(b)
	b = append(b, d.out.bytes...)
	d.out = body{}
	if d.cfg.Retransmit {
		d.sent = append(d.sent, dg2Sent{d.next, b, time.Now()})
	}
	d.next++
	d.transmit(b)
}

// Outstanding returns how many frames wait for acknowledgement.
func (d *DG2) Outstanding() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sent)
}

func (d *DG2) poll() {
	now := time.Now()
	for d.retire(); len(d.sent) > 0 && now.Sub(d.sent[0].at) >= d.cfg.Timeout; d.retire() {
		s := d.sent[0]
		s.at = now
		d.sent = append(d.sent[1:], s)
		d.counters.Resent++
		d.transmit(s.buf)
	}
}

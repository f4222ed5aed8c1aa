package peers

import (
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// DG1Config describes a process with the first C++ driver.
type DG1Config struct {
	Local, Remote frame.EndpointID // 0: 2 and 1
	UDP           bool             // datagrams of 512 bytes
	First         frame.Seq        // first id; 0: 1
	Process       *Process         // shared by all endpoints of a process (D1-14); nil: one of its own
	Memory        int              // bytes; 0: 1 MiB
	Buffer        int              // bytes of its socket buffer; 0: any number
	Busy          Busy             // its machine; the zero value is an idle one
	Released      bool             // starts the thread nowhere that looks at the timers (L7)
	legacy        bool
}

// Process counts the transactions of a process, over all its peers (D1-14).
type Process struct{ transactions atomic.Uint32 }

// Numbers of the driver.
const (
	dg1Frames       = 256 // slots for frames, by id
	dg1Transactions = 512 // slots for transactions, by id
	dg1Peers        = 32  // source ids that it has room for (D1-7)
	dg1Junk         = 0xA5
	dg1Poll         = 2 * time.Millisecond
	dg1Resend       = 200 * time.Millisecond
	dg1AckWait      = 80 * time.Millisecond
	legacyAckWait   = 200 * time.Millisecond / 3
)

// DG1 is the first C++ driver, or with [NewLegacy] its form before 2021. What
// it asserts is noted as a violation.
type DG1 struct {
	Port
	cfg DG1Config

	rx       [dg1Frames]dg1Received
	incoming [dg1Transactions]dg1Transaction
	owed     []frame.Seq // to be acknowledged, in order of arrival
	ackedAt  time.Time   // when a frame last took acknowledgements along

	tx      [dg1Frames]dg1Sent
	next    frame.Seq
	busy    int
	pending map[uint32]int // unacknowledged frames by transaction
}

type dg1Received struct {
	seq   frame.Seq
	acked bool
}

type dg1Transaction struct {
	txn  uint32
	left int
}

type dg1Sent struct {
	busy      bool
	seq       frame.Seq
	txn       uint32
	buf       []byte
	first, at time.Time
	request   *Request // what is in buf, as it is by now; nil: as it was sent
	pieces    [][]byte // data of each message
}

// NewDG1 starts a driver that sends to the given address.
func NewDG1(conn transport.Conn, to transport.Addr, cfg DG1Config) *DG1 {
	if cfg.Local == 0 {
		cfg.Local, cfg.Remote = 2, 1
	}
	if cfg.First == 0 {
		cfg.First = 1
	}
	if cfg.Process == nil {
		cfg.Process = new(Process)
	}
	d := &DG1{cfg: cfg, next: cfg.First, ackedAt: time.Now(), pending: make(map[uint32]int)}
	tick := dg1Poll
	if cfg.Released {
		tick = 0
	}
	d.start(conn, to, portConfig{memory: cfg.Memory, tick: tick, buffer: cfg.Buffer, udp: cfg.UDP, busy: cfg.Busy}, d.receive, d.poll)
	return d
}

// NewLegacy starts the driver as it was before 2021: data of 4 bytes is not
// written (L1), one transaction can be open (L2), ranges of acknowledgements end
// at the wrap (L3), duplicates of frames without messages are fatal (L4),
// and there is no way to say that nothing is to be completed (L6).
func NewLegacy(conn transport.Conn, to transport.Addr, cfg DG1Config) *DG1 {
	cfg.legacy = true
	return NewDG1(conn, to, cfg)
}

func (d *DG1) receive(b []byte) {
	if !d.fits(len(b)) {
		return
	}
	h := headerAt(b)
	if h.Dst != d.cfg.Local {
		d.violate("D1-20: frame %d is addressed to %d", h.Seq, h.Dst)
	}
	if h.Src != d.cfg.Remote {
		d.counters.NotForUs++
		if h.Src >= dg1Peers || d.cfg.legacy {
			d.violate("D1-7: source id %d", h.Src)
		}
		return
	}
	slot := &d.rx[h.Seq%dg1Frames]
	has := h.Flags&1 != 0
	if slot.seq == h.Seq {
		d.counters.Duplicates++
		d.copyOf(&h, slot, has)
		return
	}
	d.acknowledged(&h)
	if d.cfg.legacy {
		// Frames without messages are remembered too, and never cleared (L4).
		slot.seq = h.Seq
	}
	if !has {
		d.counters.AckOnly++
		return
	}
	slot.seq, slot.acked = h.Seq, true
	d.owed = append(d.owed, h.Seq)
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

func (d *DG1) fits(n int) bool {
	switch {
	case d.cfg.UDP && n > 510:
		d.violate("D1-10: frame of %d bytes is cut", n)
		return false
	case !d.cfg.UDP && n > 1500:
		d.violate("D1-8: frame of %d bytes ends its receiving thread", n)
		return false
	case !d.cfg.UDP && n > 1488:
		d.violate("D1-9: frame of %d bytes overruns its stack", n)
	}
	return n >= frame.HeaderSize
}

// copyOf acts on a frame whose id it knows: it is acknowledged again, and what
// it acknowledges is not looked at (D1-5).
func (d *DG1) copyOf(h *frame.Header, slot *dg1Received, has bool) {
	if h.AckCount > 0 {
		d.counters.AcksIgnored++
	}
	if !slot.acked {
		d.violate("D1-3, L4: assertion: copy of frame %d, which was never acknowledged", h.Seq)
	}
	if !has && !d.cfg.legacy {
		d.violate("D1-4: assertion: frame %d without messages has the id of one with", h.Seq)
	}
	d.owed = append(d.owed, h.Seq)
}

func (d *DG1) acknowledged(h *frame.Header) {
	for i := range int(h.AckCount) {
		q := int(h.AckStart) + i
		if q > 65535 && d.cfg.legacy {
			return // plain integers: these match no id (L3)
		}
		s := &d.tx[q%dg1Frames]
		if !s.busy || s.seq != frame.Seq(q) {
			continue
		}
		s.busy = false
		d.busy--
		d.counters.AcksGot++
		d.counters.LongestWait = max(d.counters.LongestWait, time.Since(s.first))
		if d.pending[s.txn]--; d.pending[s.txn] == 0 {
			delete(d.pending, s.txn)
		}
	}
}

func (d *DG1) message(m *frame.Message, data []byte) {
	d.counters.Messages++
	at := m.Txn % dg1Transactions
	if d.cfg.legacy {
		if at = m.Txn & dg1Transactions; at != 0 {
			d.violate("L2: transaction %d is counted outside the array", m.Txn)
			at = 1
		}
	}
	t := &d.incoming[at]
	switch {
	case t.left == 0:
		*t = dg1Transaction{m.Txn, int(m.Count)}
	case t.txn != m.Txn:
		d.violate("D1-12, L2: transactions %d and %d are mixed up", t.txn, m.Txn)
	}
	switch {
	case m.Count == 0 && m.Len > 0:
		d.violate("D1-2: transaction %d has count 0 and %d bytes, which are dropped", m.Txn, m.Len)
	case m.Count == 0:
	case d.cfg.legacy && m.Len == 4:
		d.violate("L1: transaction %d has 4 bytes of data, which are dropped", m.Txn)
		t.left--
	default:
		if !d.write(m.Addr, data) {
			d.violate("D1-11: transaction %d writes to %#x without a check", m.Txn, m.Addr)
		}
		t.left--
	}
	if t.left <= 0 {
		t.left = 0
		d.flag(m)
	}
}

func (d *DG1) flag(m *frame.Message) {
	switch {
	case !m.Completes() && d.cfg.legacy:
		d.violate("L6: transaction %d: completion at 0xFFFFFFFF", m.Txn)
	case !m.Completes():
	case !d.write(m.CompletionAddr, word(m.CompletionValue)):
		d.violate("D1-11: completion at %#x without a check", m.CompletionAddr)
	default:
		d.complete(m.Txn, m.CompletionAddr, m.CompletionValue)
	}
}

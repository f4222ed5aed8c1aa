package peers

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// FPGAConfig describes an engine. Zero values are those of the board that most
// people have.
type FPGAConfig struct {
	Local, Remote frame.EndpointID // written into its frames, never read; 0: 2 and 1
	Width         int              // of the window, in ids; 0: 32
	MaxAck        int              // ids per acknowledgement; 0: 12
	AckWait       time.Duration    // 0: 1.5 ms
	AckEvery      int              // 0: 8
	Bus           int              // bytes: 4, 8 or 16; 0: 8
	MTU           int              // counts the link header (F17); 0: 1500
	Coalesce      time.Duration    // how long a frame waits for company; 0: not at all
	First         frame.Seq        // the id expected first; 0: 1, as after a reset
	Memory        int              // bytes; 0: 1 MiB
}

// openTransactions is how many transactions the engine has room for.
const openTransactions = 64

// FPGA is the hardware engine. It never retransmits, never looks at
// acknowledgements (F13), and acknowledges each id once (F2).
type FPGA struct {
	Port
	cfg FPGAConfig

	base    frame.Seq // lowest id not acknowledged
	seen    []bool    // by distance from base
	since   time.Time // when something to acknowledge appeared
	open    map[uint32]*fpgaTransaction
	due     uint32 // transaction whose completion is written next
	nextSeq frame.Seq
	nextTxn uint32
	out     body
	outAt   time.Time // when out got its first message
}

type fpgaTransaction struct {
	left        int
	addr, value uint32
}

// NewFPGA starts an engine that sends to the given address.
func NewFPGA(conn transport.Conn, to transport.Addr, cfg FPGAConfig) *FPGA {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.Width, 32)
	def(&cfg.MaxAck, 12)
	def(&cfg.AckEvery, 8)
	def(&cfg.Bus, 8)
	def(&cfg.MTU, 1500)
	if cfg.AckWait == 0 {
		cfg.AckWait = 1500 * time.Microsecond
	}
	if cfg.First == 0 {
		cfg.First = 1
	}
	if cfg.Local == 0 {
		cfg.Local, cfg.Remote = 2, 1
	}
	f := &FPGA{cfg: cfg}
	f.reset()
	f.base = cfg.First
	f.start(conn, to, portConfig{memory: cfg.Memory, tick: cfg.AckWait / 3}, f.receive, f.poll)
	return f
}

// Reset does what disabling and enabling the engine does: everything starts at
// 1 again (F5).
func (f *FPGA) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset()
}

func (f *FPGA) reset() {
	f.base, f.nextSeq, f.nextTxn, f.due = 1, 1, 1, 1
	f.seen = make([]bool, f.cfg.Width)
	f.open = make(map[uint32]*fpgaTransaction)
	f.out = body{}
}

// Base returns the lowest id that was not acknowledged.
func (f *FPGA) Base() frame.Seq {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.base
}

// Due returns the transaction whose completion is written next.
func (f *FPGA) Due() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.due
}

func (f *FPGA) acceptable(q frame.Seq) bool {
	d := int(uint16(q - f.base))
	return d < f.cfg.Width && !f.seen[d]
}

func (f *FPGA) mark(q frame.Seq) {
	before := f.run()
	f.seen[uint16(q-f.base)] = true
	if before == 0 && f.run() > 0 {
		f.since = time.Now()
	}
	if f.run() >= f.cfg.AckEvery {
		f.frame()
	}
}

// run is how many ids can be acknowledged: contiguous ones only (F1).
func (f *FPGA) run() (n int) {
	for n < f.cfg.MaxAck && n < f.cfg.Width && f.seen[n] {
		n++
	}
	return n
}

// receive parses a datagram as the engine does: behind a header without
// messages it looks for another header at once, in what is only padding (F3).
func (f *FPGA) receive(b []byte) {
	if n := minPayload - len(b); n > 0 {
		b = append(append([]byte(nil), b...), make([]byte, n)...)
	}
	for at := 0; len(b)-at >= frame.HeaderSize; at += 16 {
		h := headerAt(b[at:])
		if !f.acceptable(h.Seq) {
			if at == 0 {
				f.rejected(h.Seq)
			} else if at == 16 && h.Seq == headerAt(b).Seq {
				f.counters.Probes++
			}
			return
		}
		if at > 0 {
			f.violate("F3: padding behind frame %d was taken for frame %d", headerAt(b).Seq, h.Seq)
		}
		if h.Flags&1 == 0 {
			if at == 0 {
				f.counters.AckOnly++
				if h.AckCount > 0 {
					f.violate("F13: frame %d acknowledges to one who does not look", h.Seq)
				}
			}
			f.mark(h.Seq)
			continue
		}
		if f.messages(b[at+frame.HeaderSize:]) {
			f.mark(h.Seq)
		}
		return
	}
}

func (f *FPGA) rejected(q frame.Seq) {
	// Ids up to a window back may have been acknowledged already.
	if d := q.Diff(f.base); d >= f.cfg.Width {
		f.counters.Outside++
	} else {
		f.counters.Duplicates++
	}
}

// messages acts on the messages of a frame and reports whether it came to its
// end: only then the frame is acknowledged.
func (f *FPGA) messages(b []byte) bool {
	txns := make(map[uint32]bool)
	defer func() {
		if len(txns) > 1 {
			f.counters.Shared++
		}
	}()
	for at := 0; ; {
		if len(b)-at < frame.MessageHeaderSize {
			f.violate("F8: a message at offset %d has no header", at)
			return false
		}
		m := messageAt(b[at:])
		at += frame.MessageHeaderSize
		f.counters.Messages++
		txns[m.Txn] = true
		switch n := int(m.Len); {
		case m.Count == 0:
			if n > 0 {
				f.violate("F8: transaction %d has count 0 and %d bytes, which are dropped", m.Txn, n)
			}
		case n == 0 || n > 16384:
			f.violate("F9: transaction %d has a message of length %d; the rest of the frame is lost", m.Txn, n)
			return false
		case n > len(b)-at:
			f.violate("transaction %d: message past the end of its frame", m.Txn)
			return false
		default:
			f.data(&m, b[at:])
			at += n + frame.PadLen(n)
		}
		f.account(&m)
		if !m.More {
			return true
		}
	}
}

// data writes whole words: the last may take padding along.
func (f *FPGA) data(m *frame.Message, b []byte) {
	if int(m.Addr)%f.cfg.Bus != 0 {
		f.violate("F11: transaction %d writes to %#x, not a multiple of %d", m.Txn, m.Addr, f.cfg.Bus)
		return
	}
	n := (int(m.Len) + 3) &^ 3
	if !f.write(m.Addr&(1<<30-1), b[:min(n, len(b))]) {
		f.violate("transaction %d writes %d bytes to %#x, outside the memory", m.Txn, n, m.Addr)
	}
}

// account counts a message, and writes completions in the order of transaction
// ids, whatever the order in which they become complete (F7).
func (f *FPGA) account(m *frame.Message) {
	ahead := m.Txn - f.due
	if ahead >= openTransactions {
		f.violate("F6: transaction %d, due is %d: its completion is lost", m.Txn, f.due)
		return
	}
	f.counters.MostOpen = max(f.counters.MostOpen, int(ahead)+1)
	t := f.open[m.Txn]
	if t == nil {
		t = &fpgaTransaction{left: max(int(m.Count), 1), addr: m.CompletionAddr, value: m.CompletionValue}
		f.open[m.Txn] = t
	}
	if t.left--; t.left < 0 {
		f.violate("transaction %d has too many messages", m.Txn)
	}
	for t := f.open[f.due]; t != nil && t.left <= 0; t = f.open[f.due] {
		if t.addr == allOnes && t.value == allOnes {
			f.violate("F10: transaction %d has no completion: word 0xFFFFFF of the control plane is overwritten", f.due)
		}
		f.complete(f.due, t.addr, t.value)
		delete(f.open, f.due)
		f.due++
	}
}

func (f *FPGA) poll() {
	now := time.Now()
	if f.run() > 0 && now.Sub(f.since) >= f.cfg.AckWait || f.out.n > 0 && now.Sub(f.outAt) >= f.cfg.Coalesce {
		f.frame()
	}
}

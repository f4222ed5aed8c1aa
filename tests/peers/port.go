package peers

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// minPayload is the least payload of an Ethernet frame; links fill up to it.
const minPayload = 46

const allOnes = frame.NoCompletion

// Completion is a completion word that a double wrote.
type Completion struct {
	Txn, Addr, Value uint32
}

// Port is what all doubles have: an end of the network, memory that is written
// into, and notes about what happened.
type Port struct {
	conn transport.Conn
	to   transport.Addr
	stop chan struct{}
	wg   sync.WaitGroup
	cfg  portConfig

	mu          sync.Mutex
	socket      socket
	mem         []byte
	completions []Completion
	violations  []string
	counters    Counters
}

// Counters are what doubles count. Each says which of them counts it.
type Counters struct {
	Frames     int // received, with messages or without
	AckOnly    int // received without messages
	Longest    int // bytes of the longest frame received
	Sent       int // frames sent, of all kinds
	Resent     int // frames sent again
	Duplicates int // received frames recognised as copies
	Messages   int // received
	Shared     int // received frames with messages of several transactions

	Outside  int // FPGA: frames out of its window
	MostOpen int // FPGA: how far a transaction was ahead of the one due next
	Probes   int // FPGA: frames without messages and with their own id in the padding

	AcksGot     int // DG1, DG2: ids that were acknowledged when it waited for that
	AcksIgnored int // DG1, DG2: acknowledgements in copies, never looked at
	AcksStray   int // DG2: ids that were acknowledged when it did not wait for that
	AcksLate    int // DG2: acknowledgements of ids below one acknowledged before
	Overrun     int // DG1, DG2: frames for which its socket buffer had no room
	NotForUs    int // frames that match no connection
	LongestWait time.Duration
}

// portConfig describes the process around a double.
type portConfig struct {
	memory  int           // bytes; 0: 1 MiB
	tick    time.Duration // how often its timers are looked at; 0: never
	buffer  int           // bytes of its socket buffer; 0: any number
	udp     bool          // what comes are datagrams of UDP
	perRead time.Duration // that it takes for each frame in there
	busy    Busy
}

func (p *Port) start(conn transport.Conn, to transport.Addr, cfg portConfig, receive func([]byte), poll func()) {
	if cfg.memory == 0 {
		cfg.memory = 1 << 20
	}
	p.conn, p.to, p.stop, p.cfg, p.mem = conn, to, make(chan struct{}), cfg, make([]byte, cfg.memory)
	take := receive
	if cfg.buffer > 0 || cfg.perRead > 0 || cfg.busy.Every > 0 {
		p.socket = socket{size: cfg.buffer, headers: packetHeaders(cfg.udp), perRead: cfg.perRead, wake: make(chan struct{}, 1)}
		take = func(b []byte) {
			if !p.socket.put(b) {
				p.counters.Overrun++
			}
		}
		p.wg.Go(func() { p.read(receive) })
	}
	p.wg.Go(func() { p.listen(take) })
	if cfg.tick > 0 {
		p.wg.Go(func() { p.timers(poll) })
	}
}

// listen is the kernel's side of the socket.
func (p *Port) listen(take func([]byte)) {
	in := make([]transport.Datagram, 64)
	for {
		n, err := p.conn.Recv(in, transport.Forever)
		if err != nil {
			return
		}
		p.mu.Lock()
		for _, d := range in[:n] {
			p.counters.Frames++
			p.counters.Longest = max(p.counters.Longest, len(d.Data))
			if len(d.Data) >= frame.HeaderSize && d.Data[9] > 1 {
				p.violate("D2-6: flags are %#x, neither 0 nor 1", d.Data[9])
			}
			take(d.Data)
		}
		p.mu.Unlock()
	}
}

// timers is the thread that looks at the timers.
func (p *Port) timers(poll func()) {
	t := newPauses(p.cfg.busy, 2, time.Now())
	ticker := time.NewTicker(p.cfg.tick)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
		t.wait()
		p.mu.Lock()
		poll()
		p.mu.Unlock()
	}
}

// Close ends the double.
func (p *Port) Close() {
	close(p.stop)
	p.conn.Close()
	p.wg.Wait()
}

// Violations returns what the original would not have survived, or would have
// done wrong without a sign.
func (p *Port) Violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.violations)
}

// Counters returns what was counted.
func (p *Port) Counters() Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counters
}

// Completions returns the completion words in the order of their writing.
func (p *Port) Completions() []Completion {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.completions)
}

// Bytes returns a copy of memory.
func (p *Port) Bytes(addr, n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mem[addr : addr+n])
}

const maxViolations = 20

func (p *Port) violate(format string, args ...any) {
	if len(p.violations) < maxViolations {
		p.violations = append(p.violations, fmt.Sprintf(format, args...))
	}
}

func (p *Port) transmit(b []byte) {
	headroom := p.conn.Caps().Headroom
	buf := make([]byte, headroom+len(b))
	copy(buf[headroom:], b)
	p.counters.Sent++
	if _, err := p.conn.Send([]transport.Outgoing{{To: new(p.to), Buf: buf}}); err != nil {
		select {
		case <-p.stop:
		default:
			p.violate("send: %v", err)
		}
	}
}

// write puts data into memory and reports whether it fits.
func (p *Port) write(addr uint32, data []byte) bool {
	if uint64(addr)+uint64(len(data)) > uint64(len(p.mem)) {
		return false
	}
	copy(p.mem[addr:], data)
	return true
}

func (p *Port) complete(txn, addr, value uint32) {
	p.completions = append(p.completions, Completion{txn, addr, value})
}

func headerAt(b []byte) frame.Header {
	return frame.Header{
		Dst: frame.EndpointID(binary.LittleEndian.Uint16(b)), Src: frame.EndpointID(binary.LittleEndian.Uint16(b[2:])),
		Seq: frame.Seq(binary.LittleEndian.Uint16(b[4:])), AckStart: frame.Seq(binary.LittleEndian.Uint16(b[6:])),
		AckCount: b[8], Flags: b[9],
	}
}

func messageAt(b []byte) frame.Message {
	le := binary.LittleEndian
	return frame.Message{
		Txn: le.Uint32(b), CompletionAddr: le.Uint32(b[4:]), CompletionValue: le.Uint32(b[8:]),
		Count: le.Uint16(b[12:]), Index: le.Uint16(b[14:]), Addr: le.Uint32(b[16:]), Len: le.Uint16(b[20:]),
		Type: b[22], More: b[23] != 0,
	}
}

// eachMessage walks the messages behind a frame header the way the C++ drivers
// do. It reports whether none reaches past the end.
func eachMessage(b []byte, act func(m frame.Message, data []byte)) bool {
	for at := frame.HeaderSize; ; {
		if len(b)-at < frame.MessageHeaderSize {
			return false
		}
		m := messageAt(b[at:])
		at += frame.MessageHeaderSize
		if len(b)-at < int(m.Len) {
			return false
		}
		act(m, b[at:at+int(m.Len)])
		if !m.More {
			return true
		}
		at += int(m.Len) + frame.PadLen(int(m.Len))
	}
}

// body is the messages of a frame that is being built.
type body struct {
	bytes []byte
	last  int // offset of the last message header
	n     int
}

// room returns how many data bytes one more message can have.
func (b *body) room(limit int) int {
	used := len(b.bytes)
	return limit - used - frame.PadLen(used) - frame.MessageHeaderSize
}

func (b *body) add(m frame.Message, data []byte, junk byte) {
	for len(b.bytes)%8 != 0 {
		b.bytes = append(b.bytes, junk)
	}
	if b.n > 0 {
		b.bytes[b.last+23] = 1
	}
	b.last = len(b.bytes)
	b.n++
	b.bytes = append(b.bytes, make([]byte, frame.MessageHeaderSize)...)
	m.Len = uint16(len(data))
	m.Put(b.bytes[b.last:])
	b.bytes = append(b.bytes, data...)
}

package peers

import (
	"encoding/binary"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// frame sends what is collected together with what can be acknowledged. The
// base goes along even if nothing is: everything before it was received.
func (f *FPGA) frame() {
	n := f.run()
	h := frame.Header{Dst: f.cfg.Remote, Src: f.cfg.Local, Seq: f.nextSeq, AckStart: f.base, AckCount: uint8(n)}
	f.nextSeq++
	if f.out.n > 0 {
		h.Flags = 1
	}
	b := make([]byte, frame.HeaderSize, max(frame.HeaderSize+len(f.out.bytes), minPayload))
	h.Put(b)
	b = append(b, f.out.bytes...)
	if len(b) < minPayload {
		b = b[:minPayload]
	}
	f.out = body{}
	f.base = f.base.Add(n)
	copy(f.seen, f.seen[n:])
	clear(f.seen[len(f.seen)-n:])
	f.since = time.Now()
	f.transmit(b)
}

// Skip takes the next frame id without sending anything: to the receiver the
// frame is lost.
func (f *FPGA) Skip() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nextSeq++
}

// limit is what messages may take of a frame.
func (f *FPGA) limit() int { return f.cfg.MTU - 14 - frame.HeaderSize }

// Doorbell writes a word as data, without completion (F15).
func (f *FPGA) Doorbell(addr, value uint32) {
	f.Write(addr, binary.LittleEndian.AppendUint32(nil, value), allOnes, allOnes)
}

// Write sends a transaction, behind those that wait for company. The length is
// rounded up to whole words.
func (f *FPGA) Write(addr uint32, data []byte, flagAddr, flagValue uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(data)%4 != 0 {
		data = append(data[:len(data):len(data)], 0)
	}
	if f.out.room(f.limit()) < f.cfg.Bus {
		f.frame()
	}
	m := frame.Message{
		Txn: f.nextTxn, CompletionAddr: flagAddr, CompletionValue: flagValue,
		Count: uint16(f.announce(len(data))), Index: 1, Addr: addr,
	}
	f.nextTxn++
	for len(data) > 0 {
		n := f.cut(len(data))
		if f.out.n == 0 {
			f.outAt = time.Now()
		}
		f.out.add(m, data[:n], data[max(n-4, 0)])
		m.Index++
		m.Addr += uint32(n)
		if data = data[n:]; len(data) > 0 {
			f.frame()
		}
	}
	if f.cfg.Coalesce == 0 || f.run() > 0 {
		f.frame()
	}
}

// cut returns how much of n bytes goes into the frame being built.
func (f *FPGA) cut(n int) int {
	room := f.out.room(f.limit())
	if n <= room&^(min(f.cfg.Bus, 8)-1) {
		return n
	}
	return room &^ (f.cfg.Bus - 1)
}

// announce is how many messages the engine says there will be. With a bus of 16
// bytes it overlooks that the last frame may hold 8 bytes more than the others,
// and says one too many if the rest fits there (F16).
func (f *FPGA) announce(n int) int {
	first := f.cut(n)
	if first == n {
		return 1
	}
	later := (f.limit() - frame.MessageHeaderSize) &^ (f.cfg.Bus - 1)
	return 1 + (n-first+later-1)/later
}

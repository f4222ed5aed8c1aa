package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"strings"
	"time"
)

// Block types of pcapng, and the option codes of an interface that matter.
const (
	ngSection    = 0x0A0D0D0A
	ngInterface  = 1
	ngPacket     = 2
	ngSimple     = 3
	ngStatistics = 5
	ngEnhanced   = 6

	ngOrder = 0x1A2B3C4D // as a section has it, in its byte order

	ngName       = 2
	ngResolution = 9
	ngOffset     = 14

	ngDropped       = 5 // of statistics: for want of room, as dumpcap writes what the kernel dropped
	ngDroppedSystem = 7 // the same, by the operating system
)

// maxInterfaces bounds the memory for one section; the number is arbitrary.
const maxInterfaces = 1 << 16

// maxName is how much is kept of an interface's name. Linux allows 15 bytes, and Windows
// needs 50.
const maxName = 64

type pcapng struct {
	in     *input
	order  binary.ByteOrder
	ifaces []Interface
	clocks []ngClock // of the ifaces
	drops  []uint64  // of the ifaces, as statistics say
	before uint64    // what the sections before dropped
}

// ngClock is what the packets of an interface are read with.
type ngClock struct {
	snap   uint32
	ticks  uint64 // per second
	offset int64  // seconds
}

func (p *pcapng) interfaces() []Interface { return p.ifaces }

func (p *pcapng) dropped() int {
	n := p.before
	for _, d := range p.drops {
		n += d
	}
	return int(min(n, maxDropped))
}

// maxDropped bounds what statistics claim, so that sums over the interfaces of all sections do not overflow. Arbitrary.
const maxDropped = 1<<31 - 1

func (p *pcapng) Next() (Record, error) {
	for {
		p.in.start = p.in.off
		h, err := p.in.read(8)
		if err != nil {
			return Record{}, err
		}
		if binary.LittleEndian.Uint32(h) == ngSection {
			if err := p.section([4]byte(h[4:])); err != nil {
				return Record{}, err
			}
			continue
		}
		kind, total := p.order.Uint32(h), p.order.Uint32(h[4:])
		if total < 12 || total%4 != 0 || total > 1<<30 {
			return Record{}, fmt.Errorf("block claims %d bytes", total)
		}
		body := int(total) - 12
		var rec Record
		before, isPacket := p.in.off, false
		switch kind {
		case ngInterface:
			err = p.iface(body)
		case ngStatistics:
			err = p.statistics(body)
		case ngEnhanced, ngPacket:
			rec, err = p.packet(kind, body)
			isPacket = true
		case ngSimple:
			rec, err = p.simple(body)
			isPacket = true
		}
		if err == nil {
			err = p.finish(body-int(p.in.off-before), total)
		}
		if err != nil || isPacket {
			return rec, err
		}
	}
}

// finish skips the rest of a block and compares its two lengths. It leaves the
// buffer of input alone, which holds the packet.
func (p *pcapng) finish(rest int, total uint32) error {
	if err := p.in.skip(rest); err != nil {
		return err
	}
	last, err := p.in.r.Peek(4)
	if len(last) < 4 {
		return inside(err)
	}
	if n := p.order.Uint32(last); n != total {
		return fmt.Errorf("block of %d bytes ends with length %d", total, n)
	}
	return p.in.skip(4)
}

func (p *pcapng) section(length [4]byte) error {
	b, err := p.in.read(16)
	if err != nil {
		return inside(err)
	}
	switch uint32(ngOrder) {
	case binary.LittleEndian.Uint32(b):
		p.order = binary.LittleEndian
	case binary.BigEndian.Uint32(b):
		p.order = binary.BigEndian
	default:
		return errors.New("section without byte order mark")
	}
	if major := p.order.Uint16(b[4:]); major != 1 {
		return fmt.Errorf("pcapng version %d is not supported", major)
	}
	total := p.order.Uint32(length[:])
	if total < 28 || total%4 != 0 || total > 1<<30 {
		return fmt.Errorf("section header claims %d bytes", total)
	}
	p.before = uint64(p.dropped())
	p.ifaces, p.clocks, p.drops = p.ifaces[:0], p.clocks[:0], p.drops[:0]
	return p.finish(int(total)-28, total)
}

func (p *pcapng) iface(body int) error {
	if body < 8 || body > maxRecord || len(p.ifaces) == maxInterfaces {
		return fmt.Errorf("interface %d is described by %d bytes", len(p.ifaces), body)
	}
	b, err := p.in.read(body)
	if err != nil {
		return inside(err)
	}
	i := Interface{LinkType: int(p.order.Uint16(b))}
	clock := ngClock{snap: p.order.Uint32(b[4:]), ticks: 1e6}
	for code, value := range p.options(b[8:]) {
		switch n := len(value); {
		case code == ngName:
			i.Name = strings.ToValidUTF8(string(value[:min(n, maxName)]), "") // not within a character
		case code == ngResolution && n == 1:
			if clock.ticks, err = ticksPerSecond(value[0]); err != nil {
				return err
			}
		case code == ngOffset && n == 8:
			clock.offset = int64(p.order.Uint64(value))
		}
	}
	p.ifaces, p.clocks, p.drops = append(p.ifaces, i), append(p.clocks, clock), append(p.drops, 0)
	return nil
}

// options yields those of a block, as far as they make sense.
func (p *pcapng) options(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			code, n := p.order.Uint16(b), int(p.order.Uint16(b[2:]))
			padded := 4 + (n+3)&^3
			if code == 0 || padded > len(b) || !yield(code, b[4:4+n]) {
				return
			}
			b = b[padded:]
		}
	}
}

// statistics reads how much of an interface was dropped since the capture began: later ones replace those before. What does not
// make sense is left alone, as packets can be read without it.
func (p *pcapng) statistics(body int) error {
	if body < 12 || body > maxRecord {
		return nil
	}
	b, err := p.in.read(body)
	if err != nil {
		return inside(err)
	}
	id := p.order.Uint32(b)
	if int64(id) >= int64(len(p.drops)) {
		return nil
	}
	n, said := uint64(0), false
	for code, value := range p.options(b[12:]) {
		if (code == ngDropped || code == ngDroppedSystem) && len(value) == 8 {
			n, said = min(n+min(p.order.Uint64(value), maxDropped), maxDropped), true
		}
	}
	if said {
		p.drops[id] = n
	}
	return nil
}

// ticksPerSecond reads a resolution: a negative power of 10, or of 2 if the
// highest bit is set.
func ticksPerSecond(v byte) (uint64, error) {
	switch exp := v & 0x7F; {
	case v&0x80 != 0 && exp < 64:
		return 1 << exp, nil
	case v&0x80 == 0 && exp < 20:
		ticks := uint64(1)
		for range exp {
			ticks *= 10
		}
		return ticks, nil
	}
	return 0, fmt.Errorf("time resolution %#x", v)
}

func (c *ngClock) time(stamp uint64) time.Time {
	hi, lo := bits.Mul64(stamp%c.ticks, 1e9)
	nanos, _ := bits.Div64(hi, lo, c.ticks)
	return time.Unix(int64(stamp/c.ticks)+c.offset, int64(nanos)).UTC()
}

func (p *pcapng) packet(kind uint32, body int) (rec Record, err error) {
	if body < 20 {
		return rec, fmt.Errorf("packet block with %d bytes", body)
	}
	b, err := p.in.read(20)
	if err != nil {
		return rec, inside(err)
	}
	id := p.order.Uint32(b)
	if kind == ngPacket {
		id = uint32(p.order.Uint16(b))
	}
	if err := rec.from(p, id); err != nil {
		return rec, err
	}
	rec.Time = p.clocks[id].time(uint64(p.order.Uint32(b[4:]))<<32 | uint64(p.order.Uint32(b[8:])))
	return rec, rec.fill(p.in, p.order.Uint32(b[12:]), p.order.Uint32(b[16:]), body-20)
}

// simple reads a packet without time and without its own captured length.
func (p *pcapng) simple(body int) (rec Record, err error) {
	if body < 4 {
		return rec, fmt.Errorf("packet block with %d bytes", body)
	}
	b, err := p.in.read(4)
	if err != nil {
		return rec, inside(err)
	}
	if err := rec.from(p, 0); err != nil {
		return rec, err
	}
	length := p.order.Uint32(b)
	captured := min(length, uint32(body-4))
	if snap := p.clocks[0].snap; snap != 0 {
		captured = min(captured, snap)
	}
	return rec, rec.fill(p.in, captured, length, body-4)
}

func (rec *Record) from(p *pcapng, id uint32) error {
	if int64(id) >= int64(len(p.ifaces)) {
		return fmt.Errorf("packet of interface %d of %d", id, len(p.ifaces))
	}
	i := &p.ifaces[id]
	rec.Interface, rec.Name, rec.LinkType = int(id), i.Name, i.LinkType
	return nil
}

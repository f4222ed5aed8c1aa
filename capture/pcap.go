package capture

import (
	"encoding/binary"
	"fmt"
	"time"
)

// pcap is the classic format.
type pcap struct {
	in    *input
	order binary.ByteOrder
	tick  time.Duration
	only  [1]Interface
}

func (p *pcap) interfaces() []Interface { return p.only[:] }

func (p *pcap) dropped() int { return 0 } // the format cannot say

func openPcap(in *input) (format, error) {
	h, err := in.read(24)
	if err != nil {
		return nil, inside(err)
	}
	p := &pcap{in: in, order: binary.LittleEndian, tick: time.Microsecond}
	switch magic := binary.LittleEndian.Uint32(h); magic {
	case 0xA1B2C3D4:
	case 0xA1B23C4D:
		p.tick = time.Nanosecond
	case 0xD4C3B2A1:
		p.order = binary.BigEndian
	case 0x4D3CB2A1:
		p.order, p.tick = binary.BigEndian, time.Nanosecond
	default:
		return nil, errNotCapture
	}
	// The upper half may tell the length of the frame check sequence.
	link := int(p.order.Uint32(h[20:]) & 0xFFFF)
	if !knownLinkType(link) {
		return nil, fmt.Errorf("link type %d is not supported", link)
	}
	p.only[0].LinkType = link
	return p, nil
}

func (p *pcap) Next() (Record, error) {
	p.in.start = p.in.off
	h, err := p.in.read(16)
	if err != nil {
		return Record{}, err
	}
	rec := Record{
		Time:     time.Unix(int64(p.order.Uint32(h)), int64(p.order.Uint32(h[4:]))*int64(p.tick)).UTC(),
		LinkType: p.only[0].LinkType,
	}
	return rec, rec.fill(p.in, p.order.Uint32(h[8:]), p.order.Uint32(h[12:]), maxRecord)
}

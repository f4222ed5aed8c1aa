// Package capturetest makes capture files for tests, and packets for them.
package capturetest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"
	"time"
)

// Stamp is the time of all packets.
var Stamp = time.Date(2021, 3, 4, 5, 6, 7, 123456000, time.UTC)

// Packet is a packet to be put in a file.
type Packet struct {
	Link   int // type of its interface
	Data   []byte
	Length int // on the wire; 0: all was captured
}

// Of is a packet that was captured whole.
func Of(link int, data []byte) Packet { return Packet{Link: link, Data: data} }

// Wire is how long it was on the wire.
func (p Packet) Wire() uint32 { return uint32(max(p.Length, len(p.Data))) }

// ByteOrder is one of those that files may have.
type ByteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// Pcap writes the classic format.
func Pcap(o ByteOrder, nano bool, packets ...Packet) []byte {
	magic, fraction := uint32(0xA1B2C3D4), uint32(Stamp.Nanosecond()/1000)
	if nano {
		magic, fraction = 0xA1B23C4D, uint32(Stamp.Nanosecond())
	}
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = o.AppendUint32(b, 65535)
	b = o.AppendUint32(b, uint32(packets[0].Link))
	for _, p := range packets {
		b = o.AppendUint32(b, uint32(Stamp.Unix()))
		b = o.AppendUint32(b, fraction)
		b = o.AppendUint32(b, uint32(len(p.Data)))
		b = append(o.AppendUint32(b, p.Wire()), p.Data...)
	}
	return b
}

// Block is one of pcapng.
func Block(o ByteOrder, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + 12)
	b := o.AppendUint32(nil, kind)
	b = append(o.AppendUint32(b, n), body...)
	return o.AppendUint32(b, n)
}

// Section begins a section of pcapng.
func Section(o ByteOrder) []byte {
	b := o.AppendUint32(nil, 0x1A2B3C4D)
	b = o.AppendUint16(b, 1)
	b = o.AppendUint16(b, 0)
	return Block(o, 0x0A0D0D0A, append(b, bytes.Repeat([]byte{0xFF}, 8)...))
}

// Interface describes an interface; options are appended as they are.
func Interface(o ByteOrder, link int, snap uint32, options ...byte) []byte {
	b := o.AppendUint16(nil, uint16(link))
	b = o.AppendUint16(b, 0)
	return Block(o, 1, append(o.AppendUint32(b, snap), options...))
}

// Option is one of a block.
func Option(o ByteOrder, code uint16, value ...byte) []byte {
	b := o.AppendUint16(nil, code)
	b = append(o.AppendUint16(b, uint16(len(value))), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// Enhanced is a packet of an interface.
func Enhanced(o ByteOrder, iface int, ticks uint64, p Packet) []byte {
	b := o.AppendUint32(nil, uint32(iface))
	b = o.AppendUint32(b, uint32(ticks>>32))
	b = o.AppendUint32(b, uint32(ticks))
	b = o.AppendUint32(b, uint32(len(p.Data)))
	b = append(o.AppendUint32(b, p.Wire()), p.Data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return Block(o, 6, append(b, Option(o, 2, 1, 0, 0, 0)...))
}

// Ng writes pcapng, with an interface for each packet.
func Ng(o ByteOrder, packets ...Packet) []byte {
	b := Section(o)
	for i, p := range packets {
		b = append(b, Interface(o, p.Link, 0)...)
		b = append(b, Enhanced(o, i, uint64(Stamp.UnixMicro()), p)...)
	}
	return b
}

// Gzip compresses a file.
func Gzip(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Patch returns a copy of b with another word at some place, little-endian.
func Patch(b []byte, at int, v uint32) []byte {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint32(b[at:], v)
	return b
}

// PatchByte returns a copy of b with another byte at some place.
func PatchByte(b []byte, at int, v byte) []byte {
	b = bytes.Clone(b)
	b[at] = v
	return b
}

// Endless is a file whose records repeat.
type Endless struct{ Header, Records, rest []byte }

func (e *Endless) Read(b []byte) (n int, err error) {
	if len(e.Header) > 0 {
		n = copy(b, e.Header)
		e.Header = e.Header[n:]
		return n, nil
	}
	if len(e.rest) == 0 {
		e.rest = e.Records
	}
	n = copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

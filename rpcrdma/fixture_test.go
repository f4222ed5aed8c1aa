package rpcrdma

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// wire makes a message of words.
func wire(words ...uint32) []byte { return appendWords(nil, words...) }

// join makes one message of several parts.
func join(parts ...[]uint32) (all []uint32) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// prefix makes the first words of a header.
func prefix(version uint32, t Type, f Flags) []uint32 {
	if version == Version1 {
		return []uint32{0x11, Version1, 32, uint32(t)}
	}
	return []uint32{0x11, Version2, Credit2(32, 1), uint32(t), uint32(f)}
}

// handle is the word of the handle that may be invalidated, where a version has it.
func handle(version, h uint32) []uint32 {
	if version == Version1 {
		return nil
	}
	return []uint32{h}
}

// settled returns a Decoder for one version.
func settled(version uint32) *Decoder {
	d := NewDecoder(DefaultLimits())
	d.Lowest, d.Highest = version, version
	return d
}

// refused decodes a message with which something is wrong.
func refused(t *testing.T, d *Decoder, b []byte) *Fault {
	t.Helper()
	var h Header
	payload, err := d.Decode(b, &h)
	var f *Fault
	if !errors.As(err, &f) {
		t.Fatalf("%x decodes as %+v, want a Fault", b, h)
	}
	if payload != nil {
		t.Errorf("%x has a payload and a fault", b)
	}
	if f.At < 0 || f.At > len(b) {
		t.Errorf("%v: the message has %d octets", f, len(b))
	}
	return f
}

// taken decodes a message with which nothing is wrong.
func taken(t *testing.T, d *Decoder, b []byte) (h Header, payload []byte) {
	t.Helper()
	payload, err := d.Decode(b, &h)
	if err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return h, payload
}

// code says what a Fault of a version is answered with: its name, or "dropped".
func code(f *Fault) string {
	if f.Dropped() {
		return "dropped"
	}
	return f.Report.Code.Name(f.Version)
}

// dice draws headers.
type dice struct{ *rand.Rand }

func (d dice) chunk(left *int) Chunk {
	n := d.IntN(min(*left, 4) + 1)
	if d.IntN(20) == 0 {
		n = d.IntN(*left + 1)
	}
	*left -= n
	c := make(Chunk, n)
	for i := range c {
		c[i] = Segment{d.Uint32(), d.Uint32(), d.Uint64()}
		if d.IntN(4) == 0 {
			c[i].Length = uint32(d.IntN(9))
		}
	}
	return c
}

// header draws one that a side may send.
func (d dice) header(version uint32) *Header {
	h := &Header{XID: d.Uint32() | 1, Version: version, Credit: d.Uint32()}
	types := []Type{TypeMsg, TypeNoMsg, TypeMsg, TypeNoMsg, TypeError, TypeConnProp}
	if version == Version1 {
		types = types[:5]
	}
	h.Type = types[d.IntN(len(types))]
	switch h.Type {
	case TypeError:
		d.report(h)
	case TypeConnProp:
		for range d.IntN(5) {
			h.Properties = append(h.Properties, d.property())
		}
		h.Flags = Flags(d.IntN(2)) * FlagTPMore
	default:
		d.lists(h)
	}
	return h
}

// lists draws those of a MSG or NOMSG, by its direction.
func (d dice) lists(h *Header) {
	left := MaxSegments
	response := d.IntN(2) == 0
	if response && h.Version == Version2 {
		h.Flags = FlagResponse
	}
	if h.Type == TypeMsg && h.Version == Version2 && d.IntN(4) == 0 {
		h.Flags |= FlagMore
		return
	}
	position := uint64(4)
	if h.Type == TypeNoMsg && !response {
		position = 0
	}
	for range d.IntN(5) + 1 {
		if response || h.Type == TypeMsg && d.IntN(2) == 0 || position > 1<<32-1 {
			break
		}
		r := ReadChunk{Position: uint32(position), Segments: d.chunk(&left)}
		if len(r.Segments) == 0 {
			if left == 0 {
				break
			}
			r.Segments = Chunk{{Handle: 1, Length: 4}}
			left--
		}
		h.Reads = append(h.Reads, r)
		position = max(r.end(), position+wordSize) + uint64(d.IntN(3))*wordSize // an empty item at the same place would be one chunk with the next
	}
	for range d.IntN(4) {
		h.Writes = append(h.Writes, d.chunk(&left))
	}
	if d.IntN(2) == 0 || response && h.Type == TypeNoMsg {
		h.HasReply = true
		h.Reply = d.chunk(&left)
	}
	if h.Version == Version2 && !response && len(h.Reads) > 0 && d.IntN(2) == 0 {
		h.InvHandle = h.Reads[0].Segments[0].Handle
	}
}

// report draws what an ERROR reports.
func (d dice) report(h *Header) {
	if h.Version == Version2 {
		h.Flags = FlagResponse
	}
	r := &h.Report
	codes := []ErrorCode{CodeVers, CodeChunk}
	if h.Version == Version2 {
		codes = []ErrorCode{CodeVers, CodeBadXDR, CodeBadPropVal, CodeInvalHType, CodeInvalCont, CodeReadChunks, CodeWriteChunks, CodeSegments,
			CodeWriteResource, CodeReplyResource, CodeSystem}
	}
	switch r.Code = codes[d.IntN(len(codes))]; r.Code {
	case CodeVers:
		r.Refused = d.Uint32()
		r.Low = uint32(d.IntN(3))
		r.High = r.Low + uint32(d.IntN(3))
	default:
		for _, f := range reportShapes[h.Version][r.Code].fields {
			if f != noField {
				*r.field(f) = d.Uint32()
			}
		}
	}
}

// property draws one, known or not.
func (d dice) property() Property {
	id := PropertyID(d.IntN(int(PropertyHostAuth) + 3))
	var data []byte
	switch {
	case d.IntN(6) == 0:
	case id == PropertyHostAuth:
		n := d.IntN(20)
		data = appendPad(append(wire(uint32(n)), make([]byte, n)...), n)
	case id == 0 || id > PropertyHostAuth:
		data = make([]byte, d.IntN(30))
	default:
		data = wire(numbers[id].lowest + uint32(d.IntN(5000)))
	}
	return Property{id, data}
}

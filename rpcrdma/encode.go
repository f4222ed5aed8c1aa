package rpcrdma

import (
	"encoding/binary"
	"fmt"
)

// shape returns what the header looks like. It panics if its version has no such type: the header of
// a message that this side sends does not come from the network.
func (h *Header) shape() (*versionShape, body) {
	if h.Version < uint32(len(shapes)) && int64(h.Type) < int64(len(shapes[h.Version].types)) {
		if t := shapes[h.Version].types[h.Type]; t.body != noBody {
			return &shapes[h.Version], t.body
		}
	}
	panic(fmt.Sprintf("version %d has no header %v to be sent", h.Version, h.Type))
}

// Size returns the length of the header, which depends on its version, type, code, and on how many chunks, segments and
// octets of properties it has.
func (h *Header) Size() int {
	v, kind := h.shape()
	n := v.prefix
	switch kind {
	case listsBody:
		if v.invHandle {
			n += wordSize
		}
		n += 3 * wordSize // the end of the Read list, that of the Write list, and whether there is a Reply chunk
		for i := range h.Reads {
			n += len(h.Reads[i].Segments) * (wordSize + readSegmentSize)
		}
		for _, w := range h.Writes {
			n += 2*wordSize + len(w)*segmentSize
		}
		if h.HasReply {
			n += wordSize + len(h.Reply)*segmentSize
		}
	case reportBody:
		n += reportSize(h.Version, h.Report.Code)
	case propertiesBody:
		n += wordSize
		for i := range h.Properties {
			n += h.Properties[i].size()
		}
	}
	return n
}

// Append writes the header after b: as many octets as [Header.Size] says.
func (h *Header) Append(b []byte) []byte {
	v, kind := h.shape()
	version := h.Version
	if kind == reportBody && h.Report.Code == CodeVers {
		version = h.Report.Refused
	}
	b = appendWords(b, h.XID, version, h.Credit, uint32(h.Type))
	if v.prefix == PrefixSize2 {
		b = appendWords(b, uint32(h.Flags&knownFlags))
	}
	switch kind {
	case listsBody:
		if v.invHandle {
			b = appendWords(b, h.InvHandle)
		}
		b = h.appendLists(b)
	case reportBody:
		b = appendWords(b, uint32(h.Report.Code))
		for _, f := range reportShapes[h.Version][h.Report.Code].fields {
			if f != noField {
				b = appendWords(b, *h.Report.field(f))
			}
		}
	case propertiesBody:
		b = appendWords(b, uint32(len(h.Properties)))
		for i := range h.Properties {
			b = h.Properties[i].append(b)
		}
	}
	return b
}

func (h *Header) appendLists(b []byte) []byte {
	for i := range h.Reads {
		r := &h.Reads[i]
		for j := range r.Segments {
			b = appendWords(b, 1, r.Position)
			b = r.Segments[j].append(b)
		}
	}
	b = appendWords(b, 0)
	for _, w := range h.Writes {
		b = appendWords(b, 1)
		b = w.append(b)
	}
	b = appendWords(b, 0)
	if !h.HasReply {
		return appendWords(b, 0)
	}
	b = appendWords(b, 1)
	return h.Reply.append(b)
}

func (c Chunk) append(b []byte) []byte {
	b = appendWords(b, uint32(len(c)))
	for i := range c {
		b = c[i].append(b)
	}
	return b
}

func (s *Segment) append(b []byte) []byte {
	b = appendWords(b, s.Handle, s.Length)
	return binary.BigEndian.AppendUint64(b, s.Offset)
}

func appendWords(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

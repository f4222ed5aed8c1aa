package capture

import (
	"encoding/binary"
	"math"
	"time"
)

// ngWhole is the length of a section that says that it is not known before its end.
const ngWhole = math.MaxUint64

// Writer turns records into a pcapng file. What it appends to a buffer are whole blocks: who
// writes the buffer whole has a file that is whole, however it ends.
//
//	var w capture.Writer
//	buf = w.Begin(buf, nil)
//	for {
//		rec, err := src.Next()
//		...
//		buf = w.Append(buf, &rec)
//	}
//
// Records may be of several captures, and of any link type. Times are written to the
// nanosecond; a record without one is of 1970, as the format has no better.
type Writer struct {
	ids map[place]uint32 // of what this section describes

	dropped, before int // as told last, and as the sections before tell
}

// place is what tells interfaces of one capture or several apart.
type place struct {
	number int
	Interface
}

// Begin appends the head of a file. Interfaces that are known now, in the order of their
// numbers, are described in it, so that readers know all of them from the start.
func (w *Writer) Begin(b []byte, known []Interface) []byte {
	b = w.section(b)
	for number, i := range known {
		b, _ = w.describe(b, place{number, i})
	}
	return b
}

// Append appends a record, and first the description of its interface if that is new.
func (w *Writer) Append(b []byte, rec *Record) []byte {
	from := place{rec.Interface, Interface{rec.Name, rec.LinkType}}
	id, ok := w.ids[from]
	if !ok {
		if len(w.ids) == maxInterfaces {
			b = w.section(b)
		}
		b, id = w.describe(b, from)
	}
	at := len(b)
	b = ngBegin(b, ngEnhanced)
	o := binary.LittleEndian
	stamp := nanoseconds(rec.Time)
	b = o.AppendUint32(b, id)
	b = o.AppendUint32(o.AppendUint32(b, uint32(stamp>>32)), uint32(stamp))
	b = o.AppendUint32(o.AppendUint32(b, uint32(len(rec.Data))), uint32(rec.Length))
	return ngEnd(append(b, rec.Data...), at)
}

// Dropped appends how many packets were dropped since the capture began for which the host had no room: an Interface Statistics
// Block. It says so of the first interface, whichever they came from: the kernel counts those of a capture of all together. The
// latest one of a section counts, and n never falls.
func (w *Writer) Dropped(b []byte, n int, at time.Time) []byte {
	w.dropped = n
	if len(w.ids) == 0 {
		b, _ = w.describe(b, place{0, Interface{LinkType: linkEthernet}})
	}
	start := len(b)
	b = ngBegin(b, ngStatistics)
	o := binary.LittleEndian
	stamp := nanoseconds(at)
	b = o.AppendUint32(b, 0)
	b = o.AppendUint32(o.AppendUint32(b, uint32(stamp>>32)), uint32(stamp))
	b = ngOption(b, ngDropped, string(o.AppendUint64(nil, uint64(n-w.before))))
	return ngEnd(o.AppendUint32(b, 0), start)
}

// nanoseconds is a time as the format has it: since 1970.
func nanoseconds(t time.Time) uint64 {
	if t.Unix() < 0 {
		return 0 // the format has no sign
	}
	return uint64(t.Unix())*1e9 + uint64(t.Nanosecond())
}

// section begins a new one, in which no interface is described.
func (w *Writer) section(b []byte) []byte {
	w.ids, w.before = map[place]uint32{}, w.dropped
	at := len(b)
	b = ngBegin(b, ngSection)
	o := binary.LittleEndian
	b = o.AppendUint32(b, ngOrder)
	b = o.AppendUint16(o.AppendUint16(b, 1), 0)
	return ngEnd(o.AppendUint64(b, ngWhole), at)
}

func (w *Writer) describe(b []byte, p place) ([]byte, uint32) {
	id := uint32(len(w.ids))
	w.ids[p] = id
	at := len(b)
	b = ngBegin(b, ngInterface)
	o := binary.LittleEndian
	b = o.AppendUint16(o.AppendUint16(b, uint16(p.LinkType)), 0)
	b = o.AppendUint32(b, 0) // nothing was cut
	if p.Name != "" {
		b = ngOption(b, ngName, p.Name)
	}
	b = ngOption(b, ngResolution, "\x09")
	return ngEnd(o.AppendUint32(b, 0), at), id
}

func ngOption(b []byte, code uint16, value string) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

// ngBegin begins a block, whose length ngEnd fills in.
func ngBegin(b []byte, kind uint32) []byte {
	return append(binary.LittleEndian.AppendUint32(b, kind), 0, 0, 0, 0)
}

// ngEnd pads and ends the block that begins at at.
func ngEnd(b []byte, at int) []byte {
	b = append(b, "\x00\x00\x00"[:-(len(b)-at)&3]...)
	length := uint32(len(b) - at + 4)
	binary.LittleEndian.PutUint32(b[at+4:], length)
	return binary.LittleEndian.AppendUint32(b, length)
}

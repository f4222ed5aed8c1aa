package xdr

import "encoding/binary"

// Marshaler is a value that encodes itself.
type Marshaler interface{ MarshalXDR(e *Encoder) }

// Encoder appends XDR to a message. The zero Encoder is ready for use.
type Encoder struct {
	b     []byte
	items []Item
}

// Reset begins a new message after the bytes of b, whose length is a multiple of four.
func (e *Encoder) Reset(b []byte) {
	clear(e.items) // the message that is left may be the last one to know the data
	e.b, e.items = b, e.items[:0]
}

// Bytes returns the inline bytes: all but the data of items by reference. They are valid until the
// next call of a method.
func (e *Encoder) Bytes() []byte { return e.b }

// Items returns the items by reference, in the order of their offsets.
func (e *Encoder) Items() []Item { return e.items }

// Len returns the length of the unreduced message: inline bytes, items and their padding.
func (e *Encoder) Len() int {
	n := len(e.b)
	for _, item := range e.items {
		n += Padded(len(item.Data))
	}
	return n
}

// Uint32 appends an unsigned integer, or an enumeration.
func (e *Encoder) Uint32(v uint32) { e.b = binary.BigEndian.AppendUint32(e.b, v) }

// Int32 appends an integer.
func (e *Encoder) Int32(v int32) { e.Uint32(uint32(v)) }

// Uint64 appends an unsigned hyper integer.
func (e *Encoder) Uint64(v uint64) { e.b = binary.BigEndian.AppendUint64(e.b, v) }

// Int64 appends a hyper integer.
func (e *Encoder) Int64(v int64) { e.Uint64(uint64(v)) }

// Bool appends a boolean, or the word that says whether optional data follows.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Uint32(1)
	} else {
		e.Uint32(0)
	}
}

// Fixed appends an opaque of fixed length, with its padding.
func (e *Encoder) Fixed(data []byte) {
	e.b = append(e.b, data...)
	e.b = append(e.b, zeros[:Padded(len(data))-len(data)]...)
}

// Opaque appends an opaque of variable length: its length, the data, its padding.
func (e *Encoder) Opaque(data []byte) {
	e.Uint32(uint32(len(data)))
	e.Fixed(data)
}

// String appends a string.
func (e *Encoder) String(s string) {
	e.Uint32(uint32(len(s)))
	e.b = append(e.b, s...)
	e.b = append(e.b, zeros[:Padded(len(s))-len(s)]...)
}

// Bulk appends the length of data, and keeps data by reference. Data may not change until the message
// has been sent; what sends it says when that is.
func (e *Encoder) Bulk(data []byte) {
	e.Uint32(uint32(len(data)))
	if len(data) > 0 {
		e.items = append(e.items, Item{len(e.b), data})
	}
}

package xdr

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Unmarshaler is a value that decodes itself.
type Unmarshaler interface{ UnmarshalXDR(d *Decoder) }

// Decoder takes XDR from a message. After an error all methods return zeros.
type Decoder struct {
	b     []byte
	at    int
	items []Item // those that are not taken yet, in the order of their offsets
	err   *Error

	detached bool
	into     []byte

	bulk, bulkInline int // see Taken
}

// Reset begins a message: inline bytes, and items in the order of their offsets.
func (d *Decoder) Reset(b []byte, items []Item) { *d = Decoder{b: b, items: items} }

// Detach has what is taken from now on be no part of the message, whose memory is used otherwise
// afterwards: it is copied. Items of [Decoder.Bulk] that came inline are copied into into, one after the other, if
// that is not nil. One that does not fit is invalid.
func (d *Decoder) Detach(into []byte) { d.detached, d.into = true, into }

// Err returns the first thing that was wrong, as an [Error], or nil.
func (d *Decoder) Err() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// Done returns Err, or an error if an item that travelled by itself was not taken. Octets that follow
// what was decoded are no error.
func (d *Decoder) Done() error {
	for _, item := range d.items {
		if len(item.Data) > 0 {
			d.misplaced(fmt.Sprintf("an item of %d octets belongs to nothing", len(item.Data)))
		}
	}
	return d.Err()
}

// Fail ends decoding: a value at the last word that was taken is none of its type. Types with
// enumerations call it.
func (d *Decoder) Fail(problem string) { d.fail(max(d.at-4, 0), problem, false) }

func (d *Decoder) misplaced(problem string) { d.fail(d.at, problem, true) }

func (d *Decoder) missing(n int) {
	d.fail(d.at, fmt.Sprintf("%d octets are wanted, %d are left", n, len(d.b)-d.at), false)
}

func (d *Decoder) fail(at int, problem string, misplaced bool) {
	if d.err == nil {
		d.err = &Error{Offset: at, Problem: problem, Misplaced: misplaced}
		d.b, d.items = nil, nil
	}
}

// Offset returns how many of the inline bytes were taken.
func (d *Decoder) Offset() int { return d.at }

// Taken returns how many items Bulk has taken that are not empty, and how many of the inline bytes they were, with their
// padding.
func (d *Decoder) Taken() (items, inline int) { return d.bulk, d.bulkInline }

// Left returns the inline bytes that were not taken.
func (d *Decoder) Left() []byte { return d.b[min(d.at, len(d.b)):] }

// take returns the next n inline bytes.
func (d *Decoder) take(n int) []byte {
	if d.err != nil || n == 0 {
		return nil
	}
	if n > len(d.b)-d.at {
		d.missing(n)
		return nil
	}
	if len(d.items) > 0 && d.items[0].At != Floating && d.at+n > d.items[0].At {
		d.misplaced("an item that was sent by itself is where none may be")
		return nil
	}
	b := d.b[d.at : d.at+n : d.at+n]
	d.at += n
	return b
}

// Uint32 takes an unsigned integer, or an enumeration.
func (d *Decoder) Uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Int32 takes an integer.
func (d *Decoder) Int32() int32 { return int32(d.Uint32()) }

// Uint64 takes an unsigned hyper integer.
func (d *Decoder) Uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Int64 takes a hyper integer.
func (d *Decoder) Int64() int64 { return int64(d.Uint64()) }

// Bool takes a boolean, or the word that says whether optional data follows.
func (d *Decoder) Bool() bool {
	v := d.Uint32()
	if v > 1 {
		d.Fail(fmt.Sprintf("a boolean is %d", v))
	}
	return v == 1
}

// Fixed takes an opaque of n octets. What it returns is part of the message.
func (d *Decoder) Fixed(n int) []byte {
	b := d.fixed(n)
	if d.detached {
		return bytes.Clone(b)
	}
	return b
}

// fixed takes an opaque of n octets, as a part of the message.
func (d *Decoder) fixed(n int) []byte {
	if n > len(d.b)-d.at { // before it is rounded up: n may be the largest int
		d.missing(n)
		return nil
	}
	if b := d.take(Padded(n)); b != nil {
		return b[:n:n]
	}
	return nil
}

// Opaque takes an opaque of at most limit octets. What it returns is part of the message.
func (d *Decoder) Opaque(limit int) []byte {
	n, _ := d.length(limit)
	return d.Fixed(n)
}

// String takes a string of at most limit octets.
func (d *Decoder) String(limit int) string {
	n, _ := d.length(limit)
	return string(d.fixed(n))
}

// Count takes the number of elements of an array: at most limit, and at most as many as the message
// can still have if each takes size octets or more.
func (d *Decoder) Count(limit, size int) int {
	n := d.Uint32()
	if uint64(n) > uint64(limit) {
		d.Fail(fmt.Sprintf("%d elements, at most %d are allowed", n, limit))
		return 0
	}
	if left := len(d.b) - d.at; uint64(n)*uint64(size) > uint64(left) {
		d.Fail(fmt.Sprintf("%d elements in %d octets", n, left))
		return 0
	}
	return int(n)
}

// Bulk takes an opaque of at most limit octets that may have travelled by itself. What it returns is
// the item's memory, or part of the message.
func (d *Decoder) Bulk(limit int) []byte {
	n, ok := d.length(limit)
	if !ok {
		return nil
	}
	if n > 0 {
		d.bulk++
	}
	if len(d.items) == 0 || d.items[0].At != Floating && d.items[0].At != d.at {
		return d.inline(n)
	}
	item := d.items[0]
	d.items = d.items[1:]
	switch len(item.Data) {
	case n, Padded(n): // the peer may send the padding with the item
		return item.Data[:n:n]
	case 0:
		if item.Data == nil { // the place of an item that was to come inline
			return d.inline(n)
		}
	}
	d.at -= 4
	d.misplaced(fmt.Sprintf("an item of %d octets was sent by itself with %d", n, len(item.Data)))
	return nil
}

// inline takes the octets of an item that came inline.
func (d *Decoder) inline(n int) (item []byte) {
	begin := d.at
	switch {
	case d.into == nil:
		item = d.Fixed(n)
	case n > len(d.into):
		d.Fail(fmt.Sprintf("an item of %d octets, there is room for %d", n, len(d.into)))
		d.err.Long = true
	default:
		n = copy(d.into[:n], d.fixed(n))
		item, d.into = d.into[:n:n], d.into[n:]
	}
	d.bulkInline += d.at - begin
	return item
}

// length takes the length of an opaque. It reports whether it is valid.
func (d *Decoder) length(limit int) (int, bool) {
	n := d.Uint32()
	if uint64(n) > uint64(limit) {
		d.Fail(fmt.Sprintf("%d octets, at most %d are allowed", n, limit))
	}
	return int(n), d.err == nil
}

package xdr

// Item is a large item that is not among the inline bytes of its message.
type Item struct {
	// At is where the item belongs: the offset in the inline bytes, after the item's length word.
	// Floating is for an item that the next [Decoder.Bulk] takes.
	At int
	// Data is nil of a floating item that has its place but is inline.
	Data []byte
}

// Floating is [Item.At] of an item whose place is known by the order of items alone: a result that
// the peer wrote into memory of this side.
const Floating = -1

// Padded returns the octets that an opaque of n octets takes: n, rounded up to a multiple of four.
func Padded(n int) int { return (n + 3) &^ 3 }

// Position returns the offset of items[i] in the unreduced message: the inline bytes with all items
// and their padding in place.
func Position(items []Item, i int) int {
	at := items[i].At
	for _, before := range items[:i] {
		at += Padded(len(before.Data))
	}
	return at
}

// AppendFlat appends the unreduced message to dst.
func AppendFlat(dst, inline []byte, items []Item) []byte {
	done := 0
	for _, item := range items {
		dst = append(dst, inline[done:item.At]...)
		dst = append(dst, item.Data...)
		dst = append(dst, zeros[:Padded(len(item.Data))-len(item.Data)]...)
		done = item.At
	}
	return append(dst, inline[done:]...)
}

var zeros [4]byte

// Package xdr encodes and decodes XDR (RFC 4506), the form of data in ONC RPC, without
// reflection and without copies of large items.
//
// A type says itself how it is encoded:
//
//	func (a *ReadArgs) MarshalXDR(e *xdr.Encoder) {
//		e.Opaque(a.File)
//		e.Uint64(a.Offset)
//		e.Uint32(a.Count)
//	}
//
//	func (a *ReadArgs) UnmarshalXDR(d *xdr.Decoder) {
//		a.File = d.Opaque(64)
//		a.Offset = d.Uint64()
//		a.Count = d.Uint32()
//	}
//
// # Items by reference
//
// Some items are large: the data of a file that is read or written. [Encoder.Bulk] keeps such an
// item by reference, and a transport moves it as it can: by gathering it into what is written to a
// socket, or by placing it directly into the peer's memory. So an encoded message is inline bytes
// and items, each at an offset in these bytes:
//
//	inline bytes   | status | attributes | length |            | tail |
//	items                                          data of 1 MiB
//
// [Decoder.Bulk] returns an item without a copy, whether it came inline or by itself. Which items of
// a program may travel by themselves is part of the program's binding to RDMA ("DDP-eligible
// items"): encode these, and no others, with Bulk.
//
// # Limits
//
// Each variable length is decoded with a bound, and a count of elements against what the message has
// left, so that no length that a peer writes makes this side allocate. The first thing that is wrong
// ends decoding: from there on a [Decoder] returns zeros, and [Decoder.Err] says what it was.
//
// # Layout
//
//	encoder.go   Encoder
//	decoder.go   Decoder
//	item.go      Item, and the offsets of items
//	error.go     Error
package xdr

// Package frame is the wire format of DG/RDMA: two fixed headers, little-endian
// throughout. It holds no state and does no I/O.
//
// A frame is one datagram. It begins with the frame header (10 bytes):
//
//	offset  size  field
//	0       2     destination endpoint id
//	2       2     source endpoint id
//	4       2     frame id, one sequence per (source, destination)
//	6       2     first acknowledged frame id; meaningless if the count is 0
//	8       1     number of consecutive frame ids acknowledged, 0..255
//	9       1     flags; bit 0: the frame holds at least one message; the others are reserved
//
// Messages follow, each with its own header (24 bytes). The first 14 bytes
// describe the transaction and are the same in all its messages:
//
//	offset  size  field
//	0       4     transaction id
//	4       4     completion address
//	8       4     completion value
//	12      2     number of data messages in the transaction
//	14      2     index of this message, from 1 (unused by the protocol)
//	16      4     data address
//	20      2     data length in bytes
//	22      1     type, 0 but in frames of the handshake and in lists of services
//	23      1     not 0: another message follows
//	24      n     data, then padding to a multiple of 8 if another follows
//
// The multiple of 8 counts from the end of the frame header, so that behind a
// 14-byte Ethernet header every message header is 8-aligned. Bytes after the
// last message are link padding and mean nothing.
//
// # Session frames
//
// Between endpoints of our own kind that have a session, frames have a header of 18 bytes, with ids of 32 bits, a tag that names the
// session, and a cumulative acknowledgement: see [SessionHeader] and [Control]. [IsSession] tells them apart. The
// handshake that begins a session has frames of the kind above: see [Handshake].
//
// # Reading
//
// [Parse] validates the whole chain of messages before anything may be used
// (DGRDMA-021); after it a [Cursor] walks without further checks:
//
//	f, err := frame.Parse(datagram)
//	if err != nil {
//		return err // a *frame.Error: offset and reason
//	}
//	for c := f.Cursor(); c.Next(); {
//		copy(memory[c.Msg.Addr:], c.Data)
//	}
//
// # Writing
//
// A [Writer] lays messages into a buffer of the caller; [Header.Put] writes the
// frame header in front, and may do so again for a retransmission, because
// acknowledgements never change a frame's length.
//
// # Rules
//
// Buffers: nothing is copied and nothing is kept; Frame and Cursor are views of
// the bytes given to Parse and are valid as long as those are. Concurrency: all
// types are plain values; functions may run at the same time on different
// buffers. Errors: Parse fails only with *[Error]. Limits: 65535 bytes per
// message, 65535 messages per transaction, 255 acknowledged ids per frame; of a session any number, in up to 64 ranges.
// Nothing here allocates, except printing and a failing Parse.
package frame

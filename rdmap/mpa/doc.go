// Package mpa carries the segments of an RDMA stream over TCP: marker PDU aligned framing, RFC 5044, with the
// enhanced set-up of RFC 6581. It is what iWARP adapters and Linux's software iWARP, siw, speak.
//
//	c, err := mpa.Initiate(ctx, conn, &mpa.Options{IRD: 16, ORD: 16, Private: hello})
//
//	r, err := mpa.Await(ctx, conn, 0) // the other side
//	c, err := r.Accept(ctx, &mpa.Options{IRD: 16, ORD: 16})
//
//	for err == nil {
//		err = c.Receive(sink) // one goroutine
//	}
//	p, err := c.Send(source) // another
//
// # Frames
//
// A segment (in the RFC's words ULPDU) travels in a frame (FPDU): its length in two octets, itself, a pad to a multiple
// of four, and CRC32C over all before it. Without CRC the field is there and says nothing (MPA-003). Pads are
// not looked at: siw's are what was in its buffer before (S5).
//
// With CRC a frame is checked while it is in the carrier's buffer, and only then copied to its place: a damaged one
// changes no memory, and nobody who writes to the same memory can make it look damaged. For the
// same reason what is sent is copied before its CRC is made. Without CRC, payload of some length goes from the socket
// straight into its place, and from its place straight into the socket. A receiver that lags also takes what comes after it into the
// buffer, by the same call.
//
// # Set-up
//
// Each side sends one frame: who made the connection a request, the other a reply. They agree on CRC, which is used if
// either wants it; on how many reads may be under way each way (IRD and ORD); and on whether the responder may send
// first, after a ready-to-receive frame: peer-to-peer mode. That frame is a message of the stream, which this package
// only negotiates. Revision 2 of the protocol has all of it, revision 1 only CRC.
//
// Markers are neither asked for nor sent. RFC 5044 wants a sender to make them if its peer asks; no peer that is
// known does, and a request for them is rejected, as siw does it.
//
// # Length of frames
//
// Towards strangers a frame fits in one TCP segment (MPA-006), whose size is asked for again with each batch. With CRC
// none is cut by the end of a segment, either: siw takes a frame for damaged whose pad and CRC are cut. So as many
// frames as fit in a segment make a record that Linux does not join with the next, which costs
// segmentation by the adapter, and most of the throughput over a path that has it. Without CRC nothing of that is needed.
//
// Between two of our own kind frames are as long as their length can say, in whole pages. They know each other by two
// reserved bits of the flags octet: an initiator sets 0x01 in its request, and a responder which knows it
// sets 0x02, and never 0x01, in its reply. The RFC has strangers ignore such bits; siw brings those of the request
// back in the reply, which is why one bit would not do; siw's own experiment is 0x08. Neither revision nor any other rule depends on
// them. Options.Strict leaves them 0.
//
// # Connections
//
// Any net.Conn will do. Those that are package net's own TCP or Unix sockets are driven by calls which do not wait: Send
// takes what fits, and Flush waits for the rest. Others, as those of crypto/tls, are read and written through
// buffers, and Send waits with them: [Conn.Blocks].
//
// Buffers belong to a connection only while something is in them, so that an idle one costs less than a page; during
// set-up it costs the frame.
package mpa

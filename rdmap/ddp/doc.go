// Package ddp is direct data placement, RFC 5041: what a segment looks like, what can
// be wrong with it, and what a stream of RDMA messages (package rdmap) and the carrier
// below it (package rdmap/mpa on TCP) ask of each other.
//
// # Segments and messages
//
// A message goes to one of two kinds of buffers at the other side. A tagged one is named
// by a STag and an offset (TO), which the peer has advertised; an untagged one by a
// queue (QN) and the number of the message there (MSN), counted from 1. A message
// that does not fit in one segment is split; each segment says by itself where its bytes go:
//
//	tagged, 14 bytes                      untagged, 18 bytes
//	0   T=1 L 0000 DV=01                  0   T=0 L 0000 DV=01
//	1   control octet of RDMAP            1   control octet of RDMAP
//	2   STag (4)                          2   4 more octets of RDMAP: the STag to invalidate
//	6   TO (8)                            6   QN (4)
//	14  payload                           10  MSN (4)
//	                                      14  MO, offset in the message (4)
//	                                      18  payload
//
// All fields are big-endian. L is set in the last segment of a message.
//
// # Between stream and carrier
//
// A carrier moves segments and knows nothing of what they mean. Downwards it asks a
// [Source] for the next message whenever it has room, and says how many it has sent.
// Upwards it asks a [Sink], for each segment, where the payload goes, and tells it once
// for each message, in the order of the stream, that the message is complete: all its
// bytes, and all messages before it, are in place. A carrier may place segments in any
// order (RFC 5041 allows it); TCP's places and delivers one by one.
//
// # Memory that is withdrawn
//
// The bytes that a [Span] names may be withdrawn by their owner at any time, and when
// the owner's call returns nobody may touch them (RDMAP-102). So whoever reads or writes
// them does so between [Span.Enter] and [Span.Leave], which it holds for a copy or for
// one system call that cannot block. [Span.Touch] does that for a copy, and makes an error of
// memory that the system cannot provide any more: a mapped file that somebody cut.
package ddp

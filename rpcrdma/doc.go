// Package rpcrdma is RPC-over-RDMA, the transport by which ONC RPC (RFC 5531) and NFS use RDMA:
// the headers of version 1 (RFC 8166, private data of RFC 8797) and version 2
// (draft-ietf-nfsv4-rpcrdma-version-two-01). It has no sockets, goroutines, clocks or locks:
// headers are decoded and encoded, and the program drives connections.
//
// Version 2 is spoken between peers of our own kind: the draft expired, its later revisions
// changed the wire, and no other implementation of this one is known. Linux speaks version 1.
//
// # Headers
//
// Each Send begins with one header, in XDR: big-endian words of 4 octets.
//
//	version 1                         version 2
//	0   xid                           0   xid
//	4   1                             4   2
//	8   credits                       8   credits: maximum (2), granted (2)
//	12  type                          12  type
//	16  body                          16  flags
//	                                  20  body
//
//	type              body                                 then
//	0  MSG            lists                                payload: the RPC message, or a part of it
//	1  NOMSG          lists                                nothing
//	2  MSGP, 3 DONE   (version 1, never sent)
//	4  ERROR          code, 0 to 2 words                   nothing
//	5  CONNPROP       (version 2) properties               nothing
//
//	lists: [version 2: handle that may be invalidated]
//	       { 1, Position, handle, length, offset (8) }, 0  the Read list
//	       { 1, n, n * { handle, length, offset (8) } }, 0 the Write list
//	       0, or 1, n, n * { handle, length, offset (8) }  the Reply chunk
//
// # Chunks
//
// A segment is memory of the Requester, and a chunk is segments in a row, for one item of an RPC
// message that does not travel in the payload. The Responder fetches Read chunks and writes into
// Write chunks. A Position is the offset of the item in the message as if it held all items.
// The Read chunk at Position 0 of a NOMSG is the whole Call; the Reply chunk takes the whole Reply.
//
// # Decoding
//
// A [Decoder] checks the whole of a header before anything of it is used, and allocates nothing.
// The lists of a [Header] are slices of the Decoder's memory, valid until it decodes the next.
// What is wrong with a message is a [*Fault], which also says what the specification wants as the
// answer. Whether this side sends that answer depends on its role: a Requester drops
// what a Responder refuses.
//
// Version 1 has two answers, ERR_VERS and ERR_CHUNK. Those of version 2 are, in the order
// in which they are looked for:
//
//	shorter than 20 octets                               dropped
//	version                                              ERR_VERS
//	type, TPMORE where it may not be                     INVAL_HTYPE
//	MORE where it may not be, or with lists              INVAL_CONT
//	more than [Limits]                                   READ_CHUNKS, WRITE_CHUNKS, SEGMENTS; BAD_PROPVAL
//	a property's value                                   BAD_PROPVAL
//	anything else                                        BAD_XDR
//	whatever is wrong with an ERROR                      dropped
//
// # Connections
//
// A [Machine] is one connection. It is told what happened, and says what is to be done:
//
//	told                                       says, by Next
//	Received     a message came                ActReceive   post more receives
//	Completed    works are complete            ActPost      post a Send, Write or Read
//	Call         the program calls             ActReturn    a Call is done
//	Cancel       and gives it up               ActPlace     the head of a Call of the peer is there
//	Place        where its items go            ActDeliver   all of it is there
//	Reply, Fail  the answer to it              ActAnswered  nothing of the answer is in use
//	Tick         the time                      ActClose     end the connection, then tell Lost
//	Lost         the connection has ended
//
// What is told never waits and never calls the program. Memory is registered and withdrawn by a [Memory], and buffers
// are of a [Pool]: neither waits either. A loop around a machine is short:
//
//	for m.Next(room, &a) {
//		switch a.Kind {
//		case rpcrdma.ActPost:
//			post(a) // room is one less
//		...
//		}
//	}
//
// Each machine has two halves. The Requester makes the Calls of this side: the forward ones at a client, the reverse ones
// at a server. The Responder answers those of the peer.
//
// # Calls
//
// A message goes in one Send if it fits. All that goes in a Send is copied. Otherwise items are lent to the peer as
// Read chunks; what is too long without them is lent as well (version 1), or goes in parts (version 2). Toward
// version 1 the Requester keeps to what Linux's server gets right: one Read chunk of an item at most, never Write chunks and a
// Reply chunk in one Call, and a Reply chunk whenever the longest Reply does not fit into a receive.
//
// Nothing that was sent is forgotten before its Reply or ERROR is there: a Call that is cancelled keeps its XID, its credit, and what
// it has lent. If the program uses that memory again (Call.Direct), the Call returns with the Reply; otherwise at once. If no Reply comes
// for Config.GiveUp, the connection ends. A Reply is held against all that was offered before any of it is used, and the
// memory is withdrawn before the Call returns.
//
// # Limits
//
// A peer can make a connection hold its receives (at most 2 * Window + Reverse + 1), as many Calls in work as Window says, one Call
// and one Reply that come in parts (MaxCall, MaxReply), and what its own Calls and this side's ask for. It chooses none of these
// numbers. What breaks a rule that the connection cannot do without ends it, and so do many messages that cannot be used.
package rpcrdma

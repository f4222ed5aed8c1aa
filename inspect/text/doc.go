// Package text turns the frames of a capture into text: a line, every field, or
// JSON. It is what people and scripts read.
//
//	reader, err := captured.NewFileReader(file, captured.Options{})
//	printer := text.Printer{Style: text.JSON}
//	filter := text.Filter{Txns: []uint32{17}}
//	var v text.View
//	for {
//		p, err := reader.Next()
//		if err != nil {
//			return err
//		}
//		if v.Decode(p); filter.Match(&v) {
//			buf = printer.Append(buf[:0], &v)
//		}
//	}
//
// # Lines
//
//	12.3   0.000123456 10.0.0.1:40001 > 10.0.0.2:7100 1->2 id 9 ack 4+2 [txn 7 1/2 64 bytes at 0x1000 then 0x1 at 0x40]
//
// is the third datagram of record 12, 123456 ns after the start: a frame from
// endpoint 1 to endpoint 2 with frame id 9 that acknowledges two ids from 4 on,
// with message 1 of 2 of transaction 7, which writes 64 bytes at 0x1000 and, once
// the transaction is complete, 1 at 0x40. Behind that is said whether the frame
// was cut or is malformed. With Printer.Interfaces the name of the interface is in front of
// the addresses. Endpoints of our kind begin a session with a handshake of
//
//	1->2 [HELLO from epoch 7, serves memory, link]
//	2->1 [WELCOME from epoch 9 to epoch 7, serves memory]
//	1->2 [CONFIRM from epoch 7 to epoch 9, serves memory, link (knows 1)]
//
// which name the services that their sender says it has, and after them (knows 1) if it knows
// as many of its peer. Others are
//
//	2->1 [REJECT from epoch 9 to epoch 7]
//	2->1 [REFUSED to epoch 7: no unknown sources are taken, endpoint 2 with 4096 bytes]
//	1->0 [HELLO from epoch 7, asks who is there]
//	0->1 [REFUSED to epoch 7: another id is here, endpoint 2 with 4096 bytes]
//
// A REJECT answers a CONFIRM of epochs that can never be a session, a REFUSED says why there is none, and who its sender is. What is sealed says no more than
//
//	1->2 sealed 57 key 3 [1428 bytes]
//
// the 58th frame under the receiver's key 3, of 1428 bytes, and of the handshake for keys
//
//	1->2 handshake question [nonce 8a01f2c45d119c03]
//	2->1 handshake challenge [nonce 8a01f2c45d119c03]
//	2->1 handshake challenge [of who does not know the key]
//
// which step it is, and a nonce that the four of one have in common. A challenge without one answers a sealed
// frame: its sender has not, or has no more, the key of that.
//
// In a session between endpoints of our kind, data frames have more,
//
//	1->2 data id 131073 copy 1 up to 65538 tag 0xcafe [txn 7 1/2 13 bytes at 0x1000 then 0x1 at 0x40]
//	1->2 BELL id 131074 up to 65538 tag 0xcafe
//
// and say which transmission of its id a frame is, from copy 1 on if it was sent again, up to which id its sender has all
// frames of the other direction, and the tag of the session. A BELL is a frame without messages. Control frames are
//
//	2->1 ACK of id 131074 up to 131072 tag 0xcafe [copy 1, had come before, 12 µs ago, also 131074+1 131080+4]
//	1->2 BYE up to 65538 tag 0xcafe [reason 3, epoch 131072 to epoch 65536]
//	1->2 PROBE up to 65538 tag 0xcafe [1400 bytes]
//	2->1 PROBED up to 131072 tag 0xcafe [1400 bytes]
//	2->1 RESET of id 131073 copy 1 up to 65538 tag 0xcafe
//
// An ACK names the frame that came last, whether that had come before, and how long ago, and after the ids up to one all others that
// have come (first+count). A BYE ends the session of two epochs. A RESET quotes the frame that it answers, which is of a session that its sender does not
// have.
//
// # JSON
//
// One object per frame, in one line, with these keys in this order. Those with a
// condition are absent without it; keys may be added, none will change.
//
//	file              name, if Printer.File is set
//	record            number of the packet in the capture, from 1
//	segment           number of the datagram, from 1, if the capturing host
//	segments          joined as many as that into one packet
//	interface         number of the interface, in pcapng and live
//	interface_name    its name, if that is known
//	time              as in "2021-03-04T05:06:07.123456000Z", if the capture has one
//	seconds           the same, since the start
//	wire              "udp" or "ether"
//	from, to          IP address and port, or hardware address
//	prefix            hexadecimal; over UDP: the bytes before the frame
//	length            of the frame, in bytes
//	captured          how many of them the capture has
//	cut               whether these are fewer
//	kind              "write", "ack", "empty", "sealed", "handshake"; "none": no frame header;
//	                  of a session also "bell", "bye", "probe", "probed", "reset", and of its handshake "hello", "welcome",
//	                  "confirm", "reject", "refused"
//	src, dst          endpoint ids, if there is a frame header, or kind is sealed or handshake
//	id                frame id, if there is a frame header, and not of a handshake; of a session 32 bits, of "write" and "bell"
//	ack_start         first acknowledged frame id, if there is a frame header, and none of a session or its handshake
//	ack_count         how many are acknowledged, likewise
//	flags             as src and dst
//	session           of a frame of a session, or of its handshake
//	  tag             names it; of a handshake there is none, and no up_to
//	  copy            of "write" and "bell": 0, or which retransmission it is, up to 7
//	  up_to           all ids of the other direction up to this one have come
//	  answers         of "reset": id, copy and up_to of the frame that it answers
//	  echo            of "ack": the frame that came last, its id and copy, whether it had come before (again), and delay_us
//	  ranges          likewise: what came after up_to, an array of first and count
//	  reason          of "bye": why
//	  sender, receiver
//	                  of "bye", and of a handshake: both epochs; the receiver of a HELLO is 0, and of a REFUSED both are that of its receiver
//	  check           of a handshake: what shows that its sender has the WELCOME, or 0
//	  services        likewise: array, if the sender says which ones it has
//	    name
//	    base          the first of its addresses
//	  knows           likewise: how many it knows of the receiver's
//	  refusal         of "refused"
//	    why           0 another id is here, 1 no unknown sources, 2 no room, 3 a seal is needed
//	    id            endpoint id of who refuses
//	    size          bytes of its memory and services, 0: not known
//	  size            of "probe" and "probed", in bytes
//	sealed            if kind is sealed
//	  counter         which one it is under its key, from 0
//	  key             under which of the receiver's keys it is, 0 to 7
//	  salt            hexadecimal
//	  length          of the frame in it, in bytes
//	handshake         if kind is handshake
//	  is              "question", "challenge", "first", "second"
//	  nonce           hexadecimal, what the datagrams of one handshake have in common, if it was captured
//	  unasked         of a challenge: whether it answers no question but a sealed frame under a key that its sender does not know
//	checksum_right    if the frame says that it ends with a checksum, and was captured whole
//	messages          array, also if empty
//	  offset          from the start of the frame header
//	  txn             transaction id
//	  index, count    which message of how many in the transaction
//	  addr, length    where the data goes, and how much it is
//	  completion_addr, completion_value
//	  completes       false if both are 4294967295: the transaction writes none
//	  type
//	  more            whether the frame says that another message follows
//	  services, knows
//	                  as above, of a message of a session that lists them
//	  data            hexadecimal, if Printer.Bytes is set; what was captured
//	padding           how many bytes follow the last message, the services or the refusal
//	padding_bytes     hexadecimal, if Printer.Bytes is set
//	malformed         if something is wrong
//	  offset          where, from the start of the frame header
//	  reason          what, in words
//
// # iWARP
//
// [Printer.AppendEvent] prints events of package inspect/iwarp. A line begins with the record, or the first and the last one with a part of
// the frame. The keys in JSON, where those above do not say it:
//
//	record            number of the packet with its last byte
//	first_record      with its first
//	wire              "tcp"
//	connection        its number, from 1
//	kind              "setup", "fpdu"; of what is no frame "begins", "missing", "found", "lost", "given up", "incomplete", "closed", "reset", "gone"
//	late              if it stands behind a later record: why, in words
//	bytes, why        of what is no frame: how many were skipped or are missing; in words
//	reply, revision, wants_crc, markers, reject, reserved, private
//	                  of setup, as they are in the frame; private is hexadecimal
//	ird, ord, peer_to_peer, ready
//	                  likewise, in enhanced set-up; 16383 is not negotiated
//	length            of fpdu: bytes of payload
//	crc               likewise: "good", "bad", "off", "unchecked"
//	absent            likewise: how many bytes of the frame are not in the capture
//	cut_end           whether pad and CRC are themselves in several segments of TCP
//	operation, opcode in words, and as a number; fits: whether kind and queue are those of the operation
//	tagged, last, stag, to, qn, msn, mo, invalidate
//	                  of the header
//	segment, message_length, started
//	                  which one of its message; how long that is so far; whether its beginning was seen
//	read, atomic, atomic_answer, immediate, range, persistent, global, hash, word
//	                  operands
//	terminate         layer, type, code, words, siw_bit_order, and of the frame at fault operation, segment_length and place
//	answers           record and msn of the request that is answered, and after_ns
//	problems, wrong   what is wrong, in words
//	data              hexadecimal, if Printer.Bytes is set
//
// Numbers of 64 bits are strings, in hexadecimal.
//
// Private data of a set-up that are of RPC-over-RDMA (RFC 8797) have rpc_over_rdma in addition: send_size, receive_size and remote_invalidation.
//
// # RPC-over-RDMA
//
// [Printer.AppendRPC] prints messages of package inspect/rpcrdma, each after the frame with its end. A line begins as that of the frame. The keys in JSON,
// after those from record to to:
//
//	kind              "rpc"
//	message           "Call", "Reply", "part", "ERROR", "properties", "refresh"; "unread": its header is not known
//	length            of the Send
//	malformed         what is wrong with the header, in words; then nothing follows
//	reverse           whether it is of the reverse direction, in which the server calls
//	version, xid      of the header; xid_hex is the same XID as lines have it
//	type              likewise: "MSG", "NOMSG", "ERROR", "CONNPROP"
//	credits           likewise: asked or granted, how many may wait; of version 2 also credits_new, how many of them this message grants
//	flags, may_invalidate
//	                  of version 2
//	reads, writes, reply_chunk
//	                  of MSG and NOMSG: chunks of segments with length, stag and to, Read chunks with their position
//	inline            likewise: how many bytes follow the header
//	error             of ERROR, in words
//	properties        of properties: id, name if it is known, and data, hexadecimal
//	procedure, rpc    of a Call, or of the Call that is answered, if they are known: in words, and program, version and procedure as numbers; of a
//	                  COMPOUND of NFS 4 also its minor version, and operations: their names, as far as they are known
//	credential, arguments
//	                  of a Call of NFS 3, MOUNT 3 or NFSACL: objects with an item for each field, which has the field's name in the RFC, or a shorter one. Names are
//	                  strings, handles and verifiers hexadecimal, modes octal. Of a Call at Position 0 they are with its Reply. arguments_cut is true where more
//	                  follows that is not known
//	answers           record of the Call that is answered, and after_ns
//	status            of a Reply, in words: "success", a name such as "NFS3ERR_NOENT", "NFS4ERR_NOENT at LOOKUP", or why the Call was not taken
//	results           of a Reply to such a Call: the same, and results_cut
//	written, read     of what answers a Call: bytes that RDMA Writes and RDMA Reads moved for it
//	wrong             what is wrong with the RPC message, in words
//	data              hexadecimal, if Printer.Bytes is set: the Send; with a Reply also call_data and reply_data, what chunks moved of a whole Call or Reply
//
// # Rules
//
// Nothing is dropped: a frame that is cut is shown as far as it goes, and of a
// malformed one the messages that can be read. Buffers: a View is valid as long as
// its packet; Append keeps nothing. Memory does not grow with the capture, and
// nothing is allocated per frame except for malformed ones. Concurrency: a View,
// or a Printer, belongs to one goroutine at a time.
package text

// Package wireshark is a dissector of DG/RDMA for Wireshark and tshark, written
// in Lua. There is nothing to call: [Script] is the whole of it. To install it
// is to put it into Wireshark's folder for personal Lua plugins, which is what
// "dgrdmacat wireshark --install" does; tshark also takes it from anywhere:
//
//	tshark -X lua_script:dgrdma.lua -r trace.pcap
//
// # Which packets
//
// Frames on Ethernet have the type 0xf042, or what the preference
// dgrdma.ethertype says. UDP has no fixed port: a datagram is taken for a frame
// under the conditions of package captured (it parses, its ids are not 0, its
// unused fields hold what every known sender puts there, and the two bytes
// before it are 0 or repeat the destination id; sealed frames and handshakes are known by these bytes, ids, flags and
// length), or whatever it looks like, if
// its port is in the preference dgrdma.ports or chosen by Decode As. Where
// another protocol has the port, let Wireshark try heuristic dissectors first
// (udp.try_heuristic_first).
//
//	tshark -X lua_script:dgrdma.lua -o dgrdma.ports:7100 -o dgrdma.ethertype:0xf055 -r trace.pcap
//
// Captures taken on hosts that leave segmentation to the network interface show
// many frames as one datagram. They are shown one after the other, if all
// pieces of one length are plausible frames between the same endpoints. Where
// one end has several ids, they are only if nothing pads any frame.
//
// # Fields
//
// Every field can be filtered for:
//
//	dgrdma.dst dgrdma.src                  endpoints; the destination comes first on the wire
//	dgrdma.seq                             frame id
//	dgrdma.ack.start .count .last          acknowledged ids
//	dgrdma.flags .messages .reserved
//	dgrdma.msg.txn .count .index           of each message
//	dgrdma.msg.addr .len .data .type .more .padding
//	dgrdma.msg.completion.addr .value
//	dgrdma.messages                        how many there are
//	dgrdma.prefix dgrdma.padding           bytes that mean nothing
//
// Of the handshake for a session between endpoints of our kind:
//
//	dgrdma.session.handshake               0 HELLO, 1 WELCOME, 4 REFUSED, 5 CONFIRM, 6 REJECT
//	dgrdma.session.sender .receiver        epochs
//	dgrdma.session.check                   what shows that its sender has the WELCOME
//	dgrdma.session.services                how many services their sender says it has
//	dgrdma.session.service.name .base      each one, and the first of its addresses
//	dgrdma.session.knows                   how many it knows of its peer
//	dgrdma.session.refused                 why there is no session; .by which endpoint, with .size bytes
//	dgrdma.session.answers .answered_in    the packets of question and answer
//
// Of frames of a session:
//
//	dgrdma.session.id .copy                which frame, in 32 bits, and which transmission of it
//	dgrdma.session.tag                     names the session
//	dgrdma.session.up_to                   all ids of the other direction came up to this one
//	dgrdma.session.control                 1 ACK, 2 BYE, 3 PROBE, 4 PROBED, 5 RESET, 6 BELL
//	dgrdma.session.echo .echo.copy         the frame that came last, by an ACK
//	dgrdma.session.echo.again .echo.delay  whether it had come before, and for how long it had been there
//	dgrdma.session.marks.ect0 .marks.ce    how many frames came with these marks (ECN), by an ACK
//	dgrdma.session.range.first .count      what else came
//	dgrdma.session.reason .sender .receiver    of a BYE: why, and both epochs
//	dgrdma.session.probe                   how long frames may be, as is asked, or as came
//	dgrdma.session.quoted.id .copy .up_to  the frame that a RESET answers; .frame is its packet
//	dgrdma.flags.session .control .copy
//
// Of sealed frames, and handshakes for their keys, what can be read without a key:
//
//	dgrdma.sealed .counter .key            which frame under which of the receiver's keys
//	dgrdma.sealed.salt .data .tag .length  the last is that of the frame in it
//	dgrdma.handshake                       0 question, 1 challenge, 2 first, 3 second message
//	dgrdma.handshake.nonce                 what the four of one have in common
//	dgrdma.handshake.challenge .noise
//	dgrdma.handshake.mac                   shows that its sender has the key
//	dgrdma.handshake.unasked               a challenge that answers a sealed frame under a key that its sender does not know
//	dgrdma.flags.sealed .handshake
//
// What other frames tell is in
//
//	dgrdma.analysis.retransmission_of      the first copy; .previous_copy .next_copy .copy
//	dgrdma.analysis.duplicate_of           the same for frames without data
//	dgrdma.analysis.acked_in .ack_time     first acknowledgement
//	dgrdma.analysis.acks                   the frames that this one acknowledges, each once
//	dgrdma.analysis.missing                ids between the last one and this one
//	dgrdma.txn.begins_in .completes_in     first and last frame of the transaction
//	dgrdma.txn.acked_in .time              when all of it was acknowledged
//	dgrdma.txn.frame                       all frames, in the first and the last
//	dgrdma.hello.answers .answered_in
//
// and what deserves a look is expert information: dgrdma.malformed, dgrdma.cut,
// dgrdma.analysis.retransmission, .live_header, .duplicate, .gap, .out_of_order,
// .restart and .ack_unseen, dgrdma.handshake.key_unknown, dgrdma.session.reset, and one for each field that holds what it should not.
//
// What lies ahead of a frame is known from the second pass on: always in
// Wireshark, in tshark with -2.
//
// # Rules
//
// A frame is a retransmission if it has the id and the first message of an
// earlier one in its direction, which is told by addresses, ports and endpoint
// ids; ids that come round again after 65536 are others. So is one that differs by
// the transaction of a later frame alone: OpenCPI's first C++ driver sends again
// what a request says by then. A transaction completes
// where its last message was first captured, which is not to say that it
// arrived there. An acknowledgement is linked to the first copy of what it
// acknowledges. A malformed frame is shown as far as it goes, and takes no part
// in anything else, as with a receiver.
//
// In a session the copy number tells what was sent again from what the network doubled, which is a duplicate here. Acknowledgements are linked to the latest session of the other
// direction.
//
// Sealed frames take no part in any of that: acknowledgements and messages are encrypted.
//
// Limits: Wireshark with Lua 5.2 or later; tested with 4.0. State grows with the
// capture, as everything in Wireshark does. Where a capture has each packet
// twice, as on the interface "any" of a bridge, every second one looks like a
// retransmission. A cooked capture does not record the destination of an
// Ethernet frame, so acknowledgements are not linked there. Acknowledgements
// that OpenCPI's hardware implies by its first id are not taken as such.
// OpenCPI has a dissector of the same name, which swaps the endpoints: only one
// of the two can be loaded.
package wireshark

import _ "embed"

// Script is the dissector.
//
//go:embed dgrdma.lua
var Script string

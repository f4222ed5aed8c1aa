// Package link moves messages between programs through ports. A producer fills buffers in a consumer's
// memory, and the consumer gives them back. No message is lost, doubled, reordered or overwritten
// before it was used.
//
// # Model
//
// A [Host] is an endpoint whose memory is shared out to links. One host listens on a port, the other
// one dials it, and both have a [Link]: a [Producer] to send by, a [Consumer] to receive by, or both.
//
//	there, _ := link.Open("udp:7100", nil)
//	port, _ := there.Listen("frames", nil)
//	in, _ := port.Accept(ctx)
//	for m, err := range in.In.Messages(ctx) { use(m.Opcode, m.Bytes, err) }
//
// and elsewhere:
//
//	here, _ := link.Open("udp", nil)
//	out, _ := here.Dial(ctx, "udp:10.0.0.2:7100", "frames", nil)
//	err := out.Out.Send(ctx, 0, []byte("hello"))
//	err = out.Close() // end of file, and all of it has arrived
//
// [On] makes links over an endpoint that is there already, in addition to its memory and other
// services. An endpoint that has no links says so in the handshake: the error of Dial is a
// [*dgrdma.ServiceError], and nothing is written.
//
// A message is an opcode and up to as many bytes as a buffer has. Messages arrive whole, once, and in
// order. A Producer is an io.Writer too, and a Consumer an io.Reader, for programs to which the cuts
// between messages mean nothing. Package netconn makes a net.Conn of both.
//
// [Link.Close] waits until all has arrived, or the peer has taken nothing for a minute. [Link.Finish]
// does not wait: what was sent arrives, and end of file after it. The memory of a closed link is free
// for links of other peers at once. For links of its own peer it is free when that host has answered,
// which it does by itself: its program may go on reading what came before, for as long as it likes.
//
// # Buffers
//
// [Producer.Send] copies. [Producer.Acquire] hands out a buffer to be filled in place, and
// [Producer.Commit] sends it; between these two it is the caller's. A [Message] is a view of the
// endpoint's memory: it is the caller's from [Consumer.Recv] until [Consumer.Release]. Buffers are
// committed and released in the order in which they were acquired and received.
//
// Where neither side says how many buffers there are, a link takes more of them as a path with a long
// round trip needs them.
//
// A producer that finds no free buffer waits. So a slow consumer slows down its producer, and no other
// one.
//
// # Concurrency
//
// All methods may be called from any goroutine. Of several goroutines that send to one link, one at a
// time has the link's send token; it is the same with goroutines that receive. With a context that is
// done nothing is sent, dialed or accepted. What is there is received, and wins over such a context.
//
// A goroutine that waits for a peer, and is the only one to, receives and sends for its host in that
// time. So the host's callbacks may run on it. dgrdma.Config.NoHelp, or help=off in the host's string,
// turn that off.
//
// # Errors
//
// When a link fails, all calls that wait for it fail with an [*Error]. It names port and peer and
// wraps the reason: dgrdma.ErrPeerDown, dgrdma.ErrPeerRestarted, [ErrPeerClosed], [ErrProtocol] or
// [ErrClosed]. What was delivered before can still be received. A half that a link does not have is
// nil, and its methods return [ErrNoHalf]. A peer that is gone is noticed after one and a half times
// the endpoint's GiveUp at most, also where this side only receives.
//
// # Limits
//
// Messages have up to 2 MiB - 1 byte, a link 65536 buffers, and all links of a host 4 GiB. Without
// dgrdma.Config.Keys, in Config.Endpoint, there is no authentication: all programs that can reach a
// host can dial its ports.
//
// What peers can make a host keep:
//
//   - Config.Memory, once for what they write, and about once more for the links. A link takes 2 KiB
//     of it at least, and one peer may dial 4096.
//   - 2048 links that wait at each port, and 8192 letters of at most 1 KiB that wait to be sent. A
//     peer that is alone gets half of these places, and leaves the others for others.
//   - For what links send and their peers do not take: once more Config.Memory, and for one link 16
//     MiB, 4096 messages, and one more. Until it is acknowledged a message takes at most four times
//     its length, however large the buffers are that the peer offers. A buffer that the application
//     acquired takes the length of the peer's buffers until it is committed.
//
// # Peers of other kinds
//
// OpenCPI's hosts and cards know nothing of dialing. Both sides tell each other by other means where
// they want things. [Host.Offer] makes a link that receives, and says where its [Buffers] are.
// [Host.Attach] makes one that sends into such buffers, and says where its [EmptyFlags] are;
// [Link.Connect] tells the first of them. Package opencpi does the same with OpenCPI's descriptors. A
// buffer with end of file is not given back to such peers. A card that cuts a message because it is
// longer than the card's own buffer, and does not say so, makes it look like a whole one. The memory
// of such a link is free for others when its connection ends.
//
// # Words
//
//	half         one direction of a link, at one end: a Producer or a Consumer
//	letter       a control message from host to host, such as the question and the answer of
//	             a handshake, or the end of a link
//	letter box   where in a host's memory each peer writes its letters
//	grant        the memory of a link, of which its peer may write what the link allows
//	credit       a buffer that the consumer gave back, and the producer may fill
//	flag         the word that declares a buffer full and describes the message in it
//	bell         the completion word of a letter, which tells its length
//	partial      of a buffer: what came so far of the transaction that fills it
//	plain        of a link: made of addresses, with a peer that knows no letters
//	send token   the right to send by a producer, or to receive by a consumer
//	pending dial a letter that asks for a link, and waits at a port
//	ended link   a link that is over here, whose peer has not said that it knows
package link

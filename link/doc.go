// Package link moves messages between programs through ports: a producer fills
// buffers in a consumer's memory, the consumer gives them back, and nothing is
// lost, doubled, reordered or overwritten before it was used.
//
// # Model
//
// A [Host] is an endpoint whose memory is shared out to links. One host listens
// on a port, the other one dials it, and both have a [Link]: a [Producer] to
// send by, a [Consumer] to receive by, or both.
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
// [On] makes links over an endpoint that is there already, beside its memory and other
// services. Who is dialed and has no links says so in its introduction: the error is a
// [*dgrdma.ServiceError], and nothing is written.
//
// A message is an opcode and up to as many bytes as a buffer has. Messages arrive
// whole, once, and in order. Producers are io.Writers too, and consumers
// io.Readers, for those to whom the cuts between messages mean nothing. Package netconn
// makes a net.Conn of both.
//
// [Link.Close] waits until all has arrived, or for a minute the peer takes nothing. [Link.Finish] does not: it lets what was sent
// arrive, and end of file after it. The memory of a link that was closed is free for links of
// other peers at once, and for those of its own peer when that host has answered, which it
// does by itself: its program may read for as long as it likes what came before.
//
// # Buffers
//
// [Producer.Send] copies. [Producer.Acquire] hands out a buffer to be filled in
// place and [Producer.Commit] sends it; between these two it is the caller's. A
// [Message] is a view of the endpoint's memory: it is the caller's from
// [Consumer.Recv] until [Consumer.Release]. Buffers are committed and released in
// the order in which they were got.
//
// A producer that finds no free buffer waits: so a slow consumer slows its
// producer down, and nobody else.
//
// # Concurrency
//
// All methods may be called from any goroutine. Several that send to one link
// take turns, as do several that receive. With a context that is done nothing is sent,
// dialed or accepted; what is there is received, and wins.
//
// A goroutine that waits for a peer, and is the only one to, receives and sends for its
// host meanwhile: so the host's callbacks may run on it. dgrdma.Config.NoHelp, or help=off
// in the host's string, say otherwise.
//
// # Errors
//
// A failed link fails for everyone who waits, with an [*Error] that names port
// and peer and wraps the reason: dgrdma.ErrPeerDown, dgrdma.ErrPeerRestarted,
// [ErrPeerClosed], [ErrProtocol] or [ErrClosed]. What was delivered before can
// still be received. Methods of a half that a link does not have, of which the pointer
// is nil, return [ErrNoHalf]. A peer that is gone is noticed after one and a
// half times the endpoint's GiveUp at most, also where this side only receives.
//
// # Limits
//
// Messages up to 2 MiB - 1 byte, 65536 buffers for a link, 4 GiB for all links of
// a host. Without dgrdma.Config.Keys, in Config.Endpoint, there is no authentication: who can reach a host can dial its ports.
//
// What peers can make a host keep: Config.Memory, once for what they write, and about
// once more for the links, of which each takes 2 KiB of it at least, and one peer may
// dial 4096; 2048 links that wait at each port, and 8192 letters that wait to be sent,
// of at most 1 KiB each. Who alone asks gets half of these places, and leaves the
// others for others. What links send and their peers do not take is once more
// Config.Memory, and of one link 16 MiB, 4096 messages, and one more. A message takes at most
// four times its length until it is acknowledged, however large the buffers are that the peer
// offers. A buffer that the application acquired takes the length of the peer's until it is
// committed.
//
// # Peers of other kinds
//
// OpenCPI's hosts and cards know nothing of dialing. Both sides tell each other by
// other means where they want things: [Host.Offer] makes a link that receives and says
// where its [Buffers] are, [Host.Attach] one that sends into such and says where its
// [EmptyFlags] are, of which [Link.Connect] tells the first. Package opencpi does the
// same with OpenCPI's descriptors. A buffer with end of file is not given back to such
// peers; a message that a card cut because it was longer than its own buffer, and did
// not say so, cannot be told from a whole one. The memory of such a link is free for
// others when its connection ends.
//
// # Words
//
//	half         one direction of a link, at one end: a Producer or a Consumer
//	letter       a control message from host to host, such as the offer and the answer of a
//	             handshake, or the end of a link
//	letter box   where in a host's memory each peer writes its letters, one at a time
//	grant        the memory of a link, of which its peer may write what the link admits
//	credit       a buffer that the consumer gave back, and the producer may fill
//	flag         the word that declares a buffer full and describes the message in it
//	bell         the completion word of a letter, which tells its length
//	filling      what came so far of the transaction that fills a buffer
//	plain        of a link: made of addresses, with a peer that knows no letters
package link

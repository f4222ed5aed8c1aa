// Package stream moves streams of bytes, files above all, over links so that both
// sides know how it ended: the sender that the receiver has all of it, and has it on
// disk if it goes into a file; the receiver that what it has is all, and is what was
// sent. It is what dgrdmacat's send and listen speak.
//
//	port, err := stream.Listen(host, nil)
//	s, err := port.Accept(ctx)
//	file, err := stream.CreateFile("copy.bin", false)
//	err = s.Receive(ctx, file) // nil: copy.bin is there, whole; else nothing is left of it
//
// and elsewhere:
//
//	s, err := stream.Dial(ctx, host, "udp:10.0.0.2:7100", stream.Unknown, nil)
//	err = s.Send(ctx, file)    // nil: so the receiver says
//
// Who dialed sends. With [Options.Duplex] bytes go the other way too, at the same time
// and at their own pace: both sides call [Stream.Exchange].
//
// # The end
//
// After the last byte the sender says how many there were, and with [Options.Checksum]
// their SHA-256; the receiver compares, commits its [Sink], and answers with the same.
// Whoever fails, or whose context ends, tells the other side why, which fails with
// link's AbortError, and the receiver discards its sink. If the network fails after the
// receiver has committed and before its answer has arrived, the receiver has it all and
// the sender does not know: [Result.Confirmed] tells the receiver whether it does.
//
// # Memory
//
// A host that receives needs [Memory] bytes for each stream at a time. It has them back when
// Receive returns, which the sender does not wait for: with room for two,
// streams may follow each other at once, and a host has that by default.
package stream

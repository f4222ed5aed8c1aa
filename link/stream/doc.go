// Package stream moves streams of bytes, files above all, over links so that both sides know how the
// stream ended. The sender knows that the receiver has all of it, and has it on disk if it goes into a
// file. The receiver knows that what it has is all, and is what was sent. The commands send and listen
// of dgrdmacat use it.
//
//	port, err := stream.Listen(host, nil)
//	s, err := port.Accept(ctx)
//	file, err := stream.CreateFile("copy.bin", false)
//	err = s.Receive(ctx, file) // nil: copy.bin is there, whole; else nothing is left of it
//
// and elsewhere:
//
//	s, err := stream.Dial(ctx, host, "udp:10.0.0.2:7100", stream.Unknown, nil)
//	err = s.Send(ctx, file)    // nil: the receiver has all of it
//
// The side that dialed sends. With [Options.Duplex] bytes go in the other direction too, at the same
// time and at their own pace: both sides call [Stream.Exchange].
//
// # The end
//
// After the last byte the sender says how many there were, and with [Options.Checksum] their SHA-256.
// The receiver compares, commits its [Sink], and answers with the same. A side that fails, or whose
// context ends, tells the other side why. The other side fails with link's AbortError, and the
// receiver discards its sink. If the network fails after the receiver has committed and before its
// answer has arrived, the receiver has all and the sender does not know: [Result.Confirmed] tells the
// receiver whether the sender knows.
//
// # Memory
//
// A host that receives needs [Memory] bytes for each stream at a time. It has them back when Receive
// returns, and the sender does not wait for that. With room for two, streams may follow each other at
// once, and a host has that by default.
package stream

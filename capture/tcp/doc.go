// Package tcp puts the connections of TCP together that a capture has segments of, as somebody who only looks on: what was
// reordered, sent again, doubled, cut, or is not in the capture at all.
//
//	all := tcp.New(handler)
//	for {
//		... s, ok := record.Segment()
//		all.Add(&s, tcp.Ref{Record: n, Time: record.Time})
//	}
//	all.End()
//
// [Connections] is a passive machine: it reads no clock and starts no goroutine. It calls its [Handler] with the bytes of each
// direction in order, each byte once; where bytes overlap, those that came first count.
//
// A segment says how much its sender had heard of the other side. What was captured of that later is told first all the same, so
// that an answer never comes before what it answers.
//
// # What is missing
//
// A hole in a direction is waited for, since segments are captured out of order. It is given up, and the handler told
// how long it is, when the other side has acknowledged it and [Patience] more segments of the connection have passed without
// it; when more than [MostPieces] pieces or [MostWaiting] bytes wait behind it, or [MostInAll] of all connections;
// and when the connection or the capture ends. What a snap length took away is given up at once. A connection whose first segment was not captured begins where
// its lowest sequence number is, when [InARow] segments of it have followed on each other in order, or as many have passed in any order, or
// [PatientFor] in the capture since the first of them; then nobody knows which side began it. No time is read but those of the capture.
//
// # Bounds
//
// [MostKept] connections that a handler has called its own are followed, [MostOthers] of which something waits that may become
// its own, and as many others remembered; then the one gives way that was silent for longest, and the handler hears of it. Where too
// much waits in all, those that are nobody's own give way before a hole of any other is given up, so that strangers who connect and
// keep quiet cost nobody his bytes. With a connection at most 2*MostPieces pieces wait.
//
// # Why not gopacket's reassembly
//
// It keeps no account of which record brought which byte, of what was sent again and of what a snap length took, which is what
// the users of this package ask for; it gives holes up by the clock, so that what it says depends on when it is asked;
// and its bounds are on pages of 1900 bytes, of which each segment that waits takes one at least, whatever is in it.
package tcp

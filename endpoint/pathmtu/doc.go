// Package pathmtu decides how long frames to a peer are, without a word from the network: the peer is
// asked which lengths arrive (RFC 8899). It has no goroutine, lock, clock or socket. It promises no compatibility: it is for
// the engine.
//
// A [Path] has the length of full frames. It is told the time, what the peer answers, and which frames wait for acknowledgement, and
// says which probe to send.
//
// # States
//
//	Fixed     full frames are as long as the interfaces carry; the peer is never asked
//	Unknown   full frames have a length that every path carries. When data would leave in longer ones, a search begins:
//	          -> Known, with what it found
//	Known     full frames have the length that they keep. When frames longer than every path carries are not
//	          acknowledged, though they were sent several times: -> Checking
//	Checking  a search asks whether the path carries less now. It changes no length: what it found tells why the peer is given
//	          up. When the search is over, or a frame is acknowledged: -> Known
//
// In each silence the peer is asked once. [Path.Begin] begins again, with each session.
//
// # The search
//
// A [Search] asks in rounds. The first round asks for the longest frame alone. Each later round asks for
// several lengths at once, between the longest that arrived and the shortest that did not. Only an answer
// proves that a length arrives. That a length does not arrive is concluded from a round in which a shorter
// probe was answered, three times in a row.
//
// # Layout
//
//	path.go    how long frames are: states, and when the peer is asked
//	search.go  the search: which lengths it is asked for
package pathmtu

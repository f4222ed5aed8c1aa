// Package sealed seals the frames of an endpoint, and opens those of its peers, between the engine and a transport. A [Layer]
// has the keys that two endpoints agreed on, and the handshakes for new ones, of package seal. It is told the time, and has no
// goroutine, clock or socket. The datagrams that it opens are frames of the peer that they name, or empty.
//
// A datagram is sealed for a [Pair]: two ids, and the address of the peer. A pair without a key asks for one: the datagrams of a
// handshake leave in the place of frames. Of a pair to which the owner has no connection keys are kept only as long as there is
// room, see [Config].
package sealed

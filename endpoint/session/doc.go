// Package session has the sessions between two endpoints of our own kind, as machines that
// are told what arrived and what time it is, and say what to send. It has no
// goroutine, lock, clock or socket. It promises no compatibility: it is for package dgrdma.
//
// [Machine] is the life cycle of a session. [Receiver] knows which frames of the session came and what they acknowledge, [Sender] writes the
// headers of those that leave and knows what is to be acknowledged; [Owe] is where both meet, after each batch.
//
// # Epochs
//
// A session is named by two epochs, 32-bit numbers, one of each endpoint. A pair of epochs
// is in at most one session. So a frame of an earlier session, which the network held back,
// is told apart from one of the present session: each frame has a [Tag] made of both.
//
// An endpoint computes the epoch that it tells a peer ([Epochs]): nothing is stored for an
// unknown source. A generation is part of what is computed, and goes up when an attempt or a session
// ends: what was told before then names no session any more.
//
// # Handshake
//
// The initiator sends HELLO with its epoch. The responder answers WELCOME with both epochs.
// The initiator answers CONFIRM with both, and its data follows at once. The responder has the session when the
// CONFIRM, or another frame of the session, arrives. When both endpoints send HELLO, each answers the
// other with the epoch of its own HELLO: both have the same pair, and one session begins.
//
//	HELLO(e)        an endpoint asks for a session, under its epoch e
//	WELCOME(r, e)   the answer: r is the responder's epoch
//	CONFIRM(e, r)   the initiator has the session
//	REJECT(e, r)    answers a CONFIRM of a pair that can never be a session
//	REFUSED(e)      answers a HELLO or a CONFIRM: no session for now, or never; it says why
//	RESET           answers a frame of a session that the endpoint does not have, and quotes its header
//	BYE(e, r)       the sender has ended the session
//
// # States
//
//	None        there is no connection: the peer is an unknown source, see [Answer]
//	Down        nothing is sent; a CONFIRM of the peer begins a session
//	Asking      HELLO is sent until WELCOME arrives
//	Confirming  WELCOME arrived: CONFIRM is sent, and data; whether the peer has the session is not known yet
//	Up          the peer has shown that it has the session
//
// The table in transitions.go has what happens in each state with each input. The tests explore
// all orders of events of two machines, see explore_test.go: no message is applied twice, no
// write is reported done that is not, and both sides come to one session from every state.
package session

// Package seal keeps what two endpoints of our own kind send to each other from being read, forged, changed or
// replayed: authenticated encryption of frames under keys that a handshake draws from a key which both were given.
//
// Its types are machines that are told what comes and what leaves. They own no socket, no timer and no goroutine,
// and each belongs to one goroutine at a time.
//
// # Datagrams
//
// A sealed datagram is a frame of which the first four bytes, the ids, stay as they are:
//
//	0  ids[4]  counter[5]  flags[1]  salt[7]  sealed frame[len - 4]  tag[16]
//
// The flags tell it from a frame that is not sealed, in which bit 7 is reserved, and say under which of the keys of the
// receiver it is. Counter and salt are the nonce. The counter goes up by one with each datagram of a direction; the salt
// is drawn anew for each batch, so that a machine which is resumed twice from one snapshot does not seal twice under the
// same nonce.
//
// A key seals 2^22 datagrams, then the next one is derived from it, and it is forgotten: the limit for AES-GCM of RFC
// 9001 section 6.6 is 2^23. The receiver follows when a datagram under the next one proves to be authentic. After
// 2^39 the two make a new handshake.
//
// # Handshake
//
// It is Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s: who does not have the key cannot take part in it, nor tell one from noise, and
// who gets hold of the key later cannot read what was sent before. Four datagrams:
//
//	question   who begins asks for a challenge. As long as the answer: it amplifies nothing.
//	challenge  a keyed hash of who asked and when: nothing is kept of who may be a stranger.
//	first      the challenge and the first message of Noise, which only who has the key can make
//	second     the challenge that it answers, and the second message of Noise
//
// Each has 12 bytes of a MAC with the key over all else in it. So the work of a handshake is done for nobody without the key, a
// challenge that somebody made up is not answered, and no challenge is moved from one first message into another. Genuine challenges may still come from where they should
// not: who has the peer challenge another address for the same question, and has what it sent to there come here. Therefore a challenge replaces
// another one in the first message, and nothing else: what Noise says stays, and the second message fits, whichever
// of the challenges it answers.
//
// A challenge serves once, from the address that it was sent to, and for a minute at most. So a recorded first
// message is worth nothing, and whoever is kept anything of has shown to have the key, and to be where it says.
//
// The same key may be everybody's. Then all who have it may speak for each other: it keeps others out, and proves of nobody
// which of them it is.
package seal

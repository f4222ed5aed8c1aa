package mpa

import (
	"encoding/binary"
	"fmt"
)

// Lengths of set-up frames (MPA-012).
const (
	SetUpHeader = 20
	maxPrivate  = 512 // the words of enhanced set-up included
	wordsSize   = 4
	maxSetup    = SetUpHeader + maxPrivate
)

const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// Bits of the flags octet.
const (
	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagReject   = 0x20
	flagEnhanced = 0x10
	reservedBits = 0x0f
)

// Bits of the two words of enhanced set-up, beside 14 bits of number each.
const (
	bitPeerToPeer = 0x8000 // in the word of IRD
	bitReadySend  = 0x4000
	bitReadyWrite = 0x8000 // in the word of ORD
	bitReadyRead  = 0x4000
	// NotNegotiated in a place of IRD or ORD says that the programs agree on it by themselves.
	NotNegotiated = 0x3fff
)

// Ready is a set of kinds of frames that may be the first in peer-to-peer mode: the
// ready-to-receive frame of RFC 6581, by which the initiator lets the responder send.
type Ready uint8

// Kinds of ready-to-receive frames: messages without payload.
const (
	ReadyWrite Ready = 1 << iota
	ReadyRead
	ReadySend
)

// SetUp is a request or reply as it is on the wire.
type SetUp struct {
	Reply    bool
	Rev      byte
	Markers  bool
	CRC      bool
	Reject   bool
	Reserved byte // the other four bits of the flags octet, as they are there

	// Enhanced says that there are words of enhanced set-up.
	Enhanced   bool
	IRD, ORD   uint16
	PeerToPeer bool
	Ready      Ready

	Private []byte
}

// append writes the frame behind b.
func (s *SetUp) append(b []byte) []byte {
	key := requestKey
	if s.Reply {
		key = replyKey
	}
	b = append(b, key...)
	flags := s.Reserved & reservedBits
	size := len(s.Private)
	for _, f := range []struct {
		on  bool
		bit byte
	}{{s.Markers, flagMarkers}, {s.CRC, flagCRC}, {s.Reject, flagReject}, {s.Enhanced, flagEnhanced}} {
		if f.on {
			flags |= f.bit
		}
	}
	if s.Enhanced {
		size += wordsSize
	}
	b = append(b, flags, s.Rev)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	if s.Enhanced {
		ird, ord := s.IRD, s.ORD
		if s.PeerToPeer {
			ird |= bitPeerToPeer
		}
		if s.Ready&ReadySend != 0 {
			ird |= bitReadySend
		}
		if s.Ready&ReadyWrite != 0 {
			ord |= bitReadyWrite
		}
		if s.Ready&ReadyRead != 0 {
			ord |= bitReadyRead
		}
		b = binary.BigEndian.AppendUint16(b, ird)
		b = binary.BigEndian.AppendUint16(b, ord)
	}
	return append(b, s.Private...)
}

// setupSize returns how long the frame is that begins with b, as far as b tells: at least as long as
// a frame without private data. Whatever is wrong it says as soon as it can be seen, so
// that who speaks another protocol is not waited for.
func setupSize(b []byte, reply bool) (int, error) {
	key, what := requestKey, "request"
	if reply {
		key, what = replyKey, "reply"
	}
	n := min(len(b), len(key))
	if string(b[:n]) != key[:n] {
		return 0, &SetUpError{Err: ErrNotMPA, What: fmt.Sprintf("the %s begins with %q, not with %q: the peer does not speak iWARP on this port", what, b[:n], key)}
	}
	if len(b) < SetUpHeader {
		return SetUpHeader, nil
	}
	if rev := b[17]; rev != 1 && rev != 2 {
		return 0, &SetUpError{Err: ErrRevision, What: fmt.Sprintf("the %s is of revision %d of MPA, and only 1 and 2 are known here", what, rev)}
	}
	size := int(binary.BigEndian.Uint16(b[18:]))
	if size > maxPrivate {
		return 0, &SetUpError{Err: ErrPrivate, What: fmt.Sprintf("the %s announces %d octets of private data, and %d are allowed", what, size, maxPrivate)}
	}
	return SetUpHeader + size, nil
}

// parseSetup reads a frame that is as long as setupSize says. Its private data is that of b.
func parseSetup(b []byte, reply bool) (SetUp, error) {
	size, err := setupSize(b, reply)
	if err != nil {
		return SetUp{}, err
	}
	if len(b) != size {
		return SetUp{}, &SetUpError{Err: ErrPrivate, What: fmt.Sprintf("the frame has %d octets, and says that it has %d", len(b), size)}
	}
	return decodeSetup(b)
}

// decodeSetup reads a whole frame, whatever it says.
func decodeSetup(b []byte) (SetUp, error) {
	flags := b[16]
	s := SetUp{
		Reply: string(b[:len(replyKey)]) == replyKey, Rev: b[17], Private: b[SetUpHeader:],
		Markers: flags&flagMarkers != 0, CRC: flags&flagCRC != 0, Reject: flags&flagReject != 0,
		Reserved: flags & reservedBits,
	}
	// In revision 1 the bit of enhanced set-up is one of the reserved ones, which siw as
	// responder brings back.
	if s.Rev < 2 || flags&flagEnhanced == 0 {
		return s, nil
	}
	s.Enhanced = true
	if len(s.Private) < wordsSize {
		return s, &SetUpError{Err: ErrEnhanced, What: fmt.Sprintf("the frame says that it has IRD and ORD, and has %d octets for them, not %d", len(s.Private), wordsSize)}
	}
	ird, ord := binary.BigEndian.Uint16(s.Private), binary.BigEndian.Uint16(s.Private[2:])
	s.Private = s.Private[wordsSize:]
	s.IRD, s.ORD = ird&NotNegotiated, ord&NotNegotiated
	s.PeerToPeer = ird&bitPeerToPeer != 0
	if ird&bitReadySend != 0 {
		s.Ready |= ReadySend
	}
	if ord&bitReadyWrite != 0 {
		s.Ready |= ReadyWrite
	}
	if ord&bitReadyRead != 0 {
		s.Ready |= ReadyRead
	}
	return s, nil
}

// Cut drops what is not among the first n bytes of the frame, of which there is at least the header: private data, and the words of
// enhanced set-up unless they are whole.
func (s *SetUp) Cut(n int) {
	n -= SetUpHeader
	if s.Enhanced {
		n -= wordsSize
	}
	if n < 0 {
		s.Enhanced, s.IRD, s.ORD, s.PeerToPeer, s.Ready = false, 0, 0, false, 0
	}
	s.Private = s.Private[:min(max(n, 0), len(s.Private))]
}

// ReadSetUp reads the request or reply that b begins with for who looks on, and takes what a side of the connection would
// refuse. size is how long the frame is: more than b has, if there is to come more, and 0 if b begins no such frame. The error
// says what is wrong with a whole one. Its private data is that of b.
func ReadSetUp(b []byte) (s SetUp, size int, err error) {
	key := requestKey
	if n := min(len(b), len(key)); string(b[:n]) != key[:n] {
		key = replyKey
		if string(b[:n]) != key[:n] {
			return SetUp{}, 0, nil
		}
	}
	if len(b) < SetUpHeader {
		return SetUp{}, SetUpHeader, nil
	}
	size = SetUpHeader + int(binary.BigEndian.Uint16(b[18:]))
	if len(b) < size {
		return SetUp{}, size, nil
	}
	s, err = decodeSetup(b[:size])
	if _, refused := setupSize(b[:size], s.Reply); refused != nil {
		err = refused
	}
	return s, size, err
}

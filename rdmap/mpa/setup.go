package mpa

import (
	"encoding/binary"
	"fmt"
)

// Lengths of set-up frames (MPA-012).
const (
	setupHeader = 20
	maxPrivate  = 512 // the words of enhanced set-up included
	wordsSize   = 4
	maxSetup    = setupHeader + maxPrivate
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
	notNegotiated = 0x3fff
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

// setup is a request or reply as it is on the wire.
type setup struct {
	reply    bool
	rev      byte
	markers  bool
	crc      bool
	reject   bool
	reserved byte // the other four bits of the flags octet

	// enhanced says that there are words of enhanced set-up.
	enhanced   bool
	ird, ord   uint16
	peerToPeer bool
	ready      Ready

	private []byte
}

// append writes the frame behind b.
func (s *setup) append(b []byte) []byte {
	key := requestKey
	if s.reply {
		key = replyKey
	}
	b = append(b, key...)
	flags := s.reserved & reservedBits
	size := len(s.private)
	for _, f := range []struct {
		on  bool
		bit byte
	}{{s.markers, flagMarkers}, {s.crc, flagCRC}, {s.reject, flagReject}, {s.enhanced, flagEnhanced}} {
		if f.on {
			flags |= f.bit
		}
	}
	if s.enhanced {
		size += wordsSize
	}
	b = append(b, flags, s.rev)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	if s.enhanced {
		ird, ord := s.ird, s.ord
		if s.peerToPeer {
			ird |= bitPeerToPeer
		}
		if s.ready&ReadySend != 0 {
			ird |= bitReadySend
		}
		if s.ready&ReadyWrite != 0 {
			ord |= bitReadyWrite
		}
		if s.ready&ReadyRead != 0 {
			ord |= bitReadyRead
		}
		b = binary.BigEndian.AppendUint16(b, ird)
		b = binary.BigEndian.AppendUint16(b, ord)
	}
	return append(b, s.private...)
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
		return 0, &SetUpError{Err: ErrNotMPA, What: fmt.Sprintf("the %s begins with %q, not with %q: does the peer speak iWARP on this port?", what, b[:n], key)}
	}
	if len(b) < setupHeader {
		return setupHeader, nil
	}
	if rev := b[17]; rev != 1 && rev != 2 {
		return 0, &SetUpError{Err: ErrRevision, What: fmt.Sprintf("the %s is of revision %d of MPA, and only 1 and 2 are known here", what, rev)}
	}
	size := int(binary.BigEndian.Uint16(b[18:]))
	if size > maxPrivate {
		return 0, &SetUpError{Err: ErrPrivate, What: fmt.Sprintf("the %s announces %d octets of private data, and %d are allowed", what, size, maxPrivate)}
	}
	return setupHeader + size, nil
}

// parseSetup reads a frame that is as long as setupSize says. Its private data is that of b.
func parseSetup(b []byte, reply bool) (setup, error) {
	size, err := setupSize(b, reply)
	if err != nil {
		return setup{}, err
	}
	if len(b) != size {
		return setup{}, &SetUpError{Err: ErrPrivate, What: fmt.Sprintf("the frame has %d octets, and says that it has %d", len(b), size)}
	}
	flags := b[16]
	s := setup{
		reply: reply, rev: b[17], private: b[setupHeader:],
		markers: flags&flagMarkers != 0, crc: flags&flagCRC != 0, reject: flags&flagReject != 0,
		reserved: flags & reservedBits,
	}
	// In revision 1 the bit of enhanced set-up is one of the reserved ones, which siw as
	// responder brings back.
	if s.rev == 1 || flags&flagEnhanced == 0 {
		return s, nil
	}
	s.enhanced = true
	if len(s.private) < wordsSize {
		return s, &SetUpError{Err: ErrEnhanced, What: fmt.Sprintf("the frame says that it has IRD and ORD, and has %d octets for them, not %d", len(s.private), wordsSize)}
	}
	ird, ord := binary.BigEndian.Uint16(s.private), binary.BigEndian.Uint16(s.private[2:])
	s.private = s.private[wordsSize:]
	s.ird, s.ord = ird&notNegotiated, ord&notNegotiated
	s.peerToPeer = ird&bitPeerToPeer != 0
	if ird&bitReadySend != 0 {
		s.ready |= ReadySend
	}
	if ord&bitReadyWrite != 0 {
		s.ready |= ReadyWrite
	}
	if ord&bitReadyRead != 0 {
		s.ready |= ReadyRead
	}
	return s, nil
}

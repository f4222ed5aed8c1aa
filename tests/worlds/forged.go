package worlds

import (
	"github.com/dgrdma/dgrdma/frame"
)

// Forgery is a kind of frame that somebody makes up.
type Forgery uint8

const (
	ForgedJunk  Forgery = iota
	ForgedHello         // of a handshake for a session
	ForgedEmpty
	ForgedData // only under an address of its own: peers may not be taken for it
	Forgeries  // how many there are
)

// Forge makes up a frame from one id to another, no longer than mtu.
func Forge(d Dice, kind Forgery, src, dst frame.EndpointID, mtu int) []byte {
	if kind == ForgedJunk {
		b := make([]byte, d.IntN(mtu+1))
		for i := range b {
			b[i] = byte(d.Uint32())
		}
		return b
	}
	h := frame.Header{Dst: dst, Src: src, Seq: frame.Seq(d.Uint32())}
	if d.Chance(0.5) {
		h.AckStart, h.AckCount = frame.Seq(d.Uint32()), uint8(d.Uint32())
	}
	b := make([]byte, frame.HeaderSize, 128)
	message := func(m frame.Message) {
		h.Flags = frame.FlagMessages
		b = b[:frame.HeaderSize+frame.MessageHeaderSize]
		m.Put(b[frame.HeaderSize:])
	}
	switch kind {
	case ForgedHello:
		k := frame.HandshakeHello
		if d.Chance(0.3) {
			k = frame.HandshakeWelcome + frame.HandshakeKind(d.IntN(int(frame.HandshakeRefused-frame.HandshakeHello)))
		}
		is := frame.Handshake{Kind: k, Sender: d.Uint32() | 1}
		switch {
		case k == frame.HandshakeRefused:
			is.Receiver = is.Sender
		case k != frame.HandshakeHello:
			is.Receiver, is.Check = d.Uint32()|1, d.Uint32()
		}
		b = b[:frame.HandshakeSize]
		is.Put(b, dst, src)
		return b
	case ForgedData:
		message(frame.Message{Txn: d.Uint32(), CompletionAddr: 0, CompletionValue: 1, Index: frame.NotHandshake})
	}
	h.Put(b)
	return b
}

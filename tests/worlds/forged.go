package worlds

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// Forgery is a kind of frame that somebody makes up.
type Forgery uint8

const (
	ForgedJunk Forgery = iota
	ForgedHello
	ForgedStamp
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
		hello := frame.Hello{Life: d.Uint32() | 1, Tells: d.Chance(0.3)}
		if d.Chance(0.5) {
			hello.Peer = d.Uint32()
		}
		h.AckCount = 0
		h.SetHelloID(d.Uint32())
		message(hello.Message())
	case ForgedStamp:
		b = b[:frame.HeaderSize+frame.StampSize]
		id, start := ack.Wide(d.Uint32()).Near(h.Seq), ack.Wide(d.Uint32()).Near(h.AckStart)
		frame.Stamp{Life: d.Uint32(), ID: uint32(id), Start: uint32(start)}.Put(b[frame.HeaderSize:])
	case ForgedData:
		message(frame.Message{Txn: d.Uint32(), CompletionAddr: 0, CompletionValue: 1, Index: frame.NotHello})
	}
	h.Put(b)
	return b
}

package link

import (
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Options are how one side wants a link. The side that receives decides how many
// buffers there are and how long they are; what the other side asks for counts
// where it left that open.
type Options struct {
	// Directions is what a listener offers or a dialer asks for. 0 means Send for
	// a dialer, and Receive for a listener.
	Directions Direction
	// Buffers and Size are of what this side receives, or a wish for what it
	// sends. 0 means what the other side wants, or 64 buffers of 64 KiB.
	Buffers, Size int
	// Opcode is of the messages that Write sends.
	Opcode uint8
	// KeepForEnd keeps one of the peer's buffers, if it has several, for end of file: so that
	// the end of what is sent waits for no reader. Messages are in the others.
	KeepForEnd bool
	// Handle, if not nil, is called with every message that comes in, in order, in
	// place of Recv, and the message is released when it returns. It runs on the
	// goroutine that receives and must not block: for that, nobody needs to be
	// woken. Producer.TryAcquire does not block. It may be called before Dial or
	// Accept returns.
	Handle func(*Link, Message)
	// Private is sent along, up to MaxPrivate bytes.
	Private []byte
	// Vet, if not nil, is asked by Accept about everyone who dials, before the link takes
	// memory, with what was sent along. Who dials is refused with the error that it returns.
	// Accepts that run at the same time call it at the same time. If it panics, who dials is
	// refused, and the panic is that of Accept, which may be called again.
	Vet func(peer dgrdma.PeerName, private []byte) error
}

// Direction says which way messages go, as the side that says it sees it.
type Direction uint8

const (
	Send Direction = 1 << iota
	Receive
	Both = Send | Receive
)

const (
	defaultBuffers = 64
	defaultSize    = 64 << 10
	mostBuffers    = 1 << 16
	mostSize       = MaxMessage
	mostOffered    = 1 << 30 // bytes of buffers at the peer, of which most may be acquired at once
	wordSize       = 4
	cacheLine      = 64
	mostFlagPitch  = 1<<16 - 1
)

// or returns the options that count for a port, with that direction if none was
// said.
func (o *Options) or(otherwise Direction, port string) (Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	if full.Directions == 0 {
		full.Directions = otherwise
	}
	return full, full.check(port)
}

func (o *Options) check(name string) error {
	switch {
	case len(name) == 0 || len(name) > MaxName:
		return fmt.Errorf("link: port name %q: need 1 to %d bytes", name, MaxName)
	case len(o.Private) > MaxPrivate:
		return fmt.Errorf("link: %d bytes of private data, at most %d", len(o.Private), MaxPrivate)
	case o.Buffers < 0 || o.Buffers > mostBuffers:
		return fmt.Errorf("link: %d buffers, need 1 to %d", o.Buffers, mostBuffers)
	case o.Size < 0 || o.Size > mostSize:
		return fmt.Errorf("link: buffers of %d bytes, need 1 to %d", o.Size, mostSize)
	case o.Directions&^Both != 0:
		return fmt.Errorf("link: direction %d, need Send, Receive or Both", o.Directions)
	}
	return nil
}

// settle decides the shape of a half that this side receives, from what it wants
// and what the peer wishes.
func (o *Options) settle(wish half) half {
	pick := func(mine int, theirs uint32, most, otherwise int) uint32 {
		switch {
		case mine != 0:
			return uint32(mine)
		case theirs != 0:
			return min(theirs, uint32(most))
		}
		return uint32(otherwise)
	}
	return half{
		Buffers: pick(o.Buffers, wish.Buffers, mostBuffers, defaultBuffers),
		Size:    pick(o.Size, wish.Size, mostSize, defaultSize),
	}
}

// arrange computes the distances of buffers and flags.
func (h *half) arrange() {
	if h.FlagPitch == 0 {
		h.FlagPitch = wordSize
	}
	h.Pitch = (h.Size + cacheLine - 1) &^ (cacheLine - 1)
}

// memory is what buffers and flags take.
func (h *half) memory() uint64 { return uint64(h.Buffers) * (uint64(h.Pitch) + uint64(h.FlagPitch)) }

// valid reports whether a half that the peer describes can be written to.
func (h *half) valid() bool {
	const top = 1 << 32
	return h.Buffers > 0 && h.Buffers <= mostBuffers && h.Size > 0 && h.Size <= mostSize && h.Pitch >= h.Size && h.Pitch < 1<<22 &&
		uint64(h.Buffers)*uint64(h.Size) <= mostOffered && uint64(h.Data)+uint64(h.Buffers)*uint64(h.Pitch) <= top &&
		h.FlagPitch >= wordSize && h.FlagPitch <= mostFlagPitch && uint64(h.Flags)+uint64(h.Buffers)*uint64(h.FlagPitch) <= top
}

package link

import (
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Options are how one side wants a link. The side that receives decides how many buffers there are and
// how long they are. What the other side asks for counts where that was left open.
type Options struct {
	// Directions is what a listener offers or a dialer asks for. 0 means Send for a dialer, and Receive
	// for a listener.
	Directions Direction
	// Buffers and Size are for what this side receives, or a wish for what it sends. 0 means what the
	// other side wants, or 64 buffers of 64 KiB.
	Buffers, Size int
	// Grow has this side take more buffers than that for what it receives, as a path with a long round trip
	// needs them: up to 16 MiB, and a quarter of what the host has free. It does so also where neither side
	// says how many there are to be.
	Grow bool
	// Opcode is the opcode of messages that Write sends.
	Opcode uint8
	// KeepForEnd keeps one of the peer's buffers, if it has several, for end of file. So the end of what
	// is sent waits for no reader. Messages are in the other buffers.
	KeepForEnd bool
	// Handle, if not nil, is called with every message that comes in, in order, in place of Recv. The
	// message is released when Handle returns. It runs on the receive goroutine, so that no other one
	// needs to be woken, and must not block: a callback that blocks keeps the host from receiving.
	// Producer.TryAcquire does not block. Handle may be called before Dial or Accept returns.
	Handle func(*Link, Message)
	// Private is data for the other side's program, up to MaxPrivate bytes.
	Private []byte
	// Filter, if not nil, is called by Accept for every dialer, with the private data of the Dial,
	// before the link takes memory. The dialer is refused with the error that Filter returns.
	// Accepts that run at the same time call it at the same time.
	Filter func(peer dgrdma.PeerName, private []byte) error
}

// Direction says which direction messages go, as seen by the side that says it.
type Direction uint8

const (
	Send Direction = 1 << iota
	Receive
	Both = Send | Receive
)

const (
	defaultBuffers = 64
	defaultSize    = 64 << 10
)

// withDefaults returns the options for a port, with the direction otherwise if none was set.
func (o *Options) withDefaults(otherwise Direction, port string) (Options, error) {
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

// chooseShape decides the shape of a half that this side receives, from what it wants and what the
// peer wishes.
func (o *Options) chooseShape(wish half) half {
	pick := func(local int, remote uint32, most, otherwise int) uint32 {
		switch {
		case local != 0:
			return uint32(local)
		case remote != 0:
			return min(remote, uint32(most))
		}
		return uint32(otherwise)
	}
	return half{
		Buffers: pick(o.Buffers, wish.Buffers, mostBuffers, defaultBuffers),
		Size:    pick(o.Size, wish.Size, mostSize, defaultSize),
	}
}

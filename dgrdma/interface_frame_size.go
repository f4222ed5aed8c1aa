package dgrdma

import (
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
)

// carries returns how long a frame may be for the interface towards that address.
func (e *Endpoint) carries(to transport.Addr) int { return e.within(e.transport.MTU(to)) }

// within returns how long a frame may be that leaves in so many bytes.
func (e *Endpoint) within(size int) int {
	if e.sealed != nil {
		return size - seal.Overhead
	}
	return size
}

// wholeFrame returns how long a full frame is where there is that much room: it has a whole number
// of 8 bytes after the header, so that all are equally long.
func wholeFrame(header, room int) int { return header + (room-header)&^7 }

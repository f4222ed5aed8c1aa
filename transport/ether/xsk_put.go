package ether

import (
	"runtime"

	"github.com/dgrdma/dgrdma/transport"
)

// frameOffset is where a frame begins in its first chunk, so that what follows its header lies at
// a multiple of 16.
const frameOffset = 2

// put copies a frame into chunks, which must be there, and queues it. Not ok: it cannot be read.
func (x *xsk) put(header *[headerSize]byte, o *transport.Outgoing) (ok bool) {
	free, next := len(x.free), x.queue.next
	defer func() {
		if !ok {
			x.free, x.queue.next = x.free[:free], next
			cannotRead(recover())
		}
	}()
	number, b := x.take()
	*(*[headerSize]byte)(b[frameOffset:]) = *header
	from, at := frameOffset, frameOffset+headerSize
	for _, part := range [...][]byte{o.Buf, o.Rest, o.Tail} {
		n := copy(b[at:], part)
		at += n
		for n < len(part) {
			x.queue.add(x.addr(number)+uint64(from), at-from, true)
			number, b = x.take()
			from, at = 0, copy(b, part[n:])
			n += at
		}
	}
	x.queue.add(x.addr(number)+uint64(from), at-from, false)
	return true
}

// cannotRead is told what recover returned, and panics with that if memory that cannot be read was
// not the reason.
func cannotRead(why any) {
	_, fault := why.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !fault {
		panic(why)
	}
}

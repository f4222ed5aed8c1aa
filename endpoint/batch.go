package endpoint

import (
	"sync/atomic"

	"github.com/dgrdma/dgrdma/transport"
)

// maxBatch bounds the frames given to the transport at once: one system call's
// worth, and the bound on how long a turn keeps a connection's lock.
const maxBatch = 128

// batch collects frames for one call of the transport. It belongs to whoever
// holds the turn.
type batch struct {
	frames   []transport.Outgoing
	smalls   []byte // buffers of frames that are sent once and forgotten
	nSmall   int
	headroom int
	number   atomic.Uint64 // counts the batches; others read it
}

func (b *batch) init(headroom int) {
	b.headroom = headroom
	b.frames = make([]transport.Outgoing, 0, maxBatch)
	b.smalls = make([]byte, maxBatch*(headroom+smallLength))
}

func (b *batch) full() bool { return len(b.frames) == maxBatch }

// small returns a buffer for a frame that nobody keeps. There is one for every
// frame of a batch. What was in it is still there: who takes it writes all that is sent.
func (b *batch) small() []byte {
	n := b.headroom + smallLength
	buf := b.smalls[b.nSmall*n : (b.nSmall+1)*n : (b.nSmall+1)*n]
	b.nSmall++
	return buf
}

func (b *batch) add(to *transport.Addr, buf []byte) {
	b.frames = append(b.frames, transport.Outgoing{To: to, Buf: buf})
}

package verbs

import (
	"errors"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// memoryLost ends the stream if err says that the carrier found nothing under memory, as where a mapped file was cut. The caller
// has the lock.
func (q *QueuePair) memoryLost(err error) bool {
	var e *ddp.LostError
	if !errors.As(err, &e) {
		return false
	}
	detail := error(memory.ErrLost)
	if g, registered := e.Span.Guard.(*memory.Grant); registered {
		fault := ddp.OperationStream
		if e.Received {
			fault = ddp.LocalDDP
		}
		detail = g.Lost(e.Span.Bytes, e.At, fault)
	}
	q.stream.Lost(e, detail)
	return true
}

package verbs

import (
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// access is a host's memory as the stream of one queue pair sees it.
type access struct{ *memory.Stream }

var rightOf = [...]memory.Rights{
	rdmap.AccessWrite:           memory.RemoteWrite,
	rdmap.AccessRead:            memory.RemoteRead,
	rdmap.AccessAtomic:          memory.RemoteAtomic,
	rdmap.AccessFlushPersistent: memory.FlushPersistent,
	rdmap.AccessFlushGlobal:     memory.FlushGlobal,
	rdmap.AccessVerify:          memory.Verify,
	rdmap.AccessAtomicWrite:     memory.RemoteWrite,
}

func (a access) Find(how rdmap.Access, stag uint32, to uint64, n uint32) (ddp.Span, error) {
	span, v := a.Stream.Find(stag, to, n, rightOf[how])
	switch {
	case v == memory.None:
		return span, nil
	case how == rdmap.AccessWrite:
		return span, v.Segment()
	}
	return span, v.Request()
}

func (a access) Withdraw(stag uint32) error { return a.Stream.Invalidate(stag) }

func (a access) AtomicWrite(stag uint32, to uint64, data [8]byte) error {
	return a.Store(stag, to, data)
}

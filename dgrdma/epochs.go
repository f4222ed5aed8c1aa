package dgrdma

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/transport"
)

// epochs are those that the endpoint tells its peers. The lock is a leaf.
type epochs struct {
	mu   sync.Mutex
	all  session.Generations // guarded by mu
	peer []byte              // of the peer at hand; guarded by mu

	lastWelcome atomic.Int64 // when one left; 0: none has
}

// welcomes notes that a WELCOME leaves.
func (e *epochs) welcomes(now ack.Instant) { e.lastWelcome.Store(int64(max(now, 1))) }

// welcomed reports whether a WELCOME left that may still begin a session, of some peer: as an unknown source, or as that of another
// connection, one may have been told of fewer services.
func (e *epochs) welcomed(now ack.Instant) bool {
	at := ack.Instant(e.lastWelcome.Load())
	return at > 0 && now.Sub(at) <= session.EpochCounts
}

// with calls f with those of one peer. Over UDP an address is one endpoint's, whatever its id: what it is told does not depend on that, so that it may be asked
// for a session before its id is known.
func (e *epochs) with(k peerKey, now ack.Instant, f func(session.Epochs)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := binary.LittleEndian.AppendUint16(e.peer[:0], uint16(k.local))
	if k.addr.Kind() != transport.KindUDP {
		b = binary.LittleEndian.AppendUint16(b, uint16(k.remote))
	}
	e.peer = k.addr.Append(b)
	f(e.all.Of(e.peer, now))
}

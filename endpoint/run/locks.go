package run

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// receiveLock is the right to receive. Unlike a mutex, a select can wait for it: the
// goroutine that took the token from free holds the lock.
type receiveLock struct{ free chan struct{} }

func (l *receiveLock) init() {
	l.free = make(chan struct{}, 1)
	l.unlock()
}

func (l *receiveLock) lock()   { <-l.free }
func (l *receiveLock) unlock() { l.free <- struct{}{} }

func (l *receiveLock) tryLock() bool {
	select {
	case <-l.free:
		return true
	default:
		return false
	}
}

// claimLimit is how long the holder of the receive lock waits for the send lock. The
// transport may block the holder of that, and datagrams must be received all the same.
// Arbitrary: long compared with a batch, short for a person.
const claimLimit = 2 * time.Millisecond

// sendLock is the right to send.
type sendLock struct {
	mu       sync.Mutex
	claimed  atomic.Bool   // the holder of the receive lock waits for it
	released chan struct{} // one token: it was released while it was claimed
	timer    *time.Timer   // guarded by the receive lock
}

func (l *sendLock) init() {
	l.released = make(chan struct{}, 1)
	l.timer = time.NewTimer(claimLimit)
	l.timer.Stop()
}

func (l *sendLock) unlock() {
	l.mu.Unlock()
	if l.claimed.Load() {
		patience.Leave(l.released)
	}
}

// tryLock fails also while the send lock is claimed.
func (l *sendLock) tryLock() bool { return !l.claimed.Load() && l.mu.TryLock() }

// isLocked reports whether another goroutine holds the lock. If not, the caller serves what
// is pending: a goroutine that would do so may have met the lock while isLocked held it.
func (l *sendLock) isLocked() bool {
	if !l.mu.TryLock() {
		return true
	}
	l.mu.Unlock()
	return false
}

// claim locks, and has the holder release the lock after the item at hand. It reports
// whether the holder did so in time. The caller holds the receive lock.
func (l *sendLock) claim() bool {
	if l.mu.TryLock() {
		return true
	}
	l.claimed.Store(true)
	defer l.claimed.Store(false)
	l.timer.Reset(claimLimit)
	defer l.timer.Stop()
	for !l.mu.TryLock() { // also at first: it may have been released before it was claimed
		select {
		case <-l.released:
		case <-l.timer.C:
			return l.mu.TryLock()
		}
	}
	return true
}

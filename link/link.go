package link

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
)

// Link joins two hosts: messages go out by one of its halves and come in by the other. A link has one
// half or both, as its dialer asked.
type Link struct {
	Out *Producer // nil: nothing is sent by this side
	In  *Consumer // nil: nothing is received

	host             *Host
	peer             *peer
	port             string
	plain            bool // made by Offer or Attach: the peer reads no letters
	private          []byte
	number           uint32
	life             uint32 // of the connection; nothing of this link reaches another
	attempt          uint64
	made             time.Time
	notified         chan struct{}   // closed when the peer has been told that this side has ended, or can never be
	ended            chan struct{}   // closed when the link is over, and the peer has ended it too, or is gone
	flow             *dgrdma.Flow    // all transactions of the link are in it
	memory           space.Span      // of the half that receives as it begins, and of the credits
	answer           chan error      // of the listener, for the dialer
	down             chan struct{}   // closed when err is set
	gone             <-chan struct{} // closed when the connection failed or was closed
	pending          atomic.Int32    // transactions posted and not done
	readers          atomic.Int32    // goroutines that copy from buffers now: see holdMemory
	requestArrived   atomic.Bool     // the peer has our letter that asks for the link
	finishing        atomic.Bool     // Finish was called
	closed           atomic.Bool     // the application has ended the link: the last transaction to complete calls advance
	peerTakesNothing atomic.Bool     // the peer has ended the link too, and wants nothing any more

	mu           sync.Mutex
	err          error
	remoteNumber uint32       // the peer's number; 0: not known yet
	answered     bool         // the listener has answered, or this side is the listener
	sentClose    bool         // the letter of the end was sent, or is not needed: this side posts nothing more
	reason       string       // why this side ended early, if not empty
	peerClosed   bool         // the peer has ended the link
	peerGone     bool         // nothing can come from the peer any more
	released     bool         // the memory is given back
	grown        []space.Span // the memory of buffers beyond the first: see growth
}

func newLink(p *peer, life uint32, port string, attempt uint64) *Link {
	return &Link{
		host: p.host, peer: p, number: p.host.newNumber(), flow: p.channel.Flow(), life: life, port: port, attempt: attempt, made: time.Now(),
		answer: make(chan error, 1), notified: make(chan struct{}), ended: make(chan struct{}), down: make(chan struct{}), gone: p.conn.Done(),
	}
}

// String names the port and the peer, and nothing of what is moved.
func (l *Link) String() string {
	if l.port == "" {
		return "link with " + l.peer.String()
	}
	return fmt.Sprintf("link by port %q of %v", l.port, l.peer)
}

// Port returns the name of the port that was dialed.
func (l *Link) Port() string {
	return l.port
}

// Number returns the number of the link in its host and in [HostStats], which no other link there has.
func (l *Link) Number() uint32 {
	return l.number
}

// PeerNumber returns the number of the link in the peer's host. It is 0 if the peer did not say, as
// peers of other kinds do not.
func (l *Link) PeerNumber() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remoteNumber
}

// Peer returns the connection to the other side.
func (l *Link) Peer() *dgrdma.Conn {
	return l.peer.conn
}

// Private returns the private data that the other side sent when the link was made.
func (l *Link) Private() []byte {
	return l.private
}

// Done returns a channel that is closed when the link failed or was closed.
// What was delivered before can still be received.
func (l *Link) Done() <-chan struct{} {
	return l.down
}

// Err returns why the link failed, or nil.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// failure is Err, and takes little time if there is none.
func (l *Link) failure() error {
	select {
	case <-l.down:
		return l.Err()
	default:
		return nil
	}
}

// wrap adds port and peer to an error that names none.
func (l *Link) wrap(op string, err error) error {
	var already *Error
	if errors.As(err, &already) {
		return err
	}
	return &Error{Op: op, Port: l.port, Peer: l.peer.String(), Err: err}
}

// fail ends both halves. The first reason stays.
func (l *Link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.wrap("", err)
		close(l.down)
	}
}

// post posts a transaction that keeps the link from its end until completed is called.
func (l *Link) post(t *dgrdma.Transaction) error {
	l.pending.Add(1)
	if l.mustNotPost() {
		return ErrClosed // the peer may have been told that nothing comes any more
	}
	return l.flow.PostTo(l.life, t)
}

// mustNotPost reports whether either side has ended the link.
func (l *Link) mustNotPost() bool { return l.closed.Load() || l.peerTakesNothing.Load() }

func (l *Link) completed() {
	if l.pending.Add(-1) == 0 && l.mustNotPost() {
		l.advance()
	}
}

// holdMemory keeps the memory for a goroutine that copies from it, until releaseMemory is called. Not
// ok: the application has ended the link, and the memory may be another link's.
func (l *Link) holdMemory() (ok bool) {
	l.readers.Add(1)
	return !l.closed.Load()
}

func (l *Link) releaseMemory() {
	if l.readers.Add(-1) == 0 && l.closed.Load() {
		l.advance()
	}
}

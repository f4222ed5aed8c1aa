package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
)

// Link joins two hosts: messages go out by one of its halves and come in by the
// other. A link has one half or both, as whoever dialed it asked for.
type Link struct {
	Out *Producer // nil: nothing is sent by this side
	In  *Consumer // nil: nothing is received

	host    *Host
	peer    *peer
	port    string
	plain   bool // made by Offer or Attach: the peer reads no letters
	private []byte
	number  uint32
	life    uint32 // of the connection; nothing of this link reaches another
	attempt uint64
	made    time.Time
	told    chan struct{}   // closed when the peer has heard that we are through, or never will
	parted  chan struct{}   // closed when the link is over, and the peer has said the same or is no more
	flow    *dgrdma.Flow    // by which it posts
	memory  space.Span      // of the half that receives, and of the credits
	answer  chan error      // what the listener says, for the dialer
	down    chan struct{}   // closed when err is set
	gone    <-chan struct{} // closed when the connection failed or was closed
	pending atomic.Int32    // transactions posted and not done
	readers atomic.Int32    // who copies from buffers just now: see hold
	asked   atomic.Bool     // the peer has our letter that asks for the link
	leaving atomic.Bool     // Finish was called
	ending  atomic.Bool     // the application is through: who ends the last transaction looks further
	quiet   atomic.Bool     // the peer is through, too, and wants nothing any more

	mu         sync.Mutex
	err        error
	theirs     uint32 // the peer's number; 0: not known yet
	heard      bool   // the listener has answered, or we are the listener
	said       bool   // that we post nothing more
	why        string // we ended early, if not empty
	peerClosed bool   // the peer said so
	orphaned   bool   // nothing can come from the peer any more
	over       bool   // the memory is given back
}

func newLink(p *peer, life uint32, port string, attempt uint64) *Link {
	return &Link{
		host: p.host, peer: p, number: p.host.newNumber(), flow: p.channel.Flow(), life: life, port: port, attempt: attempt, made: time.Now(),
		answer: make(chan error, 1), told: make(chan struct{}), parted: make(chan struct{}), down: make(chan struct{}), gone: p.conn.Done(),
	}
}

// String names the port and the peer, and nothing of what is within.
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

// Number returns what the link is called in its host, and in [HostStats]: no other link
// there has that number.
func (l *Link) Number() uint32 {
	return l.number
}

// PeerNumber returns what the link is called in the host of the other side; 0: it did not
// say, as peers of other kinds do not.
func (l *Link) PeerNumber() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.theirs
}

// Peer returns the connection to the other side.
func (l *Link) Peer() *dgrdma.Conn {
	return l.peer.conn
}

// Private returns what the other side sent along when the link was made.
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

// failed is Err in little time, if there is none.
func (l *Link) failed() error {
	select {
	case <-l.down:
		return l.Err()
	default:
		return nil
	}
}

// wrap says which link an error is of.
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

// Close ends the link. Messages that were sent arrive, and end of file after
// them; what was received and is not yet read is lost. Views of messages are
// void, but in a loop over [Consumer.Messages]: another link may have their memory. Close waits until all is acknowledged or the peer
// is dead, and not for a peer that takes nothing: when for a minute no buffer came back and
// nothing was acknowledged the error is [ErrNoAnswer], and the link is over all the same. Its
// peer then reads what has arrived, and in place of end of file ErrPeerClosed.
func (l *Link) Close() error {
	if l.Out == nil {
		return l.CloseContext(context.Background())
	}
	ctx, stop := l.Out.whileTaken()
	defer stop()
	return l.CloseContext(ctx)
}

// CloseContext is Close that waits no longer than the context, and then ends the
// link all the same.
func (l *Link) CloseContext(ctx context.Context) error {
	var err error
	if l.Out != nil {
		err = l.Out.CloseContext(ctx)
	}
	l.fail(ErrClosed)
	l.end()
	return err
}

// Abort ends the link early. What was sent and what was received may be lost; at
// the peer everything fails, once it has received what was delivered before, with
// an [*AbortError] that holds the reason, of which at most 256 bytes. It needs no
// free buffer. Abort waits until the peer has been told, but no longer than the
// context: the error is its.
func (l *Link) Abort(ctx context.Context, why string) error {
	l.leave(why)
	l.host.awaits(ctx, l.told)
	switch {
	case l.hasTold():
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.host.ep.Err()
}

// leave ends the link early.
func (l *Link) leave(why string) {
	l.mu.Lock()
	if l.why == "" {
		l.why = bounded(why)
	}
	l.mu.Unlock()
	l.fail(ErrClosed)
	l.end()
}

// end notes that the application is through with the link.
func (l *Link) end() {
	l.ending.Store(true)
	l.advance()
}

// post posts a transaction that holds on to the link until settled is called.
func (l *Link) post(t *dgrdma.Transaction) error {
	l.pending.Add(1)
	if l.silent() {
		return ErrClosed // the peer may have been told that nothing comes any more
	}
	return l.flow.PostTo(l.life, t)
}

// silent reports whether nothing may be posted any more.
func (l *Link) silent() bool { return l.ending.Load() || l.quiet.Load() }

func (l *Link) settled() {
	if l.pending.Add(-1) == 0 && l.silent() {
		l.advance()
	}
}

// hold keeps the memory until letGo is called, for who copies from it. Not ok: the
// application is through with it, and it may be another link's.
func (l *Link) hold() (ok bool) {
	l.readers.Add(1)
	return !l.ending.Load()
}

func (l *Link) letGo() {
	if l.readers.Add(-1) == 0 && l.ending.Load() {
		l.advance()
	}
}

// hasTold reports whether the peer has heard that we are through, or never will.
func (l *Link) hasTold() bool { return isClosed(l.told) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// advance takes the next steps to the end. When either side is through, and nothing of ours
// is under way, the peer is told. When this side is, and no reader copies from the memory, that
// is given back: for links of any peer if this one said the same or is no more, else for those
// of others until it does.
func (l *Link) advance() {
	l.mu.Lock()
	if !l.silent() || l.pending.Load() > 0 || l.over {
		l.mu.Unlock()
		return
	}
	first := !l.said
	l.said = true
	tell := first && !l.orphaned && !l.plain
	through := l.peerClosed || l.orphaned
	over := l.ending.Load() && l.readers.Load() == 0 && (through || !l.plain)
	l.over = over
	why := l.why
	l.mu.Unlock()
	switch {
	case tell:
		l.tell(why)
	case first:
		close(l.told) // there is nobody to hear it
	}
	l.withdraw()
	if l.Out != nil {
		l.Out.drop()
	}
	if !over {
		return // of a plain link until the end of the connection: who knows what is under way
	}
	l.peer.retire(l, through)
	l.host.roll.strike(l)
	if !through {
		l.recheck()
	}
	l.host.ep.AfterBatch(func() { l.host.block.Give(l.memory) })
}

// recheck lets go of an ended link of which the peer spoke, or was gone, while it ended.
func (l *Link) recheck() {
	l.mu.Lock()
	through := l.over && (l.peerClosed || l.orphaned)
	l.mu.Unlock()
	if through {
		l.peer.confirmed(l.number, l.attempt)
	}
}

// tell tells the peer, once, that nothing is posted any more, and why if that is early.
func (l *Link) tell(why string) {
	l.mu.Lock()
	c := letter{kind: letterClose, hadAll: l.In != nil && l.In.ended(), from: l.number, to: l.theirs, attempt: l.attempt, text: why}
	l.mu.Unlock()
	l.peer.post(addressed{letter: c, life: l.life, settled: func(error) { close(l.told) }})
}

// withdraw keeps the peer from writing any more.
func (l *Link) withdraw() {
	l.peer.grants.Remove(l.memory.At, l)
}

// orphan notes that the peer's life is over.
func (l *Link) orphan() {
	l.mu.Lock()
	l.orphaned = true
	l.mu.Unlock()
	l.withdraw()
	l.endsUnheard()
	l.advance()
	l.recheck()
}

// lost notes that the connection is at its end, of which there need not be an
// event.
func (l *Link) lost() {
	err := l.peer.conn.Err()
	if err == nil {
		err = dgrdma.ErrReset // and made anew
	}
	l.fail(err)
	l.orphan()
}

// peerLeft notes that the peer posts nothing more for this link, why if that
// is early, and whether it had all that was sent.
func (l *Link) peerLeft(why string, hadAll bool) {
	if hadAll && l.Out != nil {
		l.Out.taken.Store(true)
	}
	l.mu.Lock()
	again := l.peerClosed
	l.peerClosed = true
	l.mu.Unlock()
	switch {
	case again: // to look at all buffers takes longer than to say it
	case why != "":
		l.fail(&AbortError{Reason: printable(why)})
	case l.In == nil || !l.In.ended():
		l.fail(ErrPeerClosed)
	}
	if l.Out != nil {
		l.fail(ErrPeerClosed)
	}
	l.quiet.Store(true)
	l.endsUnheard()
	l.advance()
	l.recheck()
}

// allocate takes as much memory as the halves of this side need, and lets the peer
// write there. in describes the half that receives, which gets its addresses; out the
// one that sends, which gets that of its credits, so many words.
func (l *Link) allocate(in, out *half, creditWords uint32, o *Options) error {
	var need uint64
	if in != nil {
		in.arrange()
		need += in.memory()
	}
	if out != nil {
		need += uint64(creditWords) * wordSize
	}
	need = max(need, leastMemory)
	var err error
	if l.memory, err = l.peer.take(need); err != nil {
		return err
	}
	at := uint32(l.memory.At)
	if in != nil {
		n := in.Buffers * in.Pitch
		in.Data, in.Flags = at, at+n
		data := l.host.block.Bytes(space.Span{At: l.memory.At, N: uint64(n)})
		if l.plain {
			clear(data) // nothing tells whether all of a message came
		}
		l.In = newConsumer(l, in, data)
		l.In.handle = o.Handle
		at = in.Flags + in.Buffers*in.FlagPitch
	}
	if out != nil {
		out.Credit = at
		l.Out = newProducer(l, o)
		l.Out.words = wordsAt(at, creditWords, wordSize)
	}
	l.peer.grants.Add(l.memory, l)
	return nil
}

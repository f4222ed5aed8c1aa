package link

import (
	"context"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Close ends the link. Messages that were sent arrive, and end of file after them. What was received
// and is not yet read is lost. Views of messages are void, except in a loop over [Consumer.Messages]:
// another link may have their memory.
//
// Close waits until all is acknowledged or the peer is dead, but not for a peer that takes nothing:
// when for a minute no buffer came back and nothing was acknowledged, the error is [ErrNoAnswer], and
// the link is over all the same. Its peer then reads what has arrived, and ErrPeerClosed in place of
// end of file.
func (l *Link) Close() error {
	if l.Out == nil {
		return l.CloseContext(context.Background())
	}
	ctx, stop := l.Out.whileTaken()
	defer stop()
	return l.CloseContext(ctx)
}

// CloseContext is Close that waits no longer than the context, and then ends the link all the same.
func (l *Link) CloseContext(ctx context.Context) error {
	var err error
	if l.Out != nil {
		err = l.Out.CloseContext(ctx)
	}
	l.fail(ErrClosed)
	l.setClosed()
	return err
}

// Abort ends the link early. What was sent and what was received may be lost. At the peer everything
// fails, once it has received what was delivered before, with an [*AbortError] that holds the reason,
// of which at most 256 bytes. It needs no free buffer. Abort waits until the peer has been told, but
// no longer than the context; then the error is the context's cause.
func (l *Link) Abort(ctx context.Context, why string) error {
	l.endEarly(why)
	l.host.waitFor(ctx, l.notified)
	switch {
	case l.hasNotified():
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return l.host.ep.Err()
}

// endEarly ends the link with a reason for the peer, and does not wait.
func (l *Link) endEarly(why string) {
	l.mu.Lock()
	if l.reason == "" {
		l.reason = bounded(why)
	}
	l.mu.Unlock()
	l.fail(ErrClosed)
	l.setClosed()
}

// setClosed notes that the application has ended the link.
func (l *Link) setClosed() {
	l.closed.Store(true)
	l.advance()
}

// hasNotified reports whether the peer has been told of the end, or can never be.
func (l *Link) hasNotified() bool { return isClosed(l.notified) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// advance takes the next steps to the end.
//
// When either side has ended the link, and nothing of this side is in flight, the peer is told. When
// this side has ended it, and no goroutine copies from the memory, the memory is given back: for links
// of any peer if this one has ended the link too, or is gone; otherwise for links of other peers until
// it has.
func (l *Link) advance() {
	l.mu.Lock()
	if !l.mustNotPost() || l.pending.Load() > 0 || l.released {
		l.mu.Unlock()
		return
	}
	first := !l.sentClose
	l.sentClose = true
	tell := first && !l.peerGone && !l.plain
	through := l.peerClosed || l.peerGone
	over := l.closed.Load() && l.readers.Load() == 0 && (through || !l.plain)
	l.released = over
	why := l.reason
	l.mu.Unlock()
	switch {
	case tell:
		l.sendClose(why)
	case first:
		close(l.notified) // the peer cannot be told
	}
	l.revokeGrant()
	if l.Out != nil {
		l.Out.share.Close()
	}
	if !over {
		return // of a plain link, until the connection ends: a write may be in flight
	}
	l.peer.retire(l, through)
	l.host.registry.remove(l)
	if !through {
		l.recheckEnded()
	}
	l.host.ep.AfterBatch(func() {
		for _, s := range l.spans() {
			l.host.block.Give(s)
		}
	})
}

// recheckEnded frees what is kept of an ended link whose peer ended it, or was gone, while advance
// ran.
func (l *Link) recheckEnded() {
	l.mu.Lock()
	through := l.released && (l.peerClosed || l.peerGone)
	l.mu.Unlock()
	if through {
		l.peer.confirmed(l.number, l.attempt)
	}
}

// sendClose tells the peer, once, that nothing is posted any more, and why if that is early.
func (l *Link) sendClose(why string) {
	l.mu.Lock()
	c := letter{kind: letterClose, hadAll: l.In != nil && l.In.hasAll(), from: l.number, to: l.remoteNumber, attempt: l.attempt, text: why}
	l.mu.Unlock()
	l.peer.post(addressed{letter: c, life: l.life, done: func(error) { close(l.notified) }})
}

// revokeGrant keeps the peer from writing any more.
func (l *Link) revokeGrant() {
	for _, s := range l.spans() {
		l.peer.grants.Remove(s.At, l)
	}
}

// setPeerGone notes that the peer's life is over.
func (l *Link) setPeerGone() {
	l.mu.Lock()
	l.peerGone = true
	l.mu.Unlock()
	l.revokeGrant()
	l.cancelPendingEnd()
	l.advance()
	l.recheckEnded()
}

// connectionLost notes that the connection has ended, which need not have been an event.
func (l *Link) connectionLost() {
	err := l.peer.conn.Err()
	if err == nil {
		err = dgrdma.ErrReset // and made again
	}
	l.fail(err)
	l.setPeerGone()
}

// takeClose notes that the peer posts nothing more for this link. why is its reason if that is early;
// hadAll says whether it had all that was sent.
func (l *Link) takeClose(why string, hadAll bool) {
	if hadAll && l.Out != nil {
		l.Out.peerHasAll.Store(true)
	}
	l.mu.Lock()
	again := l.peerClosed
	l.peerClosed = true
	l.mu.Unlock()
	switch {
	case again: // to look at all buffers takes longer than to send the letter
	case why != "":
		l.fail(&AbortError{Reason: printable(why)})
	case l.In == nil || !l.In.hasAll():
		l.fail(ErrPeerClosed)
	}
	if l.Out != nil {
		l.fail(ErrPeerClosed)
	}
	l.peerTakesNothing.Store(true)
	l.cancelPendingEnd()
	l.advance()
	l.recheckEnded()
}

// undelivered ends the link of a letter that did not arrive: the peer's life is over.
func (p *peer) undelivered(l *letter, err error) {
	if x := p.link(l.from); x != nil {
		x.fail(err)
		x.setPeerGone()
	} else {
		p.confirmed(l.from, l.attempt)
	}
}

// Finish is Close that does not wait: what was sent arrives, and end of file after it, while the host
// is open. Nothing can be sent or received from now on. Host.Shutdown waits for it.
func (l *Link) Finish() error {
	l.finishing.Store(true)
	if l.Out != nil {
		l.Out.Finish()
	}
	l.fail(ErrClosed)
	l.conclude()
	return nil
}

// conclude ends a link on which Finish was called, once end of file is in flight.
func (l *Link) conclude() {
	if l.finishing.Load() && (l.Out == nil || !l.Out.endPending.Load() && !l.Out.endPosting.Load()) {
		l.setClosed()
	}
}

// cancelPendingEnd drops an end of file that waits for a buffer: the peer takes nothing any more.
func (l *Link) cancelPendingEnd() {
	if l.Out != nil && l.Out.endPending.Swap(false) {
		l.Out.waiting.Rouse() // a goroutine that waits in Flush
	}
	l.conclude()
}

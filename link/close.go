package link

import (
	"context"
	"fmt"
	"time"
)

// closeWait is how long Close waits while the peer takes nothing. Arbitrary: long for a reader that
// pauses, and an end for a program that would wait for ever.
const closeWait = time.Minute

// Close sends end of file and waits until all is acknowledged, for as long as the peer goes on. When
// for a minute no buffer came back and nothing was acknowledged, the error is ErrNoAnswer, and end of
// file may not have been sent. CloseContext waits as long as its context says.
func (p *Producer) Close() error {
	if p == nil {
		return ErrNoHalf
	}
	ctx, stop := p.whileTaken()
	defer stop()
	return p.CloseContext(ctx)
}

// whileTaken returns a context that ends when the peer has taken nothing for closeWait.
func (p *Producer) whileTaken() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		tick := time.NewTicker(closeWait)
		defer tick.Stop()
		for seen := p.progress(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			before := seen
			if seen = p.progress(); seen == before {
				cancel(p.link.wrap("close", fmt.Errorf("%w: for %v nothing was acknowledged and no buffer came back; CloseContext can wait longer", ErrNoAnswer, closeWait)))
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// progress grows with each message that is acknowledged, and with each buffer that comes back.
func (p *Producer) progress() uint64 { return p.done.Load() + p.returned.Load() }

// CloseContext is Close that waits no longer than the context. With a context that is done, end of
// file is sent if a buffer is free, and not awaited. A buffer that was acquired and not committed is
// forgotten.
func (p *Producer) CloseContext(ctx context.Context) error {
	if p == nil {
		return ErrNoHalf
	}
	if err := p.token.take(ctx); err != nil {
		return err
	}
	defer p.token.give()
	p.mu.Lock()
	again := p.closed.Load()
	p.cancelAcquired()
	p.mu.Unlock()
	if again {
		return p.flush(ctx)
	}
	b, err := p.acquireEnd(ctx)
	if err == nil {
		err = p.commit(b, PackFlag(0, 0, true))
	}
	p.mu.Lock()
	p.closed.Store(true)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.flush(ctx)
}

// acquireEnd returns a buffer for end of file, also with a context that is done if one is free.
func (p *Producer) acquireEnd(ctx context.Context) (Buffer, error) {
	if p.hasLayout.Load() && p.link.failure() == nil {
		p.mu.Lock()
		b, ok := p.takeNext(0)
		p.mu.Unlock()
		if ok {
			return b, nil
		}
	}
	return p.acquire(ctx, 0)
}

// cancelAcquired takes back the buffers that were acquired and not committed. Their memory is not for
// other messages: the application may still write to it. Guarded by mu.
func (p *Producer) cancelAcquired() {
	for p.acquired.Load() != p.committed.Load() {
		s := p.ring.at(p.acquired.Add(^uint64(0)))
		if c := s.chunk; c != nil {
			s.chunk = nil
			p.share.Forget(c)
		}
		s.busy.Store(false)
	}
	p.checkIdle()
}

// Finish sends end of file after what was sent, and does not wait. It is sent at once, or as soon as
// the consumer gives a buffer back if none is free. A goroutine that waits for a buffer gets
// ErrClosed. Flush waits for what Finish leaves in flight.
func (p *Producer) Finish() error {
	if p == nil {
		return ErrNoHalf
	}
	p.mu.Lock()
	if !p.closed.Swap(true) {
		p.cancelAcquired()
		p.endPending.Store(p.link.failure() == nil) // otherwise the peer would not take it
	}
	p.mu.Unlock()
	p.sendEnd()
	p.waiting.Rouse()
	return nil
}

// sendEnd sends a pending end of file, if there is a buffer for it.
func (p *Producer) sendEnd() {
	if !p.endPending.Load() {
		return
	}
	p.mu.Lock()
	k := p.acquired.Load()
	fits := p.endPending.Load() && k-p.returned.Load() < p.buffers.Load() && p.ring.take(k, 0) != nil
	if fits {
		p.endPosting.Store(true)  // before endPending, because conclude looks here once that is false
		p.endPending.Store(false) // before post, which calls sendEnd if the link has failed
		p.acquired.Store(k + 1)
		p.post(k, PackFlag(0, 0, true)) // an error is the link's, too
		p.endPosting.Store(false)
	}
	p.mu.Unlock()
	if fits {
		p.link.conclude()
	}
}

package link

import "context"

// Close sends end of file and waits until all is acknowledged.
func (p *Producer) Close() error { return p.CloseContext(context.Background()) }

// CloseContext is Close that waits no longer than the context: if that is done, end of
// file is sent where a buffer is free, and not awaited. A buffer that was acquired and
// not committed is forgotten.
func (p *Producer) CloseContext(ctx context.Context) error {
	if p == nil {
		return ErrNoHalf
	}
	if err := p.turn.take(ctx); err != nil {
		return err
	}
	defer p.turn.give()
	p.mu.Lock()
	again := p.closed.Load()
	p.forget()
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
	if p.begun.Load() && p.link.failed() == nil {
		p.mu.Lock()
		b, ok := p.next(0)
		p.mu.Unlock()
		if ok {
			return b, nil
		}
	}
	return p.acquire(ctx, 0)
}

// forget takes back the buffers that were acquired and not committed. Their memory is not for
// other messages: the application may still write to it. Guarded by mu.
func (p *Producer) forget() {
	for p.acquired.Load() != p.committed.Load() {
		s := p.ring.at(p.acquired.Add(^uint64(0)))
		if c := s.chunk; c != nil {
			s.chunk = nil
			p.give(int64(len(c.bytes)))
		}
		s.busy.Store(false)
	}
}

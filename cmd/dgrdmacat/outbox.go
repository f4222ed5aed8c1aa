package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/link"
)

// outbox sends messages by links from the goroutine that receives, which must not wait. What
// finds no free buffer is kept until there is one: for each link as many messages as it has
// buffers to receive, so that all together take no more than the host's memory.
type outbox struct {
	kept atomic.Int32 // of all links

	mu sync.Mutex
	of map[*link.Link]*backlog // present while a goroutine sends what is in it
}

// backlog is what is kept for a link, the oldest first.
type backlog struct{ waiting []kept }

// kept is a message that waits for a buffer.
type kept struct {
	opcode uint8
	body   []byte
}

// send sends what fill writes, in as many bytes. Where as many messages are kept for the link as
// may be it drops this one, as a wire would that is too slow for them: the link goes on.
func (o *outbox) send(l *link.Link, opcode uint8, size int, fill func(b []byte) int) {
	if o.kept.Load() == 0 && trySend(l, opcode, fill) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.of[l]
	if b == nil {
		if trySend(l, opcode, fill) || l.Err() != nil {
			return
		}
		if o.of == nil {
			o.of = make(map[*link.Link]*backlog)
		}
		b = new(backlog)
		o.of[l] = b
		go o.sendKept(l, b)
	}
	if most, _ := l.In.Buffers(); len(b.waiting) >= most {
		return
	}
	k := kept{opcode, make([]byte, size)}
	fill(k.body)
	b.waiting = append(b.waiting, k)
	o.kept.Add(1)
}

func trySend(l *link.Link, opcode uint8, fill func(b []byte) int) (ok bool) {
	b, ok := l.Out.TryAcquire()
	if ok {
		l.Out.Commit(b, opcode, fill(b.Bytes))
	}
	return ok
}

// sendKept sends what is kept for a link, until nothing is.
func (o *outbox) sendKept(l *link.Link, b *backlog) {
	for {
		o.mu.Lock()
		if len(b.waiting) == 0 || l.Err() != nil {
			o.kept.Add(-int32(len(b.waiting)))
			delete(o.of, l)
			o.mu.Unlock()
			return
		}
		k := b.waiting[0]
		o.mu.Unlock()
		l.Out.Send(context.Background(), k.opcode, k.body) // of an error, the link knows
		o.mu.Lock()
		b.waiting = b.waiting[1:]
		o.kept.Add(-1)
		o.mu.Unlock()
	}
}

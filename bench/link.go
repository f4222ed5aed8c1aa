package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/link"
)

// The ports of [ServeLinks]: messages are looked at where they arrive, a stream is
// copied.
const (
	MessagePort = "bench"
	StreamPort  = "bench-stream"
)

// LinkServer is the side that links send to.
type LinkServer struct {
	wrong atomic.Uint64 // messages that were not the next one
	ended chan error    // of each link
}

// ServeLinks opens the ports at a host and receives from whoever dials them, until the
// context ends.
func ServeLinks(ctx context.Context, h *link.Host) (*LinkServer, error) {
	s := &LinkServer{ended: make(chan error)}
	for _, name := range []string{MessagePort, StreamPort} {
		opt := &link.Options{}
		if name == MessagePort {
			opt.Handle = s.check
		}
		port, err := h.Listen(name, opt)
		if err != nil {
			return nil, err
		}
		go func() {
			for {
				l, err := port.Accept(ctx)
				if err != nil {
					return
				}
				go s.receive(ctx, l)
			}
		}()
	}
	return s, nil
}

// Ended tells how each link ended, one after the other.
func (s *LinkServer) Ended() <-chan error { return s.ended }

func (s *LinkServer) check(_ *link.Link, m link.Message) {
	if len(m.Bytes) >= 8 && binary.LittleEndian.Uint64(m.Bytes) != m.Number {
		s.wrong.Add(1)
	}
}

func (s *LinkServer) receive(ctx context.Context, l *link.Link) {
	var err error
	if l.Port() == StreamPort {
		_, err = io.Copy(io.Discard, l.In)
	} else if _, err = l.In.Recv(ctx); err == io.EOF {
		err = nil
	}
	err = cmp.Or(err, l.Close())
	if n := s.wrong.Swap(0); n > 0 {
		err = errors.Join(fmt.Errorf("messages that were not those that were sent: %d", n), err)
	}
	select {
	case s.ended <- err:
	case <-ctx.Done():
	}
}

// DialLink dials a server of links and prepares a load on the link: messages of that size,
// or with stream what io.Copy makes of them. Draining the load closes the link.
func DialLink(ctx context.Context, h *link.Host, peerURL string, stream bool, buffers, size int) (*link.Link, *Load, error) {
	port := MessagePort
	if stream {
		port = StreamPort
	}
	l, err := h.Dial(ctx, peerURL, port, &link.Options{Buffers: buffers, Size: size})
	if err != nil {
		return nil, nil, err
	}
	if !stream {
		return l, NewLoad(oneSlot(size), &messages{ctx: ctx, link: l, size: size}, nil), nil
	}
	_, size = l.Out.Buffers()
	c := &copied{link: l}
	c.load = NewLoad(oneSlot(size), c, nil)
	return l, c.load, nil
}

// oneSlot is a plan for a poster that blocks while it has no room, so that one slot is enough.
func oneSlot(size int) Plan { return Plan{Size: uint32(size), Depth: 1, Peers: 1, Active: 1} }

// messages posts operations as messages. It fills nothing but the number: buffers hold
// what they held.
type messages struct {
	ctx  context.Context
	link *link.Link
	size int
	n    uint64
}

func (p *messages) Post(*Op) (complete bool, err error) {
	b, err := p.link.Out.Acquire(p.ctx)
	switch {
	case p.ctx.Err() != nil:
		return false, ErrInterrupted
	case err != nil:
		return false, err
	}
	if p.size >= 8 {
		binary.LittleEndian.PutUint64(b.Bytes, p.n)
	}
	p.n++
	return true, p.link.Out.Commit(b, 0, p.size)
}

func (p *messages) Wait(ctx context.Context) error { return p.link.CloseContext(ctx) }

// copied posts the first operation, and all that follow it until the load is over, as
// what io.Copy reads: of each read one.
type copied struct {
	link   *link.Link
	load   *Load
	op     *Op
	read   bool          // op was, and is complete with the next read
	memory [1 << 18]byte // copied from, as a file in the cache is
}

func (p *copied) Post(op *Op) (complete bool, err error) {
	p.op, p.read = op, false
	_, err = io.Copy(p.link.Out, p)
	return true, err
}

func (p *copied) Read(b []byte) (int, error) {
	if p.read {
		if !p.load.running.Load() {
			return 0, io.EOF
		}
		p.load.count(p.op)
		p.load.begin(p.op)
	}
	p.read = true
	n := 0
	for n < len(b) {
		n += copy(b[n:], p.memory[:])
	}
	return n, nil
}

func (p *copied) Wait(ctx context.Context) error { return p.link.CloseContext(ctx) }

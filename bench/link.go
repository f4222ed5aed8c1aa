package bench

import (
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
	if n := s.wrong.Swap(0); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages were not those that were sent", n))
	}
	err = errors.Join(err, l.Close())
	select {
	case s.ended <- err:
	case <-ctx.Done():
	}
}

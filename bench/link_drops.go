package bench

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// DropsPort is where a server of links tells whoever dials what its kernel dropped: a message of eight bytes, and its end.
const DropsPort = "bench-drops"

// dropsBytes is the length of that message.
const dropsBytes = 8

// kernelDrops is what the kernel dropped of what came to an endpoint, since that was opened.
func kernelDrops(e *dgrdma.Endpoint) uint64 { return e.Stats().Transport.KernelDrops }

// serveDrops answers at [DropsPort] until the context ends.
func (s *LinkServer) serveDrops(ctx context.Context, h *link.Host) error {
	port, err := h.Listen(DropsPort, &link.Options{Directions: link.Send})
	if err != nil {
		return err
	}
	go func() {
		for {
			l, err := port.Accept(ctx)
			if err != nil {
				return
			}
			if b, free := l.Out.TryAcquire(); free && len(b.Bytes) >= dropsBytes {
				binary.LittleEndian.PutUint64(b.Bytes, kernelDrops(s.ep))
				l.Out.Commit(b, 0, dropsBytes)
			}
			l.Finish() // who does not take it holds up nobody
		}
	}()
	return nil
}

// ServerDrops asks a server of links how many datagrams its kernel has dropped, of all that came to its host. An older server
// does not know: the error is then [link.ErrRefused].
func ServerDrops(ctx context.Context, h *link.Host, peerURL string) (uint64, error) {
	l, err := h.Dial(ctx, peerURL, DropsPort, &link.Options{Directions: link.Receive, Buffers: 2, Size: dropsBytes})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	m, err := l.In.Recv(ctx)
	switch {
	case err != nil:
		return 0, err
	case len(m.Bytes) != dropsBytes:
		return 0, fmt.Errorf("port %q sent %d bytes, and not %d", DropsPort, len(m.Bytes), dropsBytes)
	}
	return binary.LittleEndian.Uint64(m.Bytes), nil
}

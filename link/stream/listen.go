package stream

import (
	"context"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// Listener accepts streams at a port.
type Listener struct {
	port *link.Listener
	opt  Options
}

// Listen opens a port for streams.
func Listen(h *link.Host, opt *Options) (*Listener, error) {
	l := &Listener{opt: opt.or()}
	var err error
	l.port, err = h.Listen(l.opt.Port, &link.Options{
		Directions: link.Both, Buffers: buffers, Size: bufferSize, Private: l.opt.hello(Unknown), Filter: l.filter,
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// filter returns the reason for which a dialer is refused.
func (l *Listener) filter(peer dgrdma.PeerName, private []byte) error {
	remote, err := parseHello(private)
	if err == nil && l.opt.Filter != nil {
		err = l.opt.Filter(peer, remote.duplex)
	}
	if err != nil && l.opt.Refused != nil {
		l.opt.Refused(peer, err)
	}
	return err
}

// Accept waits for a stream. It is the caller's, which moves it or aborts it.
func (l *Listener) Accept(ctx context.Context) (*Stream, error) {
	x, err := l.port.Accept(ctx)
	if err != nil {
		return nil, err
	}
	remote, _ := parseHello(x.Private()) // filter has read it
	return &Stream{link: x, duplex: remote.duplex, checksum: l.opt.Checksum || remote.checksum, size: remote.size}, nil
}

// Refuse has all streams refused that are dialed from now on, with a reason. An empty reason ends
// that.
func (l *Listener) Refuse(why string) { l.port.Refuse(why) }

// Close closes the port. Streams that were accepted go on.
func (l *Listener) Close() error { return l.port.Close() }

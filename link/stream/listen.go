package stream

import (
	"context"

	"github.com/dgrdma/dgrdma/link"
)

// Listener accepts streams at a port.
type Listener struct {
	port *link.Listener
	opt  Options
}

// Listen opens a port for streams.
func Listen(h *link.Host, opt *Options) (*Listener, error) {
	o := opt.or()
	port, err := h.Listen(o.Port, &link.Options{Directions: link.Both, Buffers: buffers, Size: bufferSize, Private: o.hello(Unknown)})
	if err != nil {
		return nil, err
	}
	return &Listener{port, o}, nil
}

// Accept waits for a stream. It is the caller's, which moves it or aborts it. Who
// dials and speaks no streams is sent away.
func (l *Listener) Accept(ctx context.Context) (*Stream, error) {
	for {
		x, err := l.port.Accept(ctx)
		if err != nil {
			return nil, err
		}
		theirs, err := parseHello(x.Private())
		s := &Stream{link: x, duplex: theirs.duplex, checksum: l.opt.Checksum || theirs.checksum, size: theirs.size}
		if err == nil {
			return s, nil
		}
		if l.opt.Refused != nil {
			l.opt.Refused(x.Peer().Name(), err)
		}
		go s.Abort(err)
	}
}

// Refuse sends away everyone who dials from now on, with a reason; an empty one lets
// them in again.
func (l *Listener) Refuse(why string) { l.port.Refuse(why) }

// Close closes the port. Streams that were accepted go on.
func (l *Listener) Close() error { return l.port.Close() }

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
		Directions: link.Both, Buffers: buffers, Size: bufferSize, Private: l.opt.hello(Unknown), Vet: l.vet,
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// vet returns why who dials is refused.
func (l *Listener) vet(peer dgrdma.PeerName, private []byte) error {
	theirs, err := parseHello(private)
	if err == nil && l.opt.Vet != nil {
		err = l.opt.Vet(peer, theirs.duplex)
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
	theirs, _ := parseHello(x.Private()) // which vet has read
	return &Stream{link: x, duplex: theirs.duplex, checksum: l.opt.Checksum || theirs.checksum, size: theirs.size}, nil
}

// Refuse sends away everyone who dials from now on, with a reason; an empty one lets
// them in again.
func (l *Listener) Refuse(why string) { l.port.Refuse(why) }

// Close closes the port. Streams that were accepted go on.
func (l *Listener) Close() error { return l.port.Close() }

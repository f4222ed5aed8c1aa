package netconn

import (
	"context"
	"net"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// DefaultBuffers and DefaultSize are what one side of a connection receives into by default: a quarter
// of a megabyte. Links have sixteen times as much, but connections are many and mostly idle. The
// buffers are many and short, because most Writes are. With 16 of 16 KiB credits are sent so often
// that a round trip takes twice as long, for a fourth more throughput.
const (
	DefaultBuffers = 64
	DefaultSize    = 4 << 10
)

// Options are what one side of a connection receives into. The zero value is good.
type Options struct {
	// Buffers and Size are how many buffers there are, and how many bytes each has. 0 means
	// [DefaultBuffers], and more as a far path needs them, and [DefaultSize].
	Buffers, Size int
}

// hello is the private data of both sides when the link is made.
var hello = []byte("netconn 1")

// options returns the options of the link.
func (o Options) options() *link.Options {
	x := &link.Options{Directions: link.Both, Buffers: o.Buffers, Size: o.Size, KeepForEnd: true, Private: hello, Filter: filter}
	if x.Buffers == 0 {
		x.Buffers, x.Grow = DefaultBuffers, true
	}
	if x.Size == 0 {
		x.Size = DefaultSize
	}
	return x
}

// filter refuses peers that do not say hello.
func filter(_ dgrdma.PeerName, private []byte) error {
	if string(private) != string(hello) {
		return ErrForeign
	}
	return nil
}

var _ net.Listener = (*Listener)(nil)

// Listener accepts connections at a port.
type Listener struct {
	host *link.Host
	port *link.Listener
	addr Addr
}

// Listen opens a port of a host for connections. nil options mean the zero value.
func Listen(h *link.Host, port string, opt *Options) (*Listener, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	addr := Addr{Endpoint: here(h), Port: port}
	err := checkPort(port)
	var p *link.Listener
	if err == nil {
		p, err = h.Listen(port, o.options())
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: Network, Addr: addr, Err: err}
	}
	return &Listener{host: h, port: p, addr: addr}, nil
}

// Accept implements [net.Listener]. Its connections are [*Conn].
func (l *Listener) Accept() (net.Conn, error) {
	for {
		x, err := l.port.Accept(context.Background())
		if err != nil {
			return nil, &net.OpError{Op: "accept", Net: Network, Addr: l.addr, Err: err}
		}
		if x.In == nil || x.Out == nil {
			x.Finish() // a peer that says hello and has one half is no peer of this package
			continue
		}
		return newConn(x, Addr{Endpoint: hereTo(l.host, x.Peer()), Port: l.addr.Port}, Addr{Endpoint: there(x.Peer()), Port: number(x.PeerNumber())}), nil
	}
}

// Close implements [net.Listener]: calls that wait in Accept get net.ErrClosed. Connections that were
// accepted stay. It may be called again.
func (l *Listener) Close() error { return l.port.Close() }

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return l.addr }

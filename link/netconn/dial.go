package netconn

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/dgrdma/dgrdma/link"
)

// Dialer makes connections from a host.
type Dialer struct {
	Host *link.Host
	Options
	// Lookup, if not nil, returns the endpoint string for the name in an address: all that is before the
	// last colon. An empty string says that the name is unknown: the error is then a [net.DNSError] that
	// says so.
	Lookup func(ctx context.Context, name string) (endpoint string, err error)
}

// Dial is DialContext without a context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to an address, and waits until the listener has accepted. Without a deadline it
// waits for as long as a silent peer counts as alive. The network is [Network], or "tcp", because
// net/http and others say so. The connection is a [*Conn]; the context has no effect on it.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var to net.Addr = name(address)
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: Network, Addr: to, Err: known("dial", err)}
	}
	if network != Network && network != "tcp" {
		return fail(fmt.Errorf("%w: need %q or \"tcp\"", net.UnknownNetworkError(network), Network))
	}
	remote, err := split(address)
	if err != nil {
		return fail(err)
	}
	if d.Lookup != nil {
		asked := remote.Endpoint
		if remote.Endpoint, err = d.Lookup(ctx, asked); err != nil {
			return fail(err)
		}
		if remote.Endpoint == "" { // as a map returns it
			return fail(&net.DNSError{Err: "no endpoint string is known for that name", Name: asked, IsNotFound: true})
		}
	}
	to = remote
	x, err := d.Host.Dial(ctx, remote.Endpoint, remote.Port, d.options())
	if err != nil {
		return fail(err)
	}
	if err := filter(x.Peer().Name(), x.Private()); err != nil {
		x.Finish()
		return fail(err)
	}
	return newConn(x, Addr{Endpoint: hereTo(d.Host, x.Peer()), Port: number(x.Number())}, remote), nil
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// name is an address that is not parsed yet.
type name string

// Network implements [net.Addr].
func (name) Network() string { return Network }

// String implements [net.Addr].
func (n name) String() string { return string(n) }

package rpc

import (
	"net"

	"github.com/dgrdma/dgrdma/xdr"
)

// Call is one call at the server. It is valid until [Handler.ServeRPC] returns.
type Call struct {
	Program   *Program
	Procedure uint32
	XID       uint32 // as captures and logs name the call; another one of the same or another client may have it too
	Auth      Auth   // its body is part of the message

	dec     xdr.Decoder // of the message; after the header when the handler gets it
	enc     xdr.Encoder // of the reply
	peer    peer
	buffers []*memory
	sent    []func()
}

// overTCP is what [Call.Transport] says of a connection without RDMA.
const overTCP = "tcp"

// peer is what a handler may know of a connection.
type peer interface {
	RemoteAddr() net.Addr
	transport() string
	caller() *Client
}

// Decode decodes the arguments. ServeRPC returns its error as it is. What args keeps of the message, as
// an opaque does, is valid until ServeRPC returns, or until the reply is sent if it is part of that.
func (c *Call) Decode(args xdr.Unmarshaler) error {
	args.UnmarshalXDR(&c.dec)
	return c.dec.Done()
}

// Args returns the decoder of the arguments, for handlers that decode without a type.
func (c *Call) Args() *xdr.Decoder { return &c.dec }

// Reply encodes the results, and returns nil: a handler ends with it. Items that the results have by
// reference may not change until [Call.Sent] tells so.
func (c *Call) Reply(results xdr.Marshaler) error {
	results.MarshalXDR(&c.enc)
	return nil
}

// Results returns the encoder of the results, for handlers that encode without a type.
func (c *Call) Results() *xdr.Encoder { return &c.enc }

// Buffer returns n octets of memory for an item of the results: the server takes them back when the
// reply has been sent. They are not cleared.
func (c *Call) Buffer(n int) []byte {
	m := takeMemory(n)
	c.buffers = append(c.buffers, m)
	return m.b[:n:n]
}

// Sent has f called when nothing of the results is needed any more: the reply has been sent, or the
// connection is lost. It is called once, by any goroutine, and may not block.
func (c *Call) Sent(f func()) { c.sent = append(c.sent, f) }

// RemoteAddr returns the address of the caller.
func (c *Call) RemoteAddr() net.Addr { return c.peer.RemoteAddr() }

// Client returns what calls programs of the caller, over the connection of this call: the reverse direction. It is nil unless
// [ServerOptions.Callbacks] is set. All calls of a connection have the same one, and the program may keep it. When the
// connection ends, its calls fail with [ErrLost] or [ErrEnded]: a caller that connects again gets another one with its
// next call. In handlers of [ClientOptions.Callbacks] it is the client itself.
func (c *Call) Client() *Client { return c.peer.caller() }

// Transport returns how the call came: "tcp", "rdma v1" or "rdma v2".
func (c *Call) Transport() string { return c.peer.transport() }

// free gives back what the reply needed.
func (c *Call) free() {
	for i, f := range c.sent {
		c.sent[i] = nil
		f()
	}
	for i, m := range c.buffers {
		c.buffers[i] = nil
		m.release()
	}
	c.sent, c.buffers = c.sent[:0], c.buffers[:0]
}

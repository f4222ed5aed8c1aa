package rpc

import (
	"context"
	"net"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// ClientOptions are what a [Client] can be told. The zero value is usual.
type ClientOptions struct {
	// Credits is how many calls the server may have at once. Others wait. 0: 64.
	Credits int
	// MaxReply is the length of the longest reply, with its header. 0: 1 MiB and 64 KiB.
	MaxReply int
	// Timeout is for how long nothing may come of the server while calls wait for replies. Then the
	// connection counts as lost. 0: one minute. Below 0: without end.
	Timeout time.Duration
	// Resend says that the server keeps its replies (it has a duplicate cache). Then calls of
	// procedures that are not idempotent are sent again after a reconnect as well.
	Resend bool
	// NoReconnect leaves a lost connection lost.
	NoReconnect bool
	// Dial makes the connections, for TLS as an example. nil: those of package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client calls programs of one server, over one connection at a time. All methods may be called by many
// goroutines.
type Client struct{}

// Dial connects to a server: "tcp:HOST:PORT". When the connection is lost later, the next call, or those
// that wait for replies, make it again.
func Dial(ctx context.Context, address string, o *ClientOptions) (*Client, error) {
	return nil, ErrClosed
}

// NewClient returns a client over a connection, as of TLS or of net.Pipe. When it is lost, the client is at its end.
func NewClient(nc net.Conn, o *ClientOptions) *Client { return &Client{} }

// Close ends the connection, and the calls that wait.
func (c *Client) Close() error { return nil }

// Bind returns what calls the procedures of p with the credential a.
func (c *Client) Bind(p *Program, a Auth) *Binding { return &Binding{c, p} }

// Binding calls the procedures of one program.
type Binding struct {
	client  *Client
	program *Program
}

// CallOptions are what one call can be told.
type CallOptions struct {
	// Into is where the item goes that the results have by reference (the data of a READ): what
	// [xdr.Decoder.Bulk] returns there is part of it. It has room for the longest one. When Call returns,
	// nothing writes to it any more, whatever the outcome is.
	Into []byte
	// MaxResults bounds the encoded results, without that item. 0: as [Procedure.MaxResults] says.
	MaxResults int
}

// Call calls a procedure, and decodes its results. nil stands for arguments or results that are void, and for
// usual options.
//
// When ctx ends, Call returns its error: the server may carry the call out nevertheless. Whatever the
// outcome is, nothing reads args or writes to Into after Call has returned. Errors are [CallError]; those within it are ctx's,
// [ErrLost], [ErrProcedureUnavailable], [ErrGarbageArgs], [ErrSystem], [ErrTooLong], [ErrClosed],
// [ProgramError], [AuthError], [VersionError], and an [xdr.Error] if the results could not be decoded.
//
// What results keep of the message, as an opaque does, is theirs for good.
func (b *Binding) Call(ctx context.Context, procedure uint32, args xdr.Marshaler, results xdr.Unmarshaler, o *CallOptions) error {
	return &CallError{b.program, procedure, "", ErrClosed}
}

package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// Binding calls the procedures of one program with one credential.
type Binding struct {
	client  *Client
	program *Program
	header  []byte // of its calls
}

// atProcedure is where the procedure is in the header of a call. The XID is at its beginning.
const atProcedure = 20

// Bind returns what calls the procedures of p with the credential a.
func (c *Client) Bind(p *Program, a Auth) *Binding {
	h := callHeader{program: p.Number, version: p.Version, credential: a}
	var e xdr.Encoder
	h.append(&e)
	return &Binding{c, p, e.Bytes()}
}

// CallOptions are what one call can be told. The zero value is usual.
type CallOptions struct {
	// Into is where the item goes that the results have by reference (the data of a READ): what
	// [xdr.Decoder.Bulk] returns for it is part of Into. Results with a longer one are [ErrTooLong].
	Into []byte
	// Direct says that over RDMA the server itself reads the items of the arguments and writes into Into. Otherwise memory of the
	// client's is used for that, and copied. With Direct, a call whose context ends waits for its reply, or, after
	// [ClientOptions.Timeout], for the end of the connection: until then the server may use the caller's memory.
	Direct bool
	// MaxResults bounds the encoded results, without the item that goes into Into. Longer ones are [ErrTooLong]. 0: as
	// [Procedure.MaxResults] says, for all but items by reference: without Into, these may be as long as
	// [ClientOptions.MaxReply] allows.
	MaxResults int
}

// Call calls a procedure, and decodes its results. nil stands for arguments or results that are void, and for
// usual options.
//
// When ctx ends, Call returns its error; the server may carry the call out nevertheless. Whatever the
// outcome is, nothing reads args or writes to Into after Call has returned. To make sure of that, Call waits for a
// write of args in progress, and ends the connection if the server takes nothing of it for a second.
//
// Each error is a [CallError]. Within it are the error of ctx, [ErrLost], [ErrNoReply], [ErrProcedureUnavailable], [ErrGarbageArgs], [ErrSystem],
// [ErrTooLong], [ErrBulk], [ErrReply], [ErrClosed], a [ProgramError], [AuthError] or [VersionError], an [rpcrdma.PeerError] if a server over RDMA
// cannot take the call or send the reply, or an [xdr.Error] if the results cannot be decoded.
//
// What results keep of the message, as an opaque does, is theirs for good.
func (b *Binding) Call(ctx context.Context, procedure uint32, args xdr.Marshaler, results xdr.Unmarshaler, o *CallOptions) error {
	if err := b.call(ctx, procedure, args, results, o); err != nil {
		return &CallError{b.program, procedure, b.client.address, err}
	}
	return nil
}

func (b *Binding) call(ctx context.Context, procedure uint32, args xdr.Marshaler, results xdr.Unmarshaler, o *CallOptions) error {
	c := b.client
	if err := c.credit(ctx); err != nil {
		return err
	}
	defer func() { <-c.credits }()
	call := c.pool.Get().(*clientCall)
	call.procedure = b.program.procedure(procedure)
	call.maxResults = call.procedure.maxResults()
	if o != nil {
		call.into, call.direct = o.Into, o.Direct
		if o.MaxResults > 0 {
			call.maxResults = o.MaxResults
		}
	}
	call.anyLength = len(call.into) == 0 && (o == nil || o.MaxResults == 0) && call.procedure != nil && call.procedure.BulkResults > 0
	call.enc.Reset(append(call.enc.Bytes()[:0], b.header...))
	if args != nil {
		args.MarshalXDR(&call.enc)
	}
	call.out.inline, call.out.items = call.enc.Bytes(), call.enc.Items()
	binary.BigEndian.PutUint32(call.out.inline[atProcedure:], procedure)
	err := call.check()
	if err == nil {
		err = c.do(ctx, call)
	}
	if err == nil {
		err = call.take(results)
	}
	call.free(c)
	return err
}

// check holds the arguments, and the place for an item, against the table.
func (c *clientCall) check() error {
	args, results := c.procedure.bulk()
	switch n := len(c.out.items); {
	case uint64(messageLength(&c.out)) >= markLast:
		return errors.New("the arguments are longer than any message")
	case n > args:
		return tooManyItems("arguments", n, args)
	case len(c.into) > 0 && results == 0:
		return fmt.Errorf("%w: Into is given, and BulkResults is 0: raise it, and encode with Bulk what goes into Into", ErrBulk)
	}
	return nil
}

// tooManyItems is ErrBulk of arguments or results of the same fault.
func tooManyItems(what string, n, allowed int) error {
	option := "BulkArgs"
	if what == "results" {
		option = "BulkResults"
	}
	return fmt.Errorf("%w: %s with %d items by Bulk, and %s is %d: raise it, on both sides, or encode with Opaque", ErrBulk, what, n, option, allowed)
}

// clientCall is a call at the client. It is used again when it is done.
type clientCall struct {
	xid        uint32
	procedure  *Procedure // nil: it is not in the table
	into       []byte
	maxResults int
	enc        xdr.Encoder
	out        outgoing

	carrier  carrier // that has it; guarded by Client.mu
	repeated bool    // the server has refused it once; guarded by Client.mu
	direct   bool    // CallOptions.Direct
	lent     lent    // over RDMA
	// anyLength says that the results have an item by reference, without a place or a bound of its own.
	anyLength bool

	// done has one when the call has ended, with either a reply or an error.
	done  chan struct{}
	reply record
	items []xdr.Item // of the reply
	item  [1]xdr.Item
	err   error

	dec  xdr.Decoder
	busy bool // a connection may still need it
}

func newClientCall() any { return &clientCall{done: make(chan struct{}, 1)} }

// complete ends a call. It is called once, by what has taken the call from Client.calls.
func (c *clientCall) complete(reply record, items []xdr.Item, err error) {
	c.reply, c.items, c.err = reply, items, err
	c.done <- struct{}{}
}

// repeatable reports whether the call may be sent again.
func (c *clientCall) repeatable(o *ClientOptions) bool {
	return o.Resend || binary.BigEndian.Uint32(c.out.inline[atProcedure:]) == 0 || c.procedure != nil && c.procedure.Idempotent
}

// take decodes the reply.
func (c *clientCall) take(results xdr.Unmarshaler) error {
	c.dec.Reset(c.reply.b, c.items)
	var h replyHeader
	if err := h.take(&c.dec); err != nil {
		return err
	}
	if err := h.err(); err != nil || results == nil {
		return err
	}
	if c.reply.mem != nil || c.into != nil {
		c.dec.Detach(c.into)
	}
	begin := c.dec.Offset()
	results.UnmarshalXDR(&c.dec)
	err := c.dec.Done()
	items, inline := c.dec.Taken()
	if _, allowed := c.procedure.bulk(); items > allowed {
		return tooManyItems("results", items, allowed)
	}
	var invalid *xdr.Error
	switch errors.As(err, &invalid); {
	case err != nil && invalid.Long:
		return fmt.Errorf("%w: %w: give a longer Into", ErrTooLong, err)
	case err != nil:
		return fmt.Errorf("results that cannot be decoded: %w", err)
	}
	n := c.dec.Offset() - begin // without what follows the results (ONC-010)
	if len(c.into) > 0 {
		n -= inline
	}
	if n > c.maxResults && !c.anyLength {
		return fmt.Errorf("%w: results of %d octets, at most %d: raise MaxResults, of the procedure or of the call", ErrTooLong, n, c.maxResults)
	}
	return nil
}

// longReply is ErrTooLong of a reply of n octets, with its header.
func (c *clientCall) longReply(n, most int) error {
	if len(c.into) > 0 {
		return fmt.Errorf("%w: %d octets, at most %d and Into of %d: give a longer Into", ErrTooLong, n, most, len(c.into))
	}
	return fmt.Errorf("%w: %d octets, at most %d: raise ClientOptions.MaxReply", ErrTooLong, n, most)
}

// free gives back what the call needed.
func (c *clientCall) free(client *Client) {
	c.reply.mem.release()
	if c.busy {
		return // the garbage collector takes it
	}
	buffer := c.enc.Bytes()
	if cap(buffer) > keptBuffer {
		buffer = nil
	}
	c.enc.Reset(buffer[:0])
	*c = clientCall{enc: c.enc, done: c.done}
	client.pool.Put(c)
}

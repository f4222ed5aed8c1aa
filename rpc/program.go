package rpc

import (
	"context"
	"fmt"
)

// Program is one version of a program: a table of what can be called. Client and server of a program
// share it, and it does not change.
type Program struct {
	Number, Version uint32
	Name            string // for people, as in "NFS"
	// Procedures are found by their number. The first one is number 0, NULL, which takes and returns
	// nothing: the server answers it without the handler.
	Procedures []Procedure
}

// Procedure is one procedure of a [Program].
type Procedure struct {
	Name string
	// BulkArgs and BulkResults say how many items of the arguments and of the results may travel by
	// themselves over RDMA, the "DDP-eligible" ones: those, and no others, are encoded with
	// [xdr.Encoder.Bulk]. More of them are [ErrBulk] at the client, and SYSTEM_ERR at the server, over TCP as well.
	BulkArgs, BulkResults int
	// MaxResults bounds the encoded results, without items that are encoded with Bulk. A client has no room for longer ones over
	// RDMA, and takes none over TCP either: that is [ErrTooLong]. A call can have a bound of its own:
	// [CallOptions.MaxResults]. 0: 1024 octets.
	MaxResults int
	// Idempotent says that the procedure may be carried out twice. The server keeps the replies to the
	// others, in case that a client sends a call again. A client sends a call of them again only if it
	// knows that the server does so: [ClientOptions.Resend].
	Idempotent bool
}

// Handler carries out the calls of a program. The server calls it from many goroutines.
//
// The context ends when the server is closed, or when the connection of the caller is lost; the
// latter only in calls of idempotent procedures, because the client asks for the outcome of others
// again.
//
// What ServeRPC returns becomes the reply. With nil it is what the handler has encoded
// ([Call.Reply], [Call.Results]). An error that is or wraps
//
//   - an [xdr.Error], as [Call.Decode] returns it, becomes GARBAGE_ARGS;
//   - [ErrProcedureUnavailable] becomes PROC_UNAVAIL;
//   - an [AuthError] becomes AUTH_ERROR with its status;
//   - anything else becomes SYSTEM_ERR, of which [ServerOptions.Failed] hears.
//
// Most programs have statuses of their own in their results: for those nil is the right error.
//
// A handler that panics ends the program, with all other calls: the server does not recover. The example has a handler that
// recovers for another one.
type Handler interface {
	ServeRPC(ctx context.Context, c *Call) error
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, c *Call) error

// ServeRPC calls f.
func (f HandlerFunc) ServeRPC(ctx context.Context, c *Call) error { return f(ctx, c) }

// procedure returns the one with a number, or nil.
func (p *Program) procedure(number uint32) *Procedure {
	if uint64(number) < uint64(len(p.Procedures)) {
		return &p.Procedures[number]
	}
	return nil
}

// bulk returns BulkArgs and BulkResults. A procedure that is not in the table has no items by reference.
func (p *Procedure) bulk() (args, results int) {
	if p == nil {
		return 0, 0
	}
	return p.BulkArgs, p.BulkResults
}

// maxResults returns MaxResults, or the usual one.
func (p *Procedure) maxResults() int {
	if p == nil || p.MaxResults == 0 {
		return usualResults
	}
	return p.MaxResults
}

// usualResults is [Procedure.MaxResults] of a procedure that does not say it.
const usualResults = 1024

// ownPrograms is the first of the numbers that users choose (RFC 5531, 8.3).
const ownPrograms = 0x20000000

// ProgramNumber returns the number of a program as RFC 5531 writes it: one that a user chose is hexadecimal.
func ProgramNumber(n uint32) string {
	if n >= ownPrograms {
		return fmt.Sprintf("%#x", n)
	}
	return fmt.Sprint(n)
}

// String names the program, as in "NFS version 3".
func (p *Program) String() string {
	name := p.Name
	if name == "" {
		name = "program " + ProgramNumber(p.Number)
	}
	return fmt.Sprintf("%s version %d", name, p.Version)
}

// call names a procedure, as in "READ of NFS version 3".
func (p *Program) call(number uint32) string {
	name := fmt.Sprintf("procedure %d", number)
	if of := p.procedure(number); number == 0 {
		name = "NULL"
	} else if of != nil && of.Name != "" {
		name = of.Name
	}
	return name + " of " + p.String()
}

// Package rpc is ONC RPC (RFC 5531), which NFS, mountd, rpcbind and many instruments speak: servers
// and clients over TCP, and over RDMA (RPC-over-RDMA, RFC 8166) by package verbs.
//
// A program is a table of procedures, which client and server share. Types encode themselves by
// package xdr:
//
//	var calculator = &rpc.Program{Number: 0x20000001, Version: 1, Name: "CALC", Procedures: []rpc.Procedure{
//		{Name: "NULL"},
//		{Name: "ADD", Idempotent: true},
//	}}
//
// A server has a handler for each program, and takes connections of any number of listeners:
//
//	s := rpc.NewServer(nil)
//	s.Handle(calculator, rpc.HandlerFunc(func(ctx context.Context, c *rpc.Call) error {
//		var args numbers
//		if err := c.Decode(&args); err != nil {
//			return err
//		}
//		return c.Reply(args.sum())
//	}))
//	err := s.ServeTCP(listener)
//
// A client has one connection to a server, for any number of calls at once:
//
//	c, err := rpc.Dial(ctx, "tcp:10.0.0.2:4711", nil)
//	calc := c.Bind(calculator, rpc.None)
//	err = calc.Call(ctx, add, &numbers{1, 2}, &sum, nil)
//
// Over RDMA the server has ServeRDMA with a listener of package verbs, and the client dials "rdma:10.0.0.2:20049". Items that are
// encoded with Bulk, and are long, are then placed by the peer directly into memory of the other side.
//
// Replies come in any order: a call that takes long delays no other.
//
// Whole programs are in example_test.go, in docs/library.md (one with large items, over TCP and RDMA), and in examples/dgrdma-files and
// examples/dgrdma-notices.
//
// # Large items
//
// Data that is encoded with [xdr.Encoder.Bulk] is not copied on its way to the socket. A server takes
// memory for it by [Call.Buffer], or is told by [Call.Sent] when memory of its own is free again. A client says by
// [CallOptions.Into] where the data of a reply goes.
//
// The table of the program says which items may be encoded so, and how long other results are. Over RDMA a client makes room for
// what the table says. So that a program that was tested over TCP has no faults left for RDMA, the same is checked over all
// transports, for items and results of any length: more items than the table allows are [ErrBulk], or SYSTEM_ERR and
// [ServerOptions.Failed] if the server finds them, and results for which there is no room are [ErrTooLong].
//
// # The end of a call
//
// A call ends with its reply, with its context, or with its connection. When [Binding.Call] has returned, nothing
// reads its arguments or writes to its results, also if the server still works on it.
//
// When the connection is lost, the client connects again for as long as calls wait, after pauses that
// grow. It sends calls again, under the same XID, whose procedures may be carried out twice
// ([Procedure.Idempotent]), or all of them if the server is known to keep its replies
// ([ClientOptions.Resend]). The others end with [ErrLost]. [ClientOptions.GiveUp] bounds for how long calls wait.
//
// A server of this package keeps the replies to calls of procedures that are not idempotent. It knows a call that
// comes again by the address of the client, without port, its XID, program, version and procedure, and a checksum of its
// arguments, and answers it as before.
//
// # Calls of the server
//
// A handler calls programs of its caller by [Call.Client], over the connection of the call, if [ServerOptions.Callbacks]
// allows it. The program may keep that client: it is there until the connection ends. The caller has a Server of its own,
// without listeners, which carries these calls out:
//
//	callbacks := rpc.NewServer(nil)
//	callbacks.Handle(notices, handler)
//	c, err := rpc.Dial(ctx, "rdma:10.0.0.2:20049", &rpc.ClientOptions{Callbacks: callbacks})
//
// Both sides may call at any time. Over RDMA version 1 such a call, and its reply, fits into one message of 8 KiB, or less if a side says
// so. A client without Callbacks drops calls: over TCP and version 1 the server waits until its context ends, and over
// version 2 it knows, and the call fails with [ErrNoCallbacks]. Calls of a server are not sent again.
//
// # Credentials
//
// A client binds a program with a credential: [None], or that of a Unix user ([Sys]). Neither proves
// anything. [ServerOptions.Auth] decides who is served.
//
// # Limits
//
// A length that a peer sends takes no memory before the octets come. Calls, replies, calls at once, connections and
// kept replies are bounded by [ServerOptions] and [ClientOptions]; a server with as many calls as it may have reads no
// more.
//
// # Layout
//
// Passive, told the time, without goroutines, locks and sockets:
//
//	message.go     headers of calls and replies
//	auth.go        Auth, Sys
//	record.go      record marking: a stream, cut into messages
//	duplicates.go  replies that are kept
//
// The rest:
//
//	program.go        Program, Procedure, Handler
//	call.go           Call: what a handler sees
//	server.go         Server: programs, limits, the way of a call
//	server_call.go    the call and its reply
//	server_conn.go    a connection at the server
//	client.go         Client: calls that wait
//	client_lost.go    what becomes of calls when the connection is lost
//	slots.go          places of calls with handlers
//	callbacks.go      the client of a server's connection: the reverse direction
//	reconnect.go      when a client connects again, and when a connection counts as lost
//	reserved.go       connections from ports below 1024
//	binding.go        Binding, and one call
//	stream.go         a connection at the client
//	stream_server.go  the half of it that answers calls of the server
//	server_caller.go  the half of a server's connection that calls
//	sender.go         messages to a stream, many in one write
//	memory.go         memory that is used again
//	errors.go         errors
//	stats.go          counters
package rpc

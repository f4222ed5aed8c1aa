package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/xdr"
)

// serverCall is a [Call] with what the server needs for it. It is used again when it is done.
type serverCall struct {
	Call
	server    *Server
	conn      serverCarrier
	in        *rpcrdma.Incoming // over RDMA
	share     share             // over RDMA: what it has of the server's budget for items
	room      share             // what it has of that for replies
	misplaced bool              // over RDMA: an item was sent by itself at a place where none may be
	rec       record            // the message
	items     []xdr.Item
	header    callHeader
	answer    replyHeader
	handler   Handler
	procedure *Procedure
	out       outgoing
	buffer    []byte // of the encoder, for the next call
	all       *sync.WaitGroup
	// runs is Server.run of this call, made once: a go statement takes no memory then.
	runs func()
}

// keptBuffer is how long the memory for inline bytes of a message is that is kept for the next one. It is arbitrary.
const keptBuffer = 64 << 10

func newServerCall(s *Server) *serverCall {
	c := &serverCall{server: s}
	c.out.sent, c.share.granted, c.room.granted = c.done, c.granted, c.hasRoom
	c.runs = func() { s.run(c) }
	return c
}

// carryOut calls the handler, and encodes the reply.
func (c *serverCall) carryOut(ctx context.Context) {
	c.begin()
	err := c.handler.ServeRPC(ctx, &c.Call)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		c.fail(err)
	}
}

// check holds what the handler has decoded and encoded against the table.
func (c *serverCall) check() error {
	args, results := c.procedure.bulk()
	if n, _ := c.dec.Taken(); n > args {
		return tooManyItems("arguments", n, args)
	}
	if n := len(c.enc.Items()); n > results {
		return tooManyItems("results", n, results)
	}
	return nil
}

// needsRoom has the call take a share of the memory for replies. It reports whether it has it now; otherwise hasRoom is called when it has. What the reply
// takes is known when the handler has returned: see fitRoom.
func (c *serverCall) needsRoom() bool {
	if c.procedure.BulkResults == 0 {
		return true
	}
	c.room.host, c.room.n = c.conn.client(), min(c.server.opts.MaxCall, usualMessage)
	return c.server.replies.take(&c.room)
}

func (c *serverCall) hasRoom() { c.conn.(roomTaker).hasRoom(c) }

// roomTaker is a connection whose calls wait for memory for their replies.
type roomTaker interface{ hasRoom(c *serverCall) }

// fitRoom gives back what the reply does not take of its share.
func (c *serverCall) fitRoom() {
	if c.room.n == 0 {
		return
	}
	n := 0
	for _, item := range c.enc.Items() {
		n += len(item.Data)
	}
	c.server.replies.resize(&c.room, n)
}

// refuseTooLong makes SYSTEM_ERR the reply to a call that is too long. If its head says which procedure it calls, Failed is told.
func (s *Server) refuseTooLong(c *serverCall, answer replyHeader) {
	found := answer
	found.status = statusSuccess
	s.find(c, &found)
	c.answer = answer
	if found.status != statusSuccess || c.procedure == nil {
		c.refuse()
		return
	}
	c.fail(fmt.Errorf("the call is longer than this server takes: %d octets or more, at most %d: raise ServerOptions.MaxCall", c.rec.tooLong, s.opts.MaxCall))
}

// begin begins the reply with its header.
func (c *serverCall) begin() {
	c.enc.Reset(c.buffer[:0])
	c.answer.append(&c.enc)
}

// fail makes an error of the handler the reply.
func (c *serverCall) fail(err error) {
	var auth *AuthError
	switch {
	case errors.As(err, &auth):
		c.answer.deny(auth.Status)
	case errors.Is(err, xdr.ErrInvalid), errors.Is(err, ErrGarbageArgs):
		var invalid *xdr.Error
		c.misplaced = errors.As(err, &invalid) && invalid.Misplaced
		c.answer.status = statusGarbageArgs
	case errors.Is(err, ErrProcedureUnavailable):
		c.answer.status = statusProcedureUnavailable
	default:
		c.answer.status = statusSystem
		if failed := c.server.opts.Failed; failed != nil {
			failed(&c.Call, err)
		}
	}
	c.refuse()
}

// refuse encodes a reply without results.
func (c *serverCall) refuse() {
	c.server.counters.answered(c.answer.status)
	if b := c.enc.Bytes(); cap(b) > cap(c.buffer) {
		c.buffer = b
	}
	c.begin()
}

// repeat answers the call by a reply that was kept.
func (c *serverCall) repeat(reply []byte) {
	c.enc.Reset(append(c.buffer[:0], reply...))
	c.fitRoom()
	c.conn.answer(c)
}

// done is called when nothing of the call is needed any more.
func (c *serverCall) done() {
	c.free()
	c.rec.mem.release()
	conn, server := c.conn, c.server
	buffer := c.buffer
	if b := c.enc.Bytes(); cap(b) > cap(buffer) {
		buffer = b
	}
	if cap(buffer) > keptBuffer {
		buffer = nil
	}
	c.enc.Reset(nil) // the items' memory is no longer the reply's
	server.replies.put(&c.room)
	conn.done(c)
	*c = serverCall{
		Call: Call{enc: c.enc, buffers: c.buffers, sent: c.sent}, server: server,
		share: share{granted: c.share.granted}, room: share{granted: c.room.granted}, out: outgoing{sent: c.out.sent}, buffer: buffer, runs: c.runs,
	}
	server.pool.Put(c)
}

package latency

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/verbs"
)

// Client measures one operation over one connection. Start and Wait are called in turns.
type Client struct {
	op         Op
	persistent bool
	q          *verbs.QueuePair
	queue      *verbs.CompletionQueue
	region     *verbs.Region // where Writes of the server go
	inbox      []byte
	list       []verbs.Work // one operation, its answer's last
	done       uint64       // operations
}

// Dial connects to a server, for operations of size bytes. Of the options NoCRC,
// Strict and Timeout are the caller's. [ErrSize]: the server takes none that are so large.
func Dial(ctx context.Context, h *verbs.Host, address string, op Op, size uint32, o *verbs.Options) (*Client, error) {
	if o == nil {
		o = &verbs.Options{}
	}
	if !op.known() || size == 0 || op.Atomic() && size != WordSize {
		return nil, fmt.Errorf("%v of %d bytes cannot be", op, size)
	}
	c := &Client{op: op, queue: verbs.NewCompletionQueue()}
	asked := request{op: op, size: size}
	v := *o
	v.Domain, v.Extensions = h.NewDomain(), op.extensions()
	v.Completions, v.Received = c.queue, c.queue
	data := make([]byte, size)
	switch op {
	case Send:
		c.inbox = make([]byte, size)
	case Write:
		var err error
		if c.region, err = v.Domain.Register(make([]byte, size), verbs.RemoteWrite, nil); err != nil {
			return nil, err
		}
		asked.key = c.region.Key()
	}
	v.Private, v.Posted = asked.bytes(), []verbs.Receive{c.receive(), c.receive()}
	var err error
	if c.q, err = h.Dial(ctx, address, &v); err != nil {
		c.release()
		return nil, asked.rejected(err)
	}
	var granted reply
	if err := granted.parse(c.q.Private(), &asked); err != nil {
		c.Abort()
		return nil, err
	}
	c.persistent = granted.persistent
	c.list = operation(op, granted.key, data, c.persistent)
	return c, nil
}

// operation is one operation of a client.
func operation(op Op, key verbs.Key, data []byte, persistent bool) []verbs.Work {
	w := verbs.Work{STag: key.STag, TO: key.Offset, Data: data}
	switch op {
	case Send:
		return []verbs.Work{{Op: verbs.OpSend, Data: data, Silent: true}}
	case Write:
		return written(key, data)
	case Read:
		w.Op = verbs.OpRead
	case FetchAdd:
		w.Op, w.Operand = verbs.OpFetchAdd, 1
	case CompareSwap:
		w.Op = verbs.OpCompareSwap
	case Flush:
		w.Op, w.Data, w.Length, w.Persistent, w.Global = verbs.OpFlush, nil, uint32(len(data)), persistent, !persistent
		return []verbs.Work{{Op: verbs.OpWrite, STag: key.STag, TO: key.Offset, Data: data, Silent: true}, w}
	}
	return []verbs.Work{w}
}

// written is a Write and what tells of it.
func written(key verbs.Key, data []byte) []verbs.Work {
	return []verbs.Work{{Op: verbs.OpWrite, STag: key.STag, TO: key.Offset, Data: data, Silent: true}, {Op: verbs.OpSend, Silent: true}}
}

// receive is for an answer to a Send or a Write. Nobody looks at the bytes, so all go to the same place.
func (c *Client) receive() verbs.Receive { return verbs.Receive{Data: c.inbox} }

// Start begins an operation. The one before must have been waited for.
func (c *Client) Start() error {
	if c.op == CompareSwap {
		c.list[0].Compare, c.list[0].Operand = c.done, c.done+1
	}
	_, err := c.q.PostList(c.list)
	return err
}

// Wait waits until the operation is answered. An answer counts though the server has closed the connection behind it: that is
// for the next operation.
func (c *Client) Wait(ctx context.Context) error {
	d, err := next(ctx, c.queue)
	if err != nil {
		return err
	}
	switch {
	case d.Op == verbs.OpReceive:
		_ = c.q.PostReceive(c.receive()) // fails where the queue pair has ended
	case c.op.Atomic() && d.Old != c.done:
		err = fmt.Errorf("%w: %v number %d found %d", ErrValue, c.op, c.done, d.Old)
	}
	c.done++
	return err
}

// next waits for a completion.
func next(ctx context.Context, q *verbs.CompletionQueue) (verbs.Completion, error) {
	var done [1]verbs.Completion
	if _, err := q.Wait(ctx, done[:]); err != nil {
		return done[0], context.Cause(ctx)
	}
	return done[0], done[0].Err
}

// Persistent says that Flush reaches storage: the server's memory is a file.
func (c *Client) Persistent() bool { return c.persistent }

// QueuePair is the connection, for what there is to say of it.
func (c *Client) QueuePair() *verbs.QueuePair { return c.q }

// Close ends the connection when all is answered.
func (c *Client) Close(ctx context.Context) error {
	err := c.q.Shutdown(ctx)
	c.release()
	return end(err)
}

// Abort ends the connection at once.
func (c *Client) Abort() {
	c.q.Abort()
	c.release()
}

func (c *Client) release() {
	if c.region != nil {
		c.region.Invalidate()
	}
}

// end is what is wrong with how a connection ended.
func end(err error) error {
	if errors.Is(err, verbs.ErrPeerClosed) || errors.Is(err, verbs.ErrClosed) {
		return nil
	}
	return err
}

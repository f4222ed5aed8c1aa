package main

import (
	"context"
	"io"

	"github.com/dgrdma/dgrdma/link/stream"
)

// transfer is a stream that send or listen moves.
type transfer struct {
	*stream.Stream
	from  *input      // nil: nothing is sent
	into  stream.Sink // nil: nothing is received
	meter *meter
}

// run moves the stream.
func (t *transfer) run(ctx context.Context) error {
	switch {
	case t.into == nil:
		return t.Send(ctx, t.from)
	case t.from == nil:
		return t.Receive(ctx, t.into)
	}
	return t.Exchange(ctx, t.from, t.into)
}

// runShown is run with progress: of the sending direction, if there is one.
func (t *transfer) runShown(ctx context.Context, std *stdio) error {
	if !t.mayShow(std) {
		return t.run(ctx)
	}
	stop := t.meter.showing(std.err, func() int64 {
		r := t.Result()
		if t.from != nil {
			return r.Sent
		}
		return r.Received
	})
	defer stop()
	return t.run(ctx)
}

// mayShow reports whether progress on stderr disturbs nothing that a person types
// or reads on the same terminal.
func (t *transfer) mayShow(std *stdio) bool {
	if t.from != nil && t.from.poll != nil && isTerminal(t.from.poll) {
		return false
	}
	out, toStdout := t.into.(*output)
	return !toStdout || !isTerminal(out.Writer)
}

// output is the standard output as a sink: what it was given is gone.
type output struct {
	io.Writer
	end io.Closer // not nil: closed when all is there, for who reads to know
}

func (o *output) Commit() error {
	if o.end == nil {
		return nil
	}
	return o.end.Close()
}
func (*output) Discard()       {}
func (*output) String() string { return "to standard output" }

// closerOf returns what closes a writer that is a file.
func closerOf(w io.Writer) io.Closer {
	c, _ := w.(io.Closer)
	return c
}

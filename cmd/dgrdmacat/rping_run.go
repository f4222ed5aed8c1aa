package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/internal/places"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/latency"
	"github.com/dgrdma/dgrdma/verbs/rping"
)

const rpingThere = "rping -s of rdma-core, or dgrdmacat rping --serve,"

func rpingTo(ctx context.Context, o *rpingOptions, stdout, stderr io.Writer) error {
	to, err := parseTCPPeer("--to", o.to, rping.Port)
	if err != nil {
		return err
	}
	h, err := openTCPLocal(o.local)
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.rdma(h, to)
	c, err := dialRping(ctx, o, h, to)
	if err != nil {
		return errors.Join(err, o.nothing(err, stdout))
	}
	r := rpinging{o: o, to: to, c: c, stdout: stdout, times: bench.NewHistogram()}
	if !o.verbose {
		defer showProgress(stderr, r.line)()
	}
	err = r.run(ctx)
	if !r.whole {
		c.Abort()
	} else if left := r.close(); left != nil {
		err = errors.Join(err, fmt.Errorf("after the last ping: %w", goneTCP(to.String(), left)))
	}
	if r.unread {
		return err // nor can the result be printed
	}
	result := o.result(c.QueuePair(), c.Done(), r.times)
	if err != nil {
		result.Error = err.Error()
	}
	return errors.Join(err, result.print(stdout, o.json))
}

// dialRping connects within the time that an answer has.
func dialRping(ctx context.Context, o *rpingOptions, h *verbs.Host, to tcpAddress) (*rping.Client, error) {
	d := &dialing{to, o.wait, rpingThere}
	soon, stop := d.context(ctx)
	defer stop()
	c, err := rping.Dial(soon, h, to.String(), int(o.size.value), o.room())
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return c, d.explain(err)
}

// nothing is what --json prints where nothing was done.
func (o *rpingOptions) nothing(err error, stdout io.Writer) error {
	if !o.json {
		return nil
	}
	r := &rpingResult{Transport: tcpScheme, Bytes: int(o.size.value), Error: err.Error()}
	return r.print(stdout, true)
}

// rpinging is a client at work.
type rpinging struct {
	o      *rpingOptions
	to     tcpAddress
	c      *rping.Client
	stdout io.Writer
	whole  bool // no ping is under way
	unread bool // data cannot be printed

	mu    sync.Mutex
	times *bench.Histogram
}

// run pings until it is enough. The ping that is under way at ^C may end, if it does so soon: then the server has a good-bye.
func (r *rpinging) run(ctx context.Context) error {
	pinging, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(farewell, func() { stop(context.Cause(ctx)) })
	})()
	for n := 0; r.o.count == 0 || n < r.o.count; n++ {
		if ctx.Err() != nil {
			return r.interrupted(ctx, true)
		}
		began := time.Now()
		data, err := r.c.Ping(pinging)
		took := time.Since(began)
		if err != nil && ctx.Err() != nil {
			return r.interrupted(ctx, false)
		}
		ended := endedTCP(err)
		if err != nil {
			err = goneTCP(fmt.Sprintf("ping %d: %v", n, r.to), err)
		}
		if ended && n == 0 {
			return fmt.Errorf("a server takes no pings that are larger than its --size, and these have %d bytes: %w", r.o.size.value, err)
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.times.Add(took)
		r.mu.Unlock()
		if r.o.verbose {
			if err := sayData(r.stdout, "ping data", data); err != nil {
				r.whole, r.unread = true, true
				return err
			}
		}
	}
	r.whole = true
	return nil
}

// close says good-bye.
func (r *rpinging) close() error {
	closing, stop := context.WithTimeout(context.Background(), r.o.wait)
	defer stop()
	return r.c.Close(closing)
}

// interrupted is the end at ^C; between says whether no ping is under way.
func (r *rpinging) interrupted(ctx context.Context, between bool) error {
	r.whole = between
	return fmt.Errorf("%w after %s", context.Cause(ctx), count(r.c.Done(), "ping"))
}

// line says how far it is.
func (r *rpinging) line() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := ""
	if r.o.count > 0 {
		of = fmt.Sprintf(" of %d", r.o.count)
	}
	return fmt.Sprintf("%d%s, median %.1f us", r.times.N(), of, microseconds(r.times.Quantile(0.5)))
}

// sayData prints a ping as rping does, but for what would do something to a terminal.
func sayData(w io.Writer, what string, data []byte) error {
	data, _, _ = bytes.Cut(data, []byte{0})
	_, err := fmt.Fprintf(w, "%s: %s\n", what, text.Plain(string(data)))
	return err
}

func rpingServe(ctx context.Context, o *rpingOptions, std *stdio) error {
	at, err := parseTCP("--serve", o.serve, rping.Port)
	if err != nil {
		return err
	}
	s := &tcpServer{at: at, once: o.once, urlFile: &o.urlFile, doing: "answering rping", log: newPeerLog(std.err), metrics: &o.metrics}
	room := &places.Room{Most: mostTCPClients, Patience: latency.Patience}
	s.accept = func(ctx context.Context, _ *verbs.Host, r *verbs.Request) (func(context.Context) (string, error), error) {
		place, err := room.Enter(ctx, r.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), 0)
		if err != nil {
			full := fmt.Errorf("%d clients are there already: try again later", mostTCPClients)
			return nil, errors.Join(full, r.TurnAway([]byte(full.Error())))
		}
		c, err := rping.Accept(ctx, r, o.room())
		if errors.Is(err, rping.ErrStranger) {
			err = strangerTCP("rping", r.Private, err)
		}
		if err != nil {
			place.Leave()
			return nil, err
		}
		way, giveWay := context.WithCancelCause(context.Background())
		place.Serve(func() uint64 { return c.QueuePair().Stats().Received }, func() { giveWay(latency.ErrGaveWay) })
		return func(ctx context.Context) (string, error) {
			defer place.Leave()
			defer giveWay(nil)
			ctx, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			defer context.AfterFunc(way, func() { stop(context.Cause(way)) })()
			err := pong(ctx, c, o, std.out)
			return count(c.Done(), "ping"), err
		}, nil
	}
	return s.serve(ctx)
}

// goodbyeTime is how long a server that ends waits for the ping under way, and then for a client to take its good-bye and to
// close the connection. A client that takes longer is told by a reset: a Read that is cancelled takes its connection with it.
// Arbitrary: long beside a way around the earth and back, short for a person.
const goodbyeTime = time.Second

// pong serves a client to its end. When the server ends, the ping that is under way may end as well, if it does so soon, and
// the client has a good-bye.
func pong(ctx context.Context, c *rping.Session, o *rpingOptions, stdout io.Writer) error {
	ponging, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	grace := func() time.Duration {
		if errors.Is(context.Cause(ctx), latency.ErrGaveWay) { // another client waits for its place
			return farewell
		}
		return goodbyeTime
	}
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(grace(), func() { stop(errServed) })
	})()
	var err error
	for ctx.Err() == nil && err == nil {
		var data []byte
		if data, err = c.Pong(ponging); err == nil && o.verbose {
			if unsaid := sayData(stdout, "server ping data", data); unsaid != nil {
				err = untold{unsaid}
			}
		}
	}
	ended := err == io.EOF // by the client
	within := grace()
	if ended {
		within = o.wait
	}
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer done()
	left := c.Close(closing)
	switch {
	case ended:
		return left
	case err == nil || errors.Is(err, errServed):
		return context.Cause(ctx)
	}
	return goneTCP(fmt.Sprintf("ping %d", c.Done()), err)
}

// errServed is why no ping is waited for any more.
var errServed = errors.New("the server ends")

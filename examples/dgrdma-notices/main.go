// Notices passes what one client says to all clients that watch: a server of ONC RPC that calls its clients back, over the connections that they have made.
//
//	dgrdma-notices serve           in one terminal: listens at port 7490 of this machine's loopback interface, over RDMA; ^C ends it
//	dgrdma-notices watch           in others: prints what is said, until ^C
//	dgrdma-notices say TEXT        tells all clients that watch, and prints how many took it
//
// Between machines the server is told its address, dgrdma-notices -at tcp:10.0.0.1 serve, and the clients where it is,
// dgrdma-notices -server rdma:10.0.0.1:7490 watch.
//
// The server keeps the client that rpc.Call.Client returns for each that watches. A call of it that fails says that the watcher is gone: it
// watches again by itself, over another connection.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// Procedures of both programs. Their numbers are of the range that RFC 5531 leaves to anybody.
const (
	procWatch = 1
	procSay   = 2
	procTell  = 1
)

var (
	// notices is what the server has.
	notices = &rpc.Program{Number: 0x20007490, Version: 1, Name: "NOTICES", Procedures: []rpc.Procedure{
		{Name: "NULL"}, procWatch: {Name: "WATCH", Idempotent: true}, procSay: {Name: "SAY"},
	}}
	// watcher is what each that watches has: the server calls it.
	watcher = &rpc.Program{Number: 0x20007491, Version: 1, Name: "WATCHER", Procedures: []rpc.Procedure{
		{Name: "NULL"}, procTell: {Name: "TELL", Idempotent: true},
	}}
)

// text is at most 1000 octets: over version 1 a call of the server has to fit into one message.
type text string

func (s *text) MarshalXDR(e *xdr.Encoder)   { e.String(string(*s)) }
func (s *text) UnmarshalXDR(d *xdr.Decoder) { *s = text(d.String(1000)) }

type count uint32

func (n *count) MarshalXDR(e *xdr.Encoder)   { e.Uint32(uint32(*n)) }
func (n *count) UnmarshalXDR(d *xdr.Decoder) { *n = count(d.Uint32()) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	set := flag.NewFlagSet("dgrdma-notices", flag.ExitOnError)
	at := set.String("at", "tcp:127.0.0.1", "serve at this address of the machine")
	port := set.String("port", "7490", "serve at this port; 0: any")
	where := set.String("server", "rdma:127.0.0.1:7490", "where the server is")
	set.BoolFunc("h", "print this", func(string) error {
		set.SetOutput(os.Stdout)
		set.Usage()
		os.Exit(0)
		return nil
	})
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "usage: dgrdma-notices [flags] serve | watch | say TEXT")
		set.PrintDefaults()
	}
	set.Parse(os.Args[1:])
	err := errors.New("need serve, watch, or say TEXT")
	switch {
	case set.Arg(0) == "serve" && set.NArg() == 1:
		err = serve(ctx, *at, *port, os.Stdout)
	case set.Arg(0) == "watch" && set.NArg() == 1:
		err = watch(ctx, *where, os.Stdout)
	case set.Arg(0) == "say" && set.NArg() == 2:
		err = say(ctx, *where, set.Arg(1), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dgrdma-notices:", err)
		os.Exit(1)
	}
}

const (
	// tellTime is how long a watcher has to take a notice. It is arbitrary.
	tellTime = 5 * time.Second
	// mostWatchers is how many there are at once. It is arbitrary, and so is how often one makes sure that the server knows it.
	mostWatchers = 1024
	watchEvery   = time.Second
)

// board is the server: the clients that watch.
type board struct {
	mu       sync.Mutex
	watchers map[*rpc.Client]bool
}

// ServeRPC carries out a call.
func (b *board) ServeRPC(ctx context.Context, c *rpc.Call) error {
	switch c.Procedure {
	case procWatch:
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.watchers) >= mostWatchers && !b.watchers[c.Client()] {
			return &rpc.AuthError{Status: rpc.TooWeak}
		}
		b.watchers[c.Client()] = true
		return nil
	case procSay:
		var s text
		if err := c.Decode(&s); err != nil {
			return err
		}
		n := b.tell(ctx, s)
		return c.Reply(&n)
	}
	return rpc.ErrProcedureUnavailable
}

// tell calls all clients that watch at once, and forgets those that do not take it.
func (b *board) tell(ctx context.Context, s text) (took count) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	var all sync.WaitGroup
	b.mu.Lock()
	for of := range b.watchers {
		all.Go(func() {
			err := of.Bind(watcher, rpc.None).Call(ctx, procTell, &s, nil, nil)
			b.mu.Lock()
			defer b.mu.Unlock()
			if err == nil {
				took++
			} else {
				delete(b.watchers, of)
			}
		})
	}
	b.mu.Unlock()
	all.Wait()
	return took
}

// serve serves until ctx ends.
func serve(ctx context.Context, at, port string, out io.Writer) error {
	host, err := verbs.Open(at)
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Listen(port)
	if err != nil {
		return err
	}
	server := rpc.NewServer(&rpc.ServerOptions{Callbacks: 4})
	server.Handle(notices, &board{watchers: make(map[*rpc.Client]bool)})
	fmt.Fprintf(out, "serving on rdma:%v\n", l.Addr())
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ServeRDMA(l); !errors.Is(err, rpc.ErrClosed) {
		return err
	}
	return nil
}

// watch prints what is said, until ctx ends.
func watch(ctx context.Context, where string, out io.Writer) error {
	callbacks := rpc.NewServer(&rpc.ServerOptions{Credits: 4})
	defer callbacks.Close() // after the client
	callbacks.Handle(watcher, rpc.HandlerFunc(func(_ context.Context, c *rpc.Call) error {
		var s text
		if err := c.Decode(&s); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%q\n", string(s))
		return err
	}))
	client, err := rpc.Dial(ctx, where, &rpc.ClientOptions{Callbacks: callbacks})
	if err != nil {
		return err
	}
	defer client.Close()
	for server := client.Bind(notices, rpc.None); ; { // a server that is started again knows no client
		if err := server.Call(ctx, procWatch, nil, nil, nil); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// say has the server tell all.
func say(ctx context.Context, where, what string, out io.Writer) error {
	client, err := rpc.Dial(ctx, where, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	s, n := text(what), count(0)
	if err := client.Bind(notices, rpc.None).Call(ctx, procSay, &s, &n, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "told", n)
	return err
}

// Files serves the files of a directory by a program of its own over ONC RPC: their data travels by itself over RDMA, from the memory
// of one side into that of the other.
//
//	dgrdma-files serve DIR         in one terminal: listens at port 7491 of this machine's loopback interface; ^C ends it
//	dgrdma-files get NAME          in others: copies a file from the server into this directory
//	dgrdma-files put NAME          copies a file of this directory to the server
//
// Between machines the server is told its address, dgrdma-files -at tcp:10.0.0.1 serve DIR, and the clients where it is,
// dgrdma-files -server rdma:10.0.0.1:7491 get NAME. The program does not care what carries it: a server of this program over TCP is found
// at tcp:10.0.0.1:7491.
//
// The table of the program says which items may travel by themselves: BulkArgs of PUT, BulkResults of GET. Pieces of a file are under way at
// once, and each is told where its data goes, by rpc.CallOptions.Into.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// Procedures.
const (
	procGet = 1
	procPut = 2
)

// files is the program. To write a piece twice is as to write it once.
var files = &rpc.Program{Number: 0x20007492, Version: 1, Name: "FILES", Procedures: []rpc.Procedure{
	{Name: "NULL"},
	procGet: {Name: "GET", BulkResults: 1, Idempotent: true},
	procPut: {Name: "PUT", BulkArgs: 1, Idempotent: true},
}}

const (
	// piece is how much of a file one call moves, and atOnce how many are under way.
	piece  = 1 << 20
	atOnce = 4
)

// Statuses. The others are 0: it was done.
const (
	noFile = 1 // or none that can be opened
	failed = 2
)

// where is a place in a file.
type where struct {
	name   string
	offset uint64
}

func (w *where) MarshalXDR(e *xdr.Encoder) {
	e.String(w.name)
	e.Uint64(w.offset)
}

func (w *where) UnmarshalXDR(d *xdr.Decoder) {
	w.name = d.String(255)
	w.offset = d.Uint64()
}

// put is the arguments of PUT.
type put struct {
	where
	data []byte
}

func (p *put) MarshalXDR(e *xdr.Encoder) {
	p.where.MarshalXDR(e)
	e.Bulk(p.data)
}

func (p *put) UnmarshalXDR(d *xdr.Decoder) {
	p.where.UnmarshalXDR(d)
	p.data = d.Bulk(piece)
}

// got is the results of GET: what is there, at most a piece. PUT has the status alone.
type got struct {
	status uint32
	data   []byte
}

func (g *got) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(g.status)
	e.Bulk(g.data)
}

func (g *got) UnmarshalXDR(d *xdr.Decoder) {
	g.status = d.Uint32()
	g.data = d.Bulk(piece)
}

type status uint32

func (s *status) MarshalXDR(e *xdr.Encoder)   { e.Uint32(uint32(*s)) }
func (s *status) UnmarshalXDR(d *xdr.Decoder) { *s = status(d.Uint32()) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	set := flag.NewFlagSet("dgrdma-files", flag.ExitOnError)
	at := set.String("at", "tcp:127.0.0.1", "serve at this address of the machine")
	port := set.String("port", "7491", "serve at this port; 0: any")
	server := set.String("server", "rdma:127.0.0.1:7491", "where the server is")
	set.BoolFunc("h", "print this", func(string) error {
		set.SetOutput(os.Stdout)
		set.Usage()
		os.Exit(0)
		return nil
	})
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "usage: dgrdma-files [flags] serve DIR | get NAME | put NAME")
		set.PrintDefaults()
	}
	set.Parse(os.Args[1:])
	err := errors.New("need serve DIR, get NAME, or put NAME")
	switch {
	case set.NArg() != 2:
	case set.Arg(0) == "serve":
		err = serve(ctx, *at, *port, set.Arg(1), os.Stdout)
	case set.Arg(0) == "get":
		err = get(ctx, *server, ".", set.Arg(1))
	case set.Arg(0) == "put":
		err = send(ctx, *server, ".", set.Arg(1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dgrdma-files:", err)
		os.Exit(1)
	}
}

// shelf is the server: a directory, and nothing outside of it.
type shelf struct{ root *os.Root }

// ServeRPC carries out a call.
func (s *shelf) ServeRPC(_ context.Context, c *rpc.Call) error {
	switch c.Procedure {
	case procGet:
		var w where
		if err := c.Decode(&w); err != nil {
			return err
		}
		return c.Reply(s.get(&w, c.Buffer(piece))) // the server takes the buffer back when it was sent
	case procPut:
		var p put
		if err := c.Decode(&p); err != nil {
			return err
		}
		n := s.put(&p)
		return c.Reply(&n)
	}
	return rpc.ErrProcedureUnavailable
}

func (s *shelf) get(w *where, b []byte) *got {
	f, err := s.root.Open(w.name)
	if err != nil {
		return &got{status: noFile}
	}
	defer f.Close()
	n, err := f.ReadAt(b, int64(w.offset&(1<<63-1)))
	if err != nil && err != io.EOF {
		return &got{status: failed}
	}
	return &got{data: b[:n]}
}

func (s *shelf) put(p *put) status {
	f, err := s.root.OpenFile(p.name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return noFile
	}
	_, err = f.WriteAt(p.data, int64(p.offset&(1<<63-1)))
	if err = errors.Join(err, f.Close()); err != nil {
		return failed
	}
	return 0
}

// serve serves a directory until ctx ends.
func serve(ctx context.Context, at, port, dir string, out io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	host, err := verbs.Open(at)
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Listen(port)
	if err != nil {
		return err
	}
	server := rpc.NewServer(nil)
	server.Handle(files, &shelf{root})
	fmt.Fprintf(out, "serving on rdma:%v\n", l.Addr())
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ServeRDMA(l); !errors.Is(err, rpc.ErrClosed) {
		return err
	}
	return nil
}

// get copies a file of the server into a directory.
func get(ctx context.Context, server, dir, name string) error {
	f, err := os.OpenFile(dir+"/"+name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(pieces(ctx, server, func(b *rpc.Binding, memory []byte, offset uint64) (more bool, err error) {
		var g got
		err = b.Call(ctx, procGet, &where{name, offset}, &g, &rpc.CallOptions{Into: memory, Direct: true})
		if err == nil && g.status != 0 {
			err = fmt.Errorf("get %s: %w (status %d)", name, fs.ErrNotExist, g.status)
		}
		if err == nil {
			_, err = f.WriteAt(g.data, int64(offset))
		}
		return len(g.data) == piece, err
	}), f.Close())
}

// send copies a file of a directory to the server.
func send(ctx context.Context, server, dir, name string) error {
	f, err := os.Open(dir + "/" + name)
	if err != nil {
		return err
	}
	defer f.Close()
	return pieces(ctx, server, func(b *rpc.Binding, memory []byte, offset uint64) (more bool, err error) {
		n, err := f.ReadAt(memory, int64(offset))
		if err != nil && err != io.EOF {
			return false, err
		}
		var s status
		err = b.Call(ctx, procPut, &put{where{name, offset}, memory[:n]}, &s, &rpc.CallOptions{Direct: true})
		if err == nil && s != 0 {
			err = fmt.Errorf("put %s: the server cannot (status %d)", name, s)
		}
		return n == piece, err
	})
}

// pieces has move move the pieces of a file, several at once, until one is not full.
func pieces(ctx context.Context, server string, move func(b *rpc.Binding, memory []byte, offset uint64) (more bool, err error)) error {
	client, err := rpc.Dial(ctx, server, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	var all sync.WaitGroup
	errs := make([]error, atOnce)
	for i := range errs {
		all.Go(func() {
			memory := make([]byte, piece)
			more := true
			for offset := uint64(i) * piece; more && errs[i] == nil; offset += atOnce * piece {
				more, errs[i] = move(client.Bind(files, rpc.None), memory, offset)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

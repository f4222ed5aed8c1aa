// Gonfs serves a directory by a server of NFS that knows nothing of RDMA, github.com/willscott/go-nfs, over RDMA.
//
//	gonfs DIR                      listens at port 20049 of this machine's loopback interface; ^C ends it
//	gonfs -at tcp:10.0.0.1 DIR     and of another one
//
// go-nfs takes connections of a net.Listener. This program gives it one end of a net.Pipe, and calls it over the other end by a client of package
// rpc. Each call that comes over RDMA is called again there. The data of WRITE and READ has to be told apart for RDMA, which the types of package
// nfs3 do; all else is passed on as it is. So any server of a program of ONC RPC can be brought to RDMA, at the price of its copies.
//
// It is a module of its own, so that programs that import dgrdma do not get go-nfs.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	at := flag.String("at", "tcp:127.0.0.1", "serve at this address of the machine")
	port := flag.String("port", "20049", "serve at this port; 0: any")
	flag.Parse()
	err := errors.New("need one directory")
	if flag.NArg() == 1 {
		handler := helpers.NewCachingHandler(helpers.NewNullAuthHandler(osfs.New(flag.Arg(0))), 1024)
		err = serve(ctx, *at, *port, handler, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gonfs:", err)
		os.Exit(1)
	}
}

// serve serves what a handler of go-nfs has, until ctx ends.
func serve(ctx context.Context, at, port string, handler nfs.Handler, out io.Writer) error {
	host, err := verbs.Open(at)
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Listen(port)
	if err != nil {
		return err
	}
	pipes := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	defer pipes.Close()
	go nfs.Serve(pipes, handler)
	client, err := rpc.Dial(ctx, "tcp:go-nfs:2049", &rpc.ClientOptions{
		Dial: func(context.Context, string, string) (net.Conn, error) { return pipes.dial(), nil }, // also when go-nfs has ended it
	})
	if err != nil {
		return err
	}
	defer client.Close()
	server := rpc.NewServer(nil)
	to := &forwarder{client}
	server.Handle(nfs3.Program, to)
	server.Handle(nfs3.MountProgram, to)
	fmt.Fprintf(out, "serving on rdma:%v\n", l.Addr())
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ServeRDMA(l); !errors.Is(err, rpc.ErrClosed) {
		return err
	}
	return nil
}

// forwarder makes each call again, to go-nfs.
type forwarder struct{ client *rpc.Client }

// ServeRPC carries out a call. go-nfs keeps no replies: what is not idempotent is not carried out twice because this server keeps them.
func (f *forwarder) ServeRPC(ctx context.Context, c *rpc.Call) error {
	var args message = &rest{}
	var results message = &rest{}
	if c.Program == nfs3.Program {
		switch c.Procedure {
		case nfs3.ProcWrite:
			args = &nfs3.WriteArgs{}
		case nfs3.ProcSymlink:
			args = &nfs3.SymlinkArgs{}
		case nfs3.ProcRead:
			results = &nfs3.ReadResult{}
		case nfs3.ProcReadLink:
			results = &nfs3.ReadLinkResult{}
		}
	}
	if err := c.Decode(args); err != nil {
		return err
	}
	o := &rpc.CallOptions{MaxResults: 1 << 20}
	if err := f.client.Bind(c.Program, c.Auth).Call(ctx, c.Procedure, args, results, o); err != nil {
		return err
	}
	return c.Reply(results)
}

// message is arguments or results.
type message interface {
	xdr.Marshaler
	xdr.Unmarshaler
}

// rest is a message without items that may travel by themselves, as it is.
type rest struct{ b []byte }

// MarshalXDR appends it.
func (r *rest) MarshalXDR(e *xdr.Encoder) { e.Fixed(r.b) }

// UnmarshalXDR takes it. Its memory is used for the next message.
func (r *rest) UnmarshalXDR(d *xdr.Decoder) { r.b = bytes.Clone(d.Left()) }

// pipes is a net.Listener, for connections within this process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// dial makes a connection.
func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	go func() {
		select {
		case p.conns <- there:
		case <-p.closed:
		}
	}()
	return here
}

// Accept is that of net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close is that of net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is that of net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

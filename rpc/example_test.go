package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// The program: procedure 1 adds numbers.
var calculator = &rpc.Program{Number: 0x20000001, Version: 1, Name: "CALC", Procedures: []rpc.Procedure{
	{Name: "NULL"},
	{Name: "ADD", Idempotent: true},
}}

const add = 1

// numbers are the arguments of ADD, total its results.
type numbers []int32

func (n numbers) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(len(n)))
	for _, v := range n {
		e.Int32(v)
	}
}

func (n *numbers) UnmarshalXDR(d *xdr.Decoder) {
	for range d.Count(1000, 4) {
		*n = append(*n, d.Int32())
	}
}

type total int64

func (t total) MarshalXDR(e *xdr.Encoder)    { e.Int64(int64(t)) }
func (t *total) UnmarshalXDR(d *xdr.Decoder) { *t = total(d.Int64()) }

// A server with one program, and a client that calls it.
func Example() {
	s := rpc.NewServer(nil)
	s.Handle(calculator, rpc.HandlerFunc(func(ctx context.Context, c *rpc.Call) error {
		var args numbers
		if err := c.Decode(&args); err != nil {
			return err
		}
		var sum total
		for _, v := range args {
			sum += total(v)
		}
		return c.Reply(sum)
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go s.ServeTCP(l)
	defer s.Close()

	ctx := context.Background()
	c, err := rpc.Dial(ctx, "tcp:"+l.Addr().String(), nil)
	check(err)
	defer c.Close()
	calc := c.Bind(calculator, rpc.None)
	var sum total
	check(calc.Call(ctx, add, numbers{20, 21, 1}, &sum, nil))
	fmt.Println(sum)

	err = calc.Call(ctx, 2, nil, nil, nil)
	fmt.Println(errors.Is(err, rpc.ErrProcedureUnavailable))
	// Output:
	// 42
	// true
}

// A credential says who calls, and the server decides whom it serves. Both are of one process here, over a pipe.
func ExampleServerOptions_auth() {
	s := rpc.NewServer(&rpc.ServerOptions{Auth: func(c *rpc.Call) error {
		if user, err := c.Auth.Sys(); err != nil || user.UID != 0 {
			return &rpc.AuthError{Status: rpc.TooWeak}
		}
		return nil
	}})
	s.Handle(calculator, rpc.HandlerFunc(func(ctx context.Context, c *rpc.Call) error { return c.Reply(total(0)) }))
	here, there := net.Pipe()
	go s.ServeConn(there)
	defer s.Close()

	c := rpc.NewClient(here, nil)
	defer c.Close()
	root := &rpc.Sys{Machine: "pluto", UID: 0}
	fmt.Println(c.Bind(calculator, root.Auth()).Call(context.Background(), add, numbers{}, new(total), nil))
	fmt.Println(c.Bind(calculator, rpc.None).Call(context.Background(), add, numbers{}, new(total), nil))
	// Output:
	// <nil>
	// call ADD of CALC version 1 at pipe: the server refuses the credential: it is too weak (AUTH_TOOWEAK)
}

// recovers returns a handler that makes a panic of h an error, which the client gets as SYSTEM_ERR, and ServerOptions.Failed with its words.
// Locks that h holds, and data that it was about to change, stay as they were at the panic.
func recovers(h rpc.Handler) rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, c *rpc.Call) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p) // debug.Stack says where
			}
		}()
		return h.ServeRPC(ctx, c)
	})
}

// A panic of a handler ends the program, unless another handler around it recovers.
func ExampleHandler() {
	s := rpc.NewServer(&rpc.ServerOptions{Failed: func(c *rpc.Call, err error) { fmt.Println("server:", err) }})
	s.Handle(calculator, recovers(rpc.HandlerFunc(func(ctx context.Context, c *rpc.Call) error { panic("no numbers") })))
	here, there := net.Pipe()
	go s.ServeConn(there)
	defer s.Close()

	c := rpc.NewClient(here, nil)
	defer c.Close()
	err := c.Bind(calculator, rpc.None).Call(context.Background(), add, numbers{}, new(total), nil)
	fmt.Println(errors.Is(err, rpc.ErrSystem))
	// Output:
	// server: panic: no numbers
	// true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

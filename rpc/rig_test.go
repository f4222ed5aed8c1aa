package rpc

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// Procedures of the program that tests call.
const (
	procEcho   = 1 // returns its item
	procSleep  = 2 // sleeps for so many milliseconds
	procAdd    = 3 // adds to a counter, and returns it: not idempotent
	procFail   = 4 // fails as its argument says
	procRead   = 5 // returns an item of so many octets
	procWhoami = 6
	procBack   = 7 // runs service.back: not idempotent
)

var testProgram = &Program{Number: 0x20000042, Version: 3, Name: "TEST", Procedures: []Procedure{
	{Name: "NULL"},
	{Name: "ECHO", BulkArgs: 1, BulkResults: 1, Idempotent: true},
	{Name: "SLEEP", Idempotent: true},
	{Name: "ADD", BulkArgs: 1},
	{Name: "FAIL", Idempotent: true},
	{Name: "READ", BulkResults: 1, Idempotent: true},
	{Name: "WHOAMI", BulkResults: 1, Idempotent: true},
	{Name: "BACK", BulkResults: 1},
}}

// data is an item by reference, after a word.
type data struct {
	before uint32
	b      []byte
	after  string
}

func (v *data) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(v.before)
	e.Bulk(v.b)
	e.String(v.after)
}

func (v *data) UnmarshalXDR(d *xdr.Decoder) {
	v.before = d.Uint32()
	v.b = d.Bulk(4 << 20)
	v.after = d.String(64)
}

type number uint32

func (n *number) MarshalXDR(e *xdr.Encoder)   { e.Uint32(uint32(*n)) }
func (n *number) UnmarshalXDR(d *xdr.Decoder) { *n = number(d.Uint32()) }

func num(n int) *number { v := number(n); return &v }

// service is a server of the test program.
type service struct {
	mu      sync.Mutex
	sum     int
	fail    func() error
	back    func(ctx context.Context, c *Call) error
	entered chan struct{} // told by each ADD and SLEEP, if it is there
	hold    chan struct{} // received from by each ADD, if it is there
}

func (s *service) ServeRPC(ctx context.Context, c *Call) error {
	switch c.Procedure {
	case procEcho:
		var v data
		if err := c.Decode(&v); err != nil {
			return err
		}
		return c.Reply(&v)
	case procSleep:
		var n number
		if err := c.Decode(&n); err != nil {
			return err
		}
		if s.entered != nil {
			s.entered <- struct{}{}
		}
		select {
		case <-time.After(time.Duration(n) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	case procAdd:
		var n number
		if err := c.Decode(&n); err != nil {
			return err
		}
		if s.entered != nil {
			s.entered <- struct{}{}
		}
		if s.hold != nil {
			<-s.hold
		}
		s.mu.Lock()
		s.sum += int(n)
		n = number(s.sum)
		s.mu.Unlock()
		return c.Reply(&n)
	case procFail:
		c.Results().Uint32(4711) // which must not get into the reply
		return s.fail()
	case procRead:
		var n number
		if err := c.Decode(&n); err != nil {
			return err
		}
		b := c.Buffer(int(n))
		for i := range b {
			b[i] = byte(i)
		}
		return c.Reply(&data{b: b})
	case procBack:
		s.mu.Lock()
		back := s.back
		s.mu.Unlock()
		if back != nil {
			return back(ctx, c)
		}
	case procWhoami:
		v := data{b: []byte(c.RemoteAddr().String()), after: c.Transport()}
		if sys, err := c.Auth.Sys(); err == nil {
			v.before = sys.UID
		}
		return c.Reply(&v)
	}
	return ErrProcedureUnavailable
}

// backBy has BACK run f.
func (s *service) backBy(f func(ctx context.Context, c *Call) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = f
}

// serve serves the test program, and others, over TCP, until the test ends.
func serve(t testing.TB, h Handler, o *ServerOptions, also ...*Program) (s *Server, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = NewServer(o)
	for _, p := range append(also, testProgram) {
		s.Handle(p, h)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeTCP(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != ErrClosed {
			t.Errorf("ServeTCP: %v", err)
		}
	})
	return s, "tcp:" + l.Addr().String()
}

// dial dials, until the test ends.
func dial(t testing.TB, address string, o *ClientOptions) *Client {
	t.Helper()
	c, err := Dial(context.Background(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

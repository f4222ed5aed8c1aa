package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/xdr"
)

// onAllTransports runs a test over TCP and over both versions of RPC-over-RDMA. dial serves h, and dials that server, until the test ends.
func onAllTransports(t *testing.T, f func(t *testing.T, transport string, dial func(h Handler, so *ServerOptions, also ...*Program) (*Server, *Client))) {
	for _, x := range []struct {
		transport string
		versions  Versions
	}{{"tcp", 0}, {"rdma v1", V1}, {"rdma v2", V2}} {
		t.Run(x.transport, func(t *testing.T) {
			f(t, x.transport, func(h Handler, so *ServerOptions, also ...*Program) (*Server, *Client) {
				serves := serve
				if x.versions != 0 {
					serves = serveRDMA
				}
				s, address := serves(t, h, so, also...)
				return s, dial(t, address, &ClientOptions{Versions: x.versions})
			})
		})
	}
}

// text is results or arguments that are no item by reference.
type text []byte

func (v text) MarshalXDR(e *xdr.Encoder)    { e.Opaque(v) }
func (v *text) UnmarshalXDR(d *xdr.Decoder) { *v = d.Opaque(4 << 20) }

// tableless returns a version of the test program without items by reference.
func tableless() *Program {
	return &Program{Number: testProgram.Number, Version: testProgram.Version + 1, Name: "TEST", Procedures: make([]Procedure, len(testProgram.Procedures))}
}

// TestTooLongReplies checks that a reply for which a call has no room is ErrTooLong whatever the transport, whether the results are too long, or their
// item, and however long they are; that the error has the lengths that are known; and that the connection goes on (RPC1-051, RPC2-088, RPC2-104).
func TestTooLongReplies(t *testing.T) {
	onAllTransports(t, func(t *testing.T, transport string, dial func(Handler, *ServerOptions, ...*Program) (*Server, *Client)) {
		h := &service{}
		bare := tableless()
		_, c := dial(h, nil, bare)
		b := c.Bind(testProgram, None)
		if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			name    string
			item, n int // what the server returns: an item, or other results
			o       CallOptions
			lengths []string // in the error; over version 1 only those of this side are known
		}{
			{"a short item for a shorter place", 1000, 0, CallOptions{Into: make([]byte, 999)}, []string{"1000", "999"}},
			{"a long item for a short place", 100000, 0, CallOptions{Into: make([]byte, 999)}, []string{"999"}},
			{"a long item for a long place", 100001, 0, CallOptions{Into: make([]byte, 100000)}, []string{"100001", "100000"}},
			{"the same, lent", 100001, 0, CallOptions{Into: make([]byte, 100000), Direct: true}, []string{"100001", "100000"}},
			{"without a place, longer than MaxReply", 2 << 20, 0, CallOptions{}, nil},
			{"without a place, short, longer than MaxResults", 900, 0, CallOptions{MaxResults: 800}, []string{"800"}},
			{"without a place, longer than MaxResults", 90000, 0, CallOptions{MaxResults: 3000}, []string{"3000"}},
			{"results a little too long", 0, 1021, CallOptions{}, []string{"1028", "1024"}},
			{"results too long", 0, 100000, CallOptions{}, []string{"1024"}},
			{"results longer than those of the call", 0, 5000, CallOptions{MaxResults: 5000}, []string{"5000"}},
			{"long results longer than those of the call", 0, 500000, CallOptions{MaxResults: 400000}, []string{"400000"}},
		} {
			h.backBy(func(_ context.Context, c *Call) error { return c.Reply(text(make([]byte, x.n))) })
			var err error
			if x.item > 0 {
				err = b.Call(t.Context(), procRead, num(x.item), &data{}, &x.o)
			} else {
				err = c.Bind(bare, None).Call(t.Context(), procBack, nil, new(text), &x.o)
			}
			if !errors.Is(err, ErrTooLong) {
				t.Errorf("%s: %v", x.name, err)
				continue
			}
			if strings.Contains(err.Error(), "arguments") { // the call has none that may be refused
				t.Errorf("%s: %v", x.name, err)
			}
			for i, length := range x.lengths {
				if own := i == len(x.lengths)-1; (own || transport != "rdma v1") && !strings.Contains(err.Error(), length) {
					t.Errorf("%s: %v, want %s", x.name, err, length)
				}
			}
		}
		var out text
		h.backBy(func(_ context.Context, c *Call) error { return c.Reply(text(make([]byte, 1020))) })
		if err := c.Bind(bare, None).Call(t.Context(), procBack, nil, &out, nil); err != nil || len(out) != 1020 {
			t.Errorf("results as long as MaxResults: %v", err)
		}
		if err := b.Call(t.Context(), procRead, num(1<<20), &data{}, nil); err != nil {
			t.Errorf("an item without a place: %v", err)
		}
		if n := c.Stats().Connections; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// failures is what ServerOptions.Failed was told.
type failures struct {
	mu  sync.Mutex
	all []string
}

func (f *failures) options() *ServerOptions {
	return &ServerOptions{Failed: func(c *Call, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, fmt.Sprintf("%s: %v", c.Program.call(c.Procedure), err))
	}}
}

// take returns what was told since the last take. The reply to the call has come.
func (f *failures) take() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, f.all = f.all, nil
	return all
}

// TestTooLongCalls checks that a call longer than MaxCall fails with ErrSystem whatever the transport and however the arguments travel; that Failed
// is told of it, with both lengths, if the procedure is known and there; and that the connection goes on (ONC-007, RPC2-031, RPC2-096, RPC2-104).
func TestTooLongCalls(t *testing.T) {
	onAllTransports(t, func(t *testing.T, transport string, dial func(Handler, *ServerOptions, ...*Program) (*Server, *Client)) {
		var f failures
		so := f.options()
		so.MaxCall = 3000
		s, c := dial(&service{}, so)
		b := c.Bind(testProgram, None)
		if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		for i, x := range []struct {
			name   string
			args   xdr.Marshaler
			length string
			o      *CallOptions
		}{
			{"short", &data{b: make([]byte, 3001)}, "3056", nil},
			{"long", &data{b: make([]byte, 100000)}, "", nil},
			{"long, lent, with a place for the results", &data{b: make([]byte, 100000)}, "", &CallOptions{Into: make([]byte, 200000), Direct: true}},
			{"as a whole", text(make([]byte, 100000)), "", nil},
		} {
			if err := b.Call(t.Context(), procEcho, x.args, &data{}, x.o); !errors.Is(err, ErrSystem) {
				t.Errorf("%s: %v", x.name, err)
			}
			told := f.take()
			if n := s.Stats(); n.TooLong != uint64(i+1) || n.Failed != uint64(i+1) {
				t.Errorf("%s: counted %+v", x.name, n)
			}
			if transport == "rdma v1" && x.name == "as a whole" { // all of it is to be fetched, and nothing is
				continue
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], "ECHO of TEST version 3: ") || !strings.Contains(told[0], "MaxCall") || !strings.Contains(told[0], "3000") || !strings.Contains(told[0], x.length) {
				t.Errorf("%s: Failed was told %q", x.name, told)
			}
		}
		long := text(make([]byte, 5000))
		for _, p := range []*Program{{Number: 9, Version: 9}, {Number: testProgram.Number, Version: 9, Procedures: testProgram.Procedures}, testProgram} {
			err := c.Bind(p, None).Call(t.Context(), 99, &long, nil, nil)
			if told := f.take(); !errors.Is(err, ErrSystem) || len(told) > 0 {
				t.Errorf("a procedure that there is not: %v, Failed was told %q", err, told)
			}
		}
		var out data
		if err := b.Call(t.Context(), procEcho, &data{b: make([]byte, 2900)}, &out, nil); err != nil || len(out.b) != 2900 {
			t.Errorf("a call as long as MaxCall: %v", err)
		}
		if n := c.Stats().Connections; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// twoItems is arguments or results with two items by reference.
type twoItems struct{ a, b []byte }

func (v *twoItems) MarshalXDR(e *xdr.Encoder)   { e.Bulk(v.a); e.Bulk(v.b) }
func (v *twoItems) UnmarshalXDR(d *xdr.Decoder) { v.a, v.b = d.Bulk(1<<20), d.Bulk(1<<20) }

// TestItemsAndTable checks that more items by Bulk than the table allows are found whatever the transport and the length: at the client as ErrBulk, and at
// the server as ErrSystem, of which Failed is told. So is a place for an item that the results do not have (RPC2-029).
func TestItemsAndTable(t *testing.T) {
	onAllTransports(t, func(t *testing.T, _ string, dial func(Handler, *ServerOptions, ...*Program) (*Server, *Client)) {
		var f failures
		h := &service{}
		bare := tableless()
		_, c := dial(h, f.options(), bare)
		wide := *bare
		wide.Procedures = []Procedure{procEcho: {BulkArgs: 1, BulkResults: 1}, procBack: {BulkResults: 2}}
		for _, n := range []int{1, 1000, 5000, 100000} {
			item := make([]byte, n)
			for _, x := range []struct {
				name      string
				program   *Program
				procedure uint32
				args      xdr.Marshaler
				results   xdr.Unmarshaler
				o         *CallOptions
				says      string // at the client, or else by Failed
				failed    bool
			}{
				{"an item of arguments", bare, procEcho, &data{b: item}, &data{}, nil, "BulkArgs is 0", false},
				{"two items of arguments", testProgram, procEcho, &twoItems{item, item}, &data{}, nil, "2 items by Bulk, and BulkArgs is 1", false},
				{"a procedure that is not in the table", testProgram, 99, &data{b: item}, &data{}, nil, "BulkArgs is 0", false},
				{"a place for no item", testProgram, procAdd, num(1), num(0), &CallOptions{Into: item}, "BulkResults is 0", false},
				{"results at the client", bare, procBack, nil, &data{}, nil, "BulkResults is 0", false},
				{"results at the server", &wide, procRead, num(n), &data{}, nil, "results with 1 items by Bulk, and BulkResults is 0", true},
				{"two results at the server", testProgram, procBack, nil, &twoItems{}, nil, "results with 2 items by Bulk, and BulkResults is 1", true},
			} {
				h.backBy(func(_ context.Context, c *Call) error {
					if x.results == nil || !x.failed { // as the client decodes it, and not by Bulk
						return c.Reply(rawWords{0, 4, 0, 0})
					}
					return c.Reply(&twoItems{item, item})
				})
				err := c.Bind(x.program, None).Call(t.Context(), x.procedure, x.args, x.results, x.o)
				told := f.take()
				switch {
				case !x.failed && (!errors.Is(err, ErrBulk) || !strings.Contains(err.Error(), x.says) || len(told) > 0):
					t.Errorf("%s of %d octets: %v, Failed was told %q", x.name, n, err, told)
				case x.failed && (!errors.Is(err, ErrSystem) || len(told) != 1 || !strings.Contains(told[0], x.says)):
					t.Errorf("%s of %d octets: %v, Failed was told %q", x.name, n, err, told)
				}
			}
			// The server's handler takes an item that its own table does not have: short ones come within the message.
			err := c.Bind(&wide, None).Call(t.Context(), procEcho, &data{b: item}, &data{}, nil)
			told := f.take()
			var refused *rpcrdma.PeerError
			switch {
			case errors.As(err, &refused) && strings.Contains(err.Error(), "table") || errors.Is(err, ErrTooLong) && strings.Contains(err.Error(), "arguments"):
			case errors.Is(err, ErrSystem) && len(told) == 1 && strings.Contains(told[0], "BulkArgs is 0"):
			default:
				t.Errorf("an item of %d octets that the server's table does not have: %v, Failed was told %q", n, err, told)
			}
		}
	})
}

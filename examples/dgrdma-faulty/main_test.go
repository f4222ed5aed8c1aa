package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/xdr"
)

func TestMain(m *testing.M) { os.Exit(fixture.Run(m)) }

// written is called with what is written.
type written func(string)

func (w written) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }

var program = &rpc.Program{Number: 0x20007493, Version: 1, Name: "FAULTY", Procedures: []rpc.Procedure{
	{Name: "NULL"}, {Name: "DATA", BulkResults: 1, Idempotent: true},
}}

// item is the results of procedure 1.
type item []byte

func (v *item) UnmarshalXDR(d *xdr.Decoder) { *v = d.Bulk(1 << 20) }

// TestFaults checks what the clients of package rpc make of each fault: whether the call succeeds all the same, over another connection where
// that is needed, or with which error it fails.
func TestFaults(t *testing.T) {
	any := errors.New("any")
	for name, x := range map[string]struct {
		every       int
		err         error // of the fourth call of four; nil: all succeed
		connections bool  // there were several
	}{
		"none": {1, nil, false}, "twice": {1, nil, false}, "credit": {1, nil, false}, "lost": {3, nil, true}, "stray": {3, nil, true}, "end": {3, nil, true}, "cut": {3, nil, true},
		"long": {4, rpcrdma.ErrReply, false}, "handle": {4, rpcrdma.ErrReply, false}, "inline": {4, xdr.ErrInvalid, false}, "refuse": {4, any, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			says := make(chan string, 1)
			served := make(chan error, 1)
			go func() {
				served <- serve(ctx, "tcp:127.0.0.1", "0", name, x.every, written(func(s string) { says <- s }))
			}()
			where := strings.TrimPrefix(strings.TrimSpace(<-says), "serving on ")
			o := &rpc.ClientOptions{}
			if x.connections { // or a busy machine makes another one
				o.Timeout = 300 * time.Millisecond
			}
			c, err := rpc.Dial(t.Context(), where, o)
			if err != nil {
				t.Fatal(err)
			}
			b := c.Bind(program, rpc.None)
			for i := range 4 {
				var got item
				err := b.Call(t.Context(), 1, nil, &got, &rpc.CallOptions{Into: make([]byte, 64<<10)})
				switch {
				case i < 3 || x.err == nil:
					if err != nil || !bytes.Equal(got, data()) {
						t.Errorf("call %d: %d octets, %v", i, len(got), err)
					}
				case x.err == any:
					var refused *rpcrdma.PeerError
					if !errors.As(err, &refused) {
						t.Errorf("call %d: %v", i, err)
					}
				case !errors.Is(err, x.err):
					t.Errorf("call %d: %v, want %v", i, err, x.err)
				}
			}
			if n := c.Stats(); (n.Connections > 1) != x.connections {
				t.Errorf("counted %+v", n)
			}
			c.Close()
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
	if err := serve(t.Context(), "tcp:127.0.0.1", "0", "none of these", 1, os.Stderr); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("an unknown fault: %v", err)
	}
}

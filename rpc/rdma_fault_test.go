package rpc

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
)

// TestFault checks that a server sends what its Fault says in place of a message: nothing, so that the client makes the call again over another
// connection; the reply twice, of which the client drops one; and the end of the connection.
func TestFault(t *testing.T) {
	for _, x := range []struct {
		name        string
		instead     func(b []byte) ([][]byte, bool)
		connections bool // there were several
	}{
		{"nothing", func([]byte) ([][]byte, bool) { return nil, true }, true},
		{"twice", func(b []byte) ([][]byte, bool) { return [][]byte{b, b}, true }, false},
		{"end", func(b []byte) ([][]byte, bool) { return [][]byte{b}, false }, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, _ string) {
				var replies atomic.Int64
				so.Fault = func(b []byte) ([][]byte, bool) {
					if p, ok := rpcrdma.Peek(b); ok && p.Type <= rpcrdma.TypeNoMsg && p.XID != 0 && replies.Add(1) == 2 {
						return x.instead(b)
					}
					return [][]byte{b}, true
				}
				_, address := serveRDMA(t, &service{}, so)
				if x.connections { // or a busy machine makes another one
					co.Timeout = 300 * time.Millisecond
				}
				c := dial(t, address, co)
				b := c.Bind(testProgram, None)
				for i := range 4 {
					var got data
					if err := b.Call(t.Context(), procRead, num(9000), &got, &CallOptions{Into: make([]byte, 9000)}); err != nil || len(got.b) != 9000 || got.b[255] != 255 {
						t.Errorf("call %d: %d octets, %v", i, len(got.b), err)
					}
				}
				if n := c.Stats(); (n.Connections > 1) != x.connections {
					t.Errorf("counted %+v", n)
				}
			})
		})
	}
}

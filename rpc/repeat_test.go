package rpc

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/rpcrdma"
)

// TestRefusedCallsAreRepeated checks that a call is made again, once and under another XID, when a server of version 2 takes no such chunks: then the
// items go without them, also of a procedure that is not idempotent, because the server has not carried it out. After other errors, and
// in version 1, it fails at once (RPC2-085, RPC2-112, RPC1-051).
func TestRefusedCallsAreRepeated(t *testing.T) {
	for _, x := range []struct {
		name    string
		version uint32
		report  rpcrdma.Report
		always  bool
		calls   int
		fails   bool
	}{
		{"no Read chunks", rpcrdma.Version2, rpcrdma.Report{Code: rpcrdma.CodeReadChunks}, false, 2, false},
		{"no segments", rpcrdma.Version2, rpcrdma.Report{Code: rpcrdma.CodeSegments}, false, 2, false},
		{"no Read chunks, again", rpcrdma.Version2, rpcrdma.Report{Code: rpcrdma.CodeReadChunks}, true, 2, true},
		{"BAD_XDR", rpcrdma.Version2, rpcrdma.Report{Code: rpcrdma.CodeBadXDR}, true, 1, true},
		{"SYSTEM", rpcrdma.Version2, rpcrdma.Report{Code: rpcrdma.CodeSystem}, true, 1, true},
		{"ERR_CHUNK", rpcrdma.Version1, rpcrdma.Report{Code: rpcrdma.CodeChunk}, true, 1, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			var mu sync.Mutex
			var xids []uint32
			var parts []byte
			address := serveReplies(t, x.version, func(p *handPeer, h rpcrdma.Header, message []byte) {
				parts = append(parts, message...)
				if h.Flags&rpcrdma.FlagMore != 0 {
					return
				}
				mu.Lock()
				xids = append(xids, h.XID)
				first := len(xids) == 1
				mu.Unlock()
				whole := parts
				parts = nil
				if first || x.always {
					p.send(rpcrdma.Header{XID: h.XID, Type: rpcrdma.TypeError, Flags: p.flags(), Report: x.report}, nil)
					return
				}
				want := callOf(h.XID, procAdd, &data{7, bytes.Repeat([]byte{1}, 9000), "after"})
				if len(h.Reads) > 0 || !bytes.Equal(whole, want) {
					t.Errorf("the second call has %d Read chunks and %d octets", len(h.Reads), len(whole))
				}
				p.send(rpcrdma.Header{XID: h.XID, Flags: p.flags()}, replyTo(h.XID, num(7)))
			})
			o := &ClientOptions{Versions: Versions(x.version)}
			c := dial(t, address, o)
			sum := num(0)
			err := c.Bind(testProgram, None).Call(t.Context(), procAdd, &data{7, bytes.Repeat([]byte{1}, 9000), "after"}, sum, nil)
			var refused *rpcrdma.PeerError
			if x.fails != errors.As(err, &refused) || !x.fails && (err != nil || *sum != 7) {
				t.Errorf("%v, the result is %d", err, *sum)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(xids) != x.calls || len(xids) == 2 && xids[0] == xids[1] {
				t.Errorf("the server got calls %x, want %d", xids, x.calls)
			}
			if n := c.Stats(); n.Repeated != uint64(x.calls-1) || n.Calls != 1 {
				t.Errorf("counted %+v", n)
			}
		})
	}
}

package text_test

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/rpcrdma"
)

// TestPrivateData checks that private data of RPC-over-RDMA are shown in words too, and those of something else are not (RPC1-020).
func TestPrivateData(t *testing.T) {
	for _, c := range []struct {
		private    []byte
		line, json string
	}{
		{rpcrdma.Private{SendSize: 4096, ReceiveSize: 8192, Invalidate: true}.Append(nil),
			"private data 8 bytes f6ab0e1801010307 (RPC-over-RDMA: Sends of up to 4096 bytes, receives of 8192, takes remote invalidation)\n",
			`"private":"f6ab0e1801010307","rpc_over_rdma":{"send_size":4096,"receive_size":8192,"remote_invalidation":true}}`},
		{rpcrdma.Private{SendSize: 1024, ReceiveSize: 1024}.Append(nil),
			"(RPC-over-RDMA: Sends of up to 1024 bytes, receives of 1024, no remote invalidation)\n", `"remote_invalidation":false}}`},
		{[]byte{0xf6, 0xab, 0x0e, 0x18, 2, 1, 3, 7}, "private data 8 bytes f6ab0e1802010307\n", `"private":"f6ab0e1802010307"}`},
	} {
		e := &iwarp.Event{Kind: iwarp.SetUp, Conn: &iwarp.Connection{TCP: &tcp.Connection{}}, SetUp: mpa.SetUp{Rev: 2, CRC: true, Private: c.private}}
		for style, want := range map[text.Style]string{text.Line: c.line, text.Fields: c.line, text.JSON: c.json} {
			p := text.Printer{Style: style}
			if got := string(p.AppendEvent(nil, e)); !strings.Contains(got, want) {
				t.Errorf("%s has no %s", got, want)
			}
		}
	}
}

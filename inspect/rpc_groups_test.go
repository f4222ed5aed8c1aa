package inspect

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
)

// TestOneCauseIsToldOnce checks that what was found of a kind on several connections of a client to a server is one finding, with how many there are, and that
// connections to another server have one of their own.
func TestOneCauseIsToldOnce(t *testing.T) {
	var all []*connection
	for i := range 6 {
		k := carrying(map[rpcrdma.What]rpcrdma.Found{rpcrdma.Unanswered: {N: 1, Record: 10 * (i + 1), Text: "NFS 3 WRITE"}, rpcrdma.Malformed: {N: 2, Record: 10*i + 15, Way: 1, Text: "cut"}})
		k.ways[1].reset = 10*i + 19
		all = append(all, k)
	}
	all[2].of.TCP.Ends[1] = netip.MustParseAddrPort("10.0.0.9:20049")
	var c findings
	for _, k := range all {
		k.aboutEnd(&c, 1) // says nothing of its own of the reset
	}
	aboutRPC(&c, all)
	var got []string
	for _, f := range c.all {
		got = append(got, f.Kind+": "+f.Text)
	}
	for _, want := range []string{
		"RPC malformed: 10 messages of RPC-over-RDMA are malformed; the first is from 10.0.0.2:20049 on 5 connections: cut.",
		"RPC malformed: 2 messages of RPC-over-RDMA are malformed; the first is from 10.0.0.9:20049: cut.",
		"RPC unanswered: 5 Calls of 10.0.0.3 on 5 connections to 10.0.0.2:20049 have no Reply at the end of the connection: the caller has to send them again on a new one, or to give them up. " +
			"The first is NFS 3 WRITE. 5 of these connections were reset, the first in record 19.",
		"RPC unanswered: 1 Call of 10.0.0.3:40000 has no Reply at the end of the connection: the caller has to send it again on a new one, or to give it up. " +
			"The first is NFS 3 WRITE. 10.0.0.9:20049 reset the connection in record 39.",
	} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no %s", want)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d findings: %s", len(got), strings.Join(got, "\n"))
	}
}

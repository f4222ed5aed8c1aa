package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
)

// TestCreditsInUse checks that a side without a credit for long is told of, with how long, and that one without a credit for a moment is not.
func TestCreditsInUse(t *testing.T) {
	for _, c := range []struct {
		full, lasted time.Duration
		grant        int
		want         string
	}{
		{1400 * time.Millisecond, 2100 * time.Millisecond, 4, "warning: All 4 credits that 10.0.0.2:20049 grants were in use for 1.4 s of 2.1 s, "},
		{1400 * time.Millisecond, 2100 * time.Millisecond, 1, "warning: The only credit that 10.0.0.2:20049 grants was in use for 1.4 s of 2.1 s, "},
		{600 * time.Millisecond, 2100 * time.Millisecond, 4, "note: All 4 credits that "},
		{400 * time.Millisecond, 2100 * time.Millisecond, 4, ""},
		{9 * time.Millisecond, 9 * time.Millisecond, 4, ""},
	} {
		k := carrying(nil)
		k.last = c.lasted
		k.rpc.of.Sides[0].Full, k.rpc.of.Sides[0].FullRecord, k.rpc.of.Sides[0].Grant = c.full, 17, c.grant
		var all findings
		k.aboutRPC(&all)
		switch {
		case c.want == "" && len(all.all) == 0:
		case len(all.all) != 1 || c.want == "" || !strings.HasPrefix(string(all.all[0].Severity)+": "+all.all[0].Text, c.want) || all.all[0].Records[0] != 17:
			t.Errorf("%v of %v: %+v, want %q", c.full, c.lasted, all.all, c.want)
		}
	}
}

// TestSlowestCalls checks that the slowest Calls are known, with where their time went, and the longest of each procedure.
func TestSlowestCalls(t *testing.T) {
	k := carrying(nil)
	at := time.Unix(1e9, 0)
	for i, took := range []time.Duration{3, 9, 1, 7, 9, 8, 2, 5} {
		c := &rpcrdma.Call{XID: 0xa0 + uint32(i), At: tcp.Ref{Record: 10 * i, Time: at}, RPC: rpcrdma.RPC{Known: true, Program: 100003, ProgramVersion: 3, Procedure: 6 + uint32(i)%2}, Reading: 2, Writing: time.Second}
		k.rpc.message(&rpcrdma.Message{Kind: rpcrdma.CallKind, Call: c})
		k.rpc.message(&rpcrdma.Message{Kind: rpcrdma.ReplyKind, Call: c, Last: tcp.Ref{Record: 10*i + 1, Time: at.Add(took)}})
	}
	r := k.rpcReport()
	var xids []string
	for _, s := range r.Slowest {
		xids = append(xids, s.XID)
		if s.Reads != 2 || s.Reads+s.Writes+s.Server != s.Took || s.Reply != s.Record+1 {
			t.Errorf("%+v", s)
		}
	}
	if got := strings.Join(xids, " "); got != "0xa1 0xa4 0xa5 0xa3 0xa7" {
		t.Error(got)
	}
	for _, p := range r.Procedures {
		if want := map[string]string{"NFS 3 READ": "0xa4", "NFS 3 WRITE": "0xa1"}[p.Name]; p.MaxXID != want || p.Max != 9 || p.MaxRecord == 0 {
			t.Errorf("%+v, want %s", p, want)
		}
	}
}

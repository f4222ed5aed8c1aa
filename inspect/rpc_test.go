package inspect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// carrying is a connection of RPC-over-RDMA of which something was found.
func carrying(found map[rpcrdma.What]rpcrdma.Found, errors ...rpcrdma.Reported) *connection {
	k := &connection{of: &iwarp.Connection{TCP: &tcp.Connection{Ends: [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.3:40000"), netip.MustParseAddrPort("10.0.0.2:20049")}}}}
	k.rpc.of = &rpcrdma.Connection{IWARP: k.of, Known: true, Errors: errors}
	for w, f := range found {
		k.rpc.of.Found[w] = f
	}
	return k
}

// TestFindingsOfRPC checks that each kind of findings has words, with how many there are, of which side, and where to look.
func TestFindingsOfRPC(t *testing.T) {
	for w := range rpcrdma.Whats {
		for _, n := range []int{1, 3} {
			var c findings
			carrying(map[rpcrdma.What]rpcrdma.Found{w: {N: n, Record: 12, Other: 7, Way: 1, Text: "what it says", Bytes: 2000}}).aboutRPC(&c)
			if len(c.all) != 1 {
				t.Fatalf("%d: %d findings", w, len(c.all))
			}
			f := &c.all[0]
			t.Logf("%s %s: %s", f.Severity, f.Kind, f.Text)
			if f.Kind == "" || strings.Contains(f.Text, "%!") || !strings.HasSuffix(f.Text, ".") || len(f.Records) != 2 || f.Records[1] != 12 ||
				w != rpcrdma.Unasked && !strings.Contains(f.Text, "what it says") ||
				w != rpcrdma.InlineData && !strings.Contains(f.Text, "10.0.0.2:20049") ||
				w != rpcrdma.FallBack && !strings.Contains(f.Text, count(n, rpcWordings[w].thing)) {
				t.Errorf("%d: %+v", w, f)
			}
		}
	}
}

// TestUnansweredCalls checks that a Call without a Reply is a problem only where the connection has ended.
func TestUnansweredCalls(t *testing.T) {
	for _, c := range []struct {
		end  func(k *connection)
		want Severity
	}{
		{func(*connection) {}, Note},
		{func(k *connection) { k.ways[1].closed = 9 }, Problem},
		{func(k *connection) { k.ways[0].reset = 9 }, Problem},
	} {
		k := carrying(map[rpcrdma.What]rpcrdma.Found{rpcrdma.Unanswered: {N: 1, Record: 5}})
		c.end(k)
		var all findings
		if k.aboutRPC(&all); len(all.all) != 1 || all.all[0].Severity != c.want || strings.Contains(all.all[0].Text, "the end of the connection") != (c.want == Problem) {
			t.Errorf("%+v, want a %s", all.all, c.want)
		}
	}
}

// TestErrorsOfRPC checks how errors are told: ERR_VERS after which the client falls back is no more than a note.
func TestErrorsOfRPC(t *testing.T) {
	vers, chunk := codec.CodeVers.Name(1), codec.CodeChunk.Name(1)
	fell := map[rpcrdma.What]rpcrdma.Found{rpcrdma.FallBack: {N: 1, Record: 6, Other: 4}}
	for _, c := range []struct {
		code  string
		other int
		found map[rpcrdma.What]rpcrdma.Found
		want  string
	}{
		{vers, 4, fell, "note: 10.0.0.2:20049 reported ERR_VERS once: the caller takes another version."},
		{vers, 4, nil, "warning: 10.0.0.2:20049 reported ERR_VERS once: what the Calls asked for was not done."},
		{chunk, 0, fell, "warning: 10.0.0.2:20049 reported ERR_CHUNK once: what it refuses is not known."},
		{chunk, 3, nil, "warning: 10.0.0.2:20049 reported ERR_CHUNK once: what the Calls asked for was not done."},
	} {
		var all findings
		carrying(c.found, rpcrdma.Reported{Code: c.code, Found: rpcrdma.Found{N: 1, Record: 5, Way: 1, Other: c.other}}).aboutRPC(&all)
		f := all.all[len(all.all)-1]
		if got := string(f.Severity) + ": " + f.Text; got != c.want || f.Kind != "RPC error" {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

// TestProceduresOfCompounds checks that COMPOUNDs of NFS 4 are told apart by their operations, and that Calls that were not taken, and statuses that are errors, are counted.
func TestProceduresOfCompounds(t *testing.T) {
	k := carrying(nil)
	for i, operations := range [][]string{{"PUTFH", "READ"}, {"PUTFH", "WRITE"}, {"PUTFH", "READ"}, {"PUTFH", "READ"}} {
		c := &rpcrdma.Call{RPC: rpcrdma.RPC{Known: true, Program: 100003, ProgramVersion: 4, Procedure: 1, Compound: &rpcrdma.Compound{Minor: 2, Operations: operations, Count: 2}}}
		k.rpc.message(&rpcrdma.Message{Kind: rpcrdma.CallKind, Call: c})
		s := rpcrdma.Status{Known: true, HasResult: true, Result: uint32(i) & 2}
		if i == 3 {
			s = rpcrdma.Status{Known: true, Denied: true}
		}
		k.rpc.message(&rpcrdma.Message{Kind: rpcrdma.ReplyKind, Call: c, Status: s})
	}
	var got []string
	for _, p := range k.rpcReport().Procedures {
		got = append(got, fmt.Sprintf("%s: %d %d, refused %d, errors %d", p.Name, p.Calls, p.Replies, p.Failed, p.Errors))
	}
	want := []string{"NFS 4.2 COMPOUND (PUTFH, READ): 3 3, refused 1, errors 1", "NFS 4.2 COMPOUND (PUTFH, WRITE): 1 1, refused 0, errors 0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestManyProcedures checks that procedures without number are counted together beyond the bound, and none is forgotten.
func TestManyProcedures(t *testing.T) {
	k := carrying(nil)
	for i := range uint32(500) {
		call := &rpcrdma.Call{RPC: rpcrdma.RPC{Known: true, Program: i, ProgramVersion: 1}}
		k.rpc.message(&rpcrdma.Message{Kind: rpcrdma.CallKind, Call: call})
		k.rpc.message(&rpcrdma.Message{Kind: rpcrdma.ReplyKind, Call: call})
	}
	calls, replies := 0, 0
	r := k.rpcReport()
	for _, p := range r.Procedures {
		calls, replies = calls+p.Calls, replies+p.Replies
	}
	if calls != 500 || replies != 500 || len(r.Procedures) != mostProcedures+1 || r.Procedures[0].Name != "other procedures" {
		t.Errorf("%d calls, %d replies, %d procedures, the first is %+v", calls, replies, len(r.Procedures), r.Procedures[0])
	}
}

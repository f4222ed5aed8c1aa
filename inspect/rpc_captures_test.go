package inspect_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	captured "github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// rpcIn analyzes a capture of NFS over RDMA, of which keep can leave records out.
func rpcIn(t testing.TB, file string, keep func(number int) bool) *inspect.Report {
	t.Helper()
	a := inspect.New()
	d := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error { a.Event(e); return nil })
	for i, r := range captured.Of(t, file) {
		if keep != nil && !keep(i+1) {
			continue
		}
		if err := d.Add(i+1, &r); err != nil {
			t.Fatal(err)
		}
	}
	d.End()
	return a.Report()
}

const rpcCaptures = "../rpcrdma/testdata/"

// rpcFindings are those of RPC-over-RDMA.
func rpcFindings(r *inspect.Report) (all []string) {
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Kind, "RPC") {
			all = append(all, fmt.Sprintf("%s %s %v: %s", f.Severity, f.Kind, f.Records, f.Text))
		}
	}
	return all
}

// TestReportsOfLinux checks that no finding about Linux's client and server is false: nothing went wrong in the captures, as their .run files say.
// Their Calls with several STags, and one WRITE of 2547 octets inline, are in the list of another decoder, too (LX-24).
func TestReportsOfLinux(t *testing.T) {
	files, err := filepath.Glob(rpcCaptures + "*.pcap.gz")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		r := rpcIn(t, file, nil)
		for _, f := range rpcFindings(r) {
			if !strings.HasPrefix(f, "note RPC STags") && !strings.HasPrefix(f, "note RPC inline data [522]: 1 message has file data inline, 2.55 KB") {
				t.Errorf("%s: %s", filepath.Base(file), f)
			}
		}
		for _, c := range r.Connections {
			if c.RPC == nil || c.RPC.Version != 1 || c.RPC.Granted != 64 || c.RPC.Client != c.From || len(c.RPC.Procedures) == 0 {
				t.Errorf("%s: %+v", filepath.Base(file), c.RPC)
			}
		}
	}
}

// TestProceduresOfLinux checks counts, octets and times of a capture in which a client read 150003 octets, wrote them, and read them back.
func TestProceduresOfLinux(t *testing.T) {
	r := rpcIn(t, rpcCaptures+"v3-size-65536.pcap.gz", nil)
	var got []string
	for _, p := range r.Connections[0].RPC.Procedures {
		if p.Min <= 0 || p.Min > p.Median || p.Median > p.Max || p.Failed != 0 {
			t.Errorf("%+v", p)
		}
		got = append(got, fmt.Sprintf("%s %d %d %d %d", p.Name, p.Calls, p.Replies, p.Placed, p.Fetched))
	}
	want := []string{
		"NFS 3 READ 8 8 300006 0", "NFS 3 ACCESS 4 4 0 0", "NFS 3 WRITE 3 3 0 150003", "NFS 3 FSINFO 2 2 0 0", "NFS 3 GETATTR 2 2 0 0", "NFS 3 LOOKUP 2 2 0 0", "NFS 3 NULL 1 1 0 0",
		"NFS 3 PATHCONF 1 1 0 0", "NFSACL 3 NULL 1 1 0 0", "NFSACL 3 GETACL 1 1 136 0", "NFS 3 CREATE 1 1 0 0", "NFS 3 COMMIT 1 1 0 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReportsOfWhatIsMissing checks that captures that begin late, end early or lack any of their records make no false finding. What lacks a record may
// have Calls without a Reply if that is the end of the capture.
func TestReportsOfWhatIsMissing(t *testing.T) {
	check := func(file, what string, keep func(int) bool) {
		for _, f := range rpcFindings(rpcIn(t, file, keep)) {
			if !strings.HasPrefix(f, "note RPC") {
				t.Errorf("%s %s: %s", filepath.Base(file), what, f)
			}
		}
	}
	for _, name := range []string{"v3-crc", "v3-symlink-acl", "v4.1-basic", "v3-server-restart"} {
		file := rpcCaptures + name + ".pcap.gz"
		for at := 1; at < 350; at++ {
			if testing.Short() && at%10 != 3 {
				continue
			}
			check(file, fmt.Sprint("without ", at), func(n int) bool { return n != at })
			if at%5 == 0 {
				check(file, fmt.Sprint("from ", at), func(n int) bool { return n >= at })
				check(file, fmt.Sprint("up to ", at), func(n int) bool { return n < at })
				check(file, fmt.Sprint("without ten from ", at), func(n int) bool { return n < at || n >= at+10 })
			}
		}
	}
}

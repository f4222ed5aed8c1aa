package nfs3_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/xdr"
)

// TestLongListings checks that a caller which allows a reply of 4 GiB to READDIR or READDIRPLUS is told 64 KiB of a large directory at once, for which the server takes
// little memory; and that all entries come nevertheless, each once.
func TestLongListings(t *testing.T) {
	const files, allowed = 40000, 1<<32 - 1
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	for i := range files {
		u.Create(u.Root, fmt.Sprintf("%x", i), 0o600)
	}
	c := callerOf(t, serve(t, u.FS, nil), asRoot)
	for _, plus := range []bool{false, true} {
		seen := map[string]bool{}
		var from nfs3.DirPosition
		for end := false; !end; {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := new(nfs3.ReadDirResult)
			var e xdr.Encoder
			if plus {
				r := (*nfs3.ReadDirPlusResult)(r)
				c.call(nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: u.Root, Cookie: from.Cookie, Verifier: from.Verifier, DirCount: allowed, MaxCount: allowed}, r)
				r.MarshalXDR(&e)
			} else {
				c.call(nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: u.Root, Cookie: from.Cookie, Verifier: from.Verifier, Count: allowed}, r)
				r.MarshalXDR(&e)
			}
			runtime.ReadMemStats(&after)
			if n := e.Len() - 4; r.Status != nfs3.OK || len(r.Entries) == 0 || n > 1<<16 || !r.EOF && n < 1<<16-200 {
				t.Fatalf("%v, %d entries, %d octets", r.Status, len(r.Entries), n)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 { // of client, server and this test
				t.Errorf("plus %v: a call took %d octets", plus, took)
			}
			for _, e := range r.Entries {
				if seen[e.Name] {
					t.Fatalf("%s comes twice", e.Name)
				}
				seen[e.Name] = true
				from.Cookie = e.Cookie
			}
			from.Verifier, end = r.Verifier, r.EOF
		}
		if len(seen) != files+2 {
			t.Errorf("plus %v: %d entries", plus, len(seen))
		}
	}
}

package nfs3_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
)

// TestLongNames checks that a client refuses a name of more than 255 octets itself, as Linux's server cannot decode one (it answers
// GARBAGE_ARGS), and that our server answers such a name by a status.
func TestLongNames(t *testing.T) {
	ctx := t.Context()
	r, err := rpc.Dial(ctx, serve(t, localfs.NewMemory(nil), nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	root, err := nfs3.Mount(ctx, r, "/", rpc.None)
	if err != nil {
		t.Fatal(err)
	}
	c, err := nfs3.NewClient(ctx, r, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", nfs3.MaxName+1)

	before := r.Stats().Calls
	_, lookup := c.Lookup(ctx, nil, root, long)
	_, _, create := c.Create(ctx, nil, root, long, &nfs3.CreateHow{})
	_, remove := c.Remove(ctx, nil, root, long)
	_, _, rename := c.Rename(ctx, nil, root, "a", root, long)
	_, _, link := c.Link(ctx, nil, root, root, long)
	for what, err := range map[string]error{"Lookup": lookup, "Create": create, "Remove": remove, "Rename": rename, "Link": link} {
		if !errors.Is(err, nfs3.ErrNameTooLong) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := r.Stats().Calls - before; n != 0 {
		t.Errorf("the client made %d calls", n)
	}

	var result nfs3.LookupResult
	err = r.Bind(nfs3.Program, rpc.None).Call(ctx, nfs3.ProcLookup, &nfs3.LookupArgs{What: nfs3.DirName{Dir: root, Name: long}}, &result, nil)
	if err != nil || result.Status != nfs3.ErrNameTooLong {
		t.Errorf("the server answers by %v, %v", result.Status, err)
	}
}

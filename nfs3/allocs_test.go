package nfs3_test

import (
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestAllocations checks that client and server together take memory at most six times for a READ or WRITE, however long it is.
func TestAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector takes memory, and gives back less")
	}
	for transport, serve := range map[string]func(testing.TB, nfs3.FS, *nfs3.ServerOptions) string{"tcp": serve, "rdma": serveRDMA} {
		m := localfs.NewMemory(nil)
		root, _ := m.Root(t.Context())
		f, _, err := m.Create(t.Context(), &nfs3.Cred{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, root.Handle, "f", &nfs3.CreateHow{})
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, serve(t, m, &nfs3.ServerOptions{Squash: nfs3.SquashNone}), "/")
		for _, size := range []int{4096, 1 << 20} {
			data := make([]byte, size)
			if _, _, err := m.Write(t.Context(), nil, f.Handle, data, 0, nfs3.Unstable); err != nil {
				t.Fatal(err)
			}
			for name, call := range map[string]func(){
				"WRITE": func() {
					if w, _, err := c.Write(t.Context(), nil, f.Handle, data, 0, nfs3.Unstable); err != nil || int(w.Count) != size {
						t.Fatal(w, err)
					}
				},
				"READ": func() {
					if n, _, err := c.Read(t.Context(), nil, f.Handle, data, 0); err != nil || n != size {
						t.Fatal(n, err)
					}
				},
			} {
				if n := fixture.Allocations(150, call); n > 6 {
					t.Errorf("%s, %s of %d octets: %v allocations", transport, name, size, n)
				}
			}
		}
	}
}

package nfs3_test

import (
	"runtime"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestAllocations checks that client and server together take memory at most six times for a READ or WRITE over RDMA, however long it is.
// Over TCP garbage collections empty the pools of long buffers during the calls, and it varies.
func TestAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector takes memory, and gives back less")
	}
	most := map[string]uint64{"rdma": 6, "tcp": 24}
	for transport, serve := range map[string]func(testing.TB, nfs3.FS, *nfs3.ServerOptions) string{"tcp": serve, "rdma": serveRDMA} {
		m := nfs3.NewMemory(nil)
		root, _ := m.Root(t.Context())
		f, _, err := m.Create(t.Context(), nil, root.Handle, "f", &nfs3.CreateHow{})
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
				const calls = 300
				var before, after runtime.MemStats
				for i := range 2 * calls {
					if i == calls { // receives and tables have their length
						runtime.ReadMemStats(&before)
					}
					call()
				}
				runtime.ReadMemStats(&after)
				if n := (after.Mallocs - before.Mallocs) / calls; n > most[transport] {
					t.Errorf("%s, %s of %d octets: %v allocations", transport, name, size, n)
				}
			}
		}
	}
}

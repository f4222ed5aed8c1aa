package rpc

import (
	"bytes"
	"context"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestAllocations checks how often client and server together take memory for a call: not at all for NULL, and at most twice for one with 4 KiB
// in both directions. Over RDMA that call has memory registered twice.
func TestAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector takes memory, and gives back less")
	}
	ctx := context.Background()
	args, results, o := data{b: bytes.Repeat([]byte("x"), 4096)}, data{}, CallOptions{Into: make([]byte, 4096)}
	for transport, most := range map[string][2]float64{"tcp": {0, 2}, "rdma": {0, 12}} {
		serve := serve
		if transport == "rdma" {
			serve = serveRDMA
		}
		_, address := serve(t, &service{}, nil)
		p := dial(t, address, nil).Bind(testProgram, None)
		for i, call := range []func() error{
			func() error { return p.Call(ctx, 0, nil, nil, nil) },
			func() error { return p.Call(ctx, procEcho, &args, &results, &o) },
		} {
			n := testing.AllocsPerRun(2000, func() {
				if err := call(); err != nil {
					t.Fatal(err)
				}
			})
			if n > most[i] {
				t.Errorf("%s, %s: %v allocations", transport, []string{"NULL", "4 KiB"}[i], n)
			}
		}
	}
}

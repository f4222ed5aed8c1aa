package rpc

import (
	"bytes"
	"context"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestAllocations checks how often client and server together take memory for a call: not at all for NULL, at most twice for one with
// 4 KiB in both directions, and at most six times for one with 1 MiB. The handler's own memory is one of these.
func TestAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector takes memory, and gives back less")
	}
	ctx := context.Background()
	most := map[int]uint64{4096: 2, 1 << 20: 6}
	for _, transport := range []string{"tcp", "rdma"} {
		serve := serve
		if transport == "rdma" {
			serve = serveRDMA
		}
		_, address := serve(t, &service{}, nil)
		p := dial(t, address, nil).Bind(testProgram, None)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := fixture.Allocations(1000, func() { must(p.Call(ctx, 0, nil, nil, nil)) }); n > 0 {
			t.Errorf("%s, NULL: %v allocations", transport, n)
		}
		for size, most := range most {
			for _, direct := range []bool{false, true} {
				args, results, o := data{b: bytes.Repeat([]byte("x"), size)}, data{}, CallOptions{Into: make([]byte, size), Direct: direct}
				n := fixture.Allocations(150, func() { must(p.Call(ctx, procEcho, &args, &results, &o)) })
				if n > most {
					t.Errorf("%s, %d octets, direct %v: %v allocations", transport, size, direct, n)
				}
			}
		}
	}
}

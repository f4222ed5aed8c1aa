package rpc

import (
	"bytes"
	"context"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestAllocations checks how often client and server together take memory for a call: not at all for NULL, and at most twice for one with 4 KiB
// in both directions.
func TestAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector takes memory, and gives back less")
	}
	_, address := serve(t, &service{}, nil)
	p := dial(t, address, nil).Bind(testProgram, None)
	ctx := context.Background()
	args, results, o := data{b: bytes.Repeat([]byte("x"), 4096)}, data{}, CallOptions{Into: make([]byte, 4096)}
	for what, c := range map[string]struct {
		most float64
		call func() error
	}{
		"NULL":  {0, func() error { return p.Call(ctx, 0, nil, nil, nil) }},
		"4 KiB": {2, func() error { return p.Call(ctx, procEcho, &args, &results, &o) }},
	} {
		n := testing.AllocsPerRun(2000, func() {
			if err := c.call(); err != nil {
				t.Fatal(err)
			}
		})
		if n > c.most {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

package dgrdma

import (
	"testing"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestMemoryIsOffered checks that peers are told of the memory if there is a byte of it, or may be.
func TestMemoryIsOffered(t *testing.T) {
	region := func(n int) Memory {
		r, err := NewRegion(n)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		name   string
		memory Memory
		want   bool
	}{{"none", nil, false}, {"no byte", region(0), false}, {"one byte", region(1), true}, {"no size", nowhere{}, true}} {
		n := simnet.New(1)
		e, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1, Manual: true, Memory: c.memory})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(e.localServices.to(false).All()) > 0; got != c.want {
			t.Errorf("memory with %s is offered: %v", c.name, got)
		}
		e.Close()
		n.Close()
	}
}

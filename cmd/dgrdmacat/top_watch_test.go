package main

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/metrics"
)

// TestTopSummary checks that the last line of top says how many frames were sent again only where there is an endpoint of DG/RDMA.
func TestTopSummary(t *testing.T) {
	for _, endpoints := range []int{0, 1} {
		v := &metrics.View{Endpoints: make([]metrics.Endpoint, endpoints)}
		w := &watcher{src: new(viewSource), now: v, first: v}
		if s := w.summary(); strings.Contains(s, "sent again") != (endpoints > 0) {
			t.Error(s)
		}
	}
}

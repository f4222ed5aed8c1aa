package main

import (
	"testing"
)

func TestPipeline(t *testing.T) {
	for _, n := range []int{0, 1, 5000} {
		want := uint64(n) * uint64(n+1) * uint64(2*n+1) / 6
		if got, err := run(t.Context(), n); got != want || err != nil {
			t.Errorf("%d numbers: %d, %v, want %d", n, got, err, want)
		}
	}
}

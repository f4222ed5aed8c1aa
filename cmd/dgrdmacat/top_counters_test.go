package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestTopKnowsItsCounters: a counter that has another name would be shown as 0.
func TestTopKnowsItsCounters(t *testing.T) {
	there := metrics.Counts(new(dgrdma.Counters))
	maps.Copy(there, metrics.Counts(new(dgrdma.TransportStats)))
	maps.Copy(there, metrics.Counts(new(verbs.HostStats)))
	maps.Copy(there, metrics.Counts(new(rpc.ServerStats)))
	files, err := filepath.Glob("top*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([a-z]+_[a-z_]+)"`).FindAllSubmatch(text, -1) {
			named++
			if _, ok := there[string(m[1])]; !ok {
				t.Errorf("%s names the counter %s; there are %q", file, m[1], slices.Sorted(maps.Keys(there)))
			}
		}
	}
	if named < 10 {
		t.Errorf("%d counters are named only", named)
	}
}

package main

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

// TestFlagsHaveOneMeaning checks that a flag takes the same kind of value, in the same unit, in each command that has it (L2).
func TestFlagsHaveOneMeaning(t *testing.T) {
	// What has two meanings has them from other programs: filters of tcpdump's kind, rdma-core's rping, iperf3's and ping's -i.
	meanings := map[string][]string{
		"addr": {"address", "addresses"}, "id": {"IDS", "N"}, "op": {"operation", "what", "operations"}, "port": {"ports", "port"},
		"i": {"interface", "time"}, "c": {"", "int"}, "o": {"FILE", "file"},
		"verify": {"", "value"}, "to": {"URL", "address"}, "serve": {"URL", "address"}, "local": {"URL", "address"},
	}
	seen := make(map[string][]string)
	for _, c := range commands {
		fs, _ := c.flagSet()
		fs.VisitAll(func(f *flag.Flag) {
			value := valueOf(f)
			if value == "duration" {
				value = "time"
			}
			if !slices.Contains(seen[f.Name], value) {
				seen[f.Name] = append(seen[f.Name], value)
			}
		})
	}
	for name, values := range seen {
		if allowed, special := meanings[name]; len(values) > 1 && !(special && len(allowed) >= len(values)) {
			t.Errorf("%s takes %s", dashes(name), strings.Join(values, ", or "))
		}
	}
}

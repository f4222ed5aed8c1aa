package watch

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var write = flag.Bool("write", false, "write what documentation says of metrics")

// TestMetricsAreDocumented: docs/metrics.md has every metric that is exported, with its
// labels and its help, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	const path = "../../docs/metrics.md"
	parts := regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)".*variableLabels: \{([^}]*)\}`)
	var b strings.Builder
	b.WriteString(documentHead)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		New().Describe(descs)
	}()
	for d := range descs {
		m := parts.FindStringSubmatch(d.String())
		if m == nil || m[2] == "" {
			t.Fatalf("no name or no help: %v", d)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m[1], strings.ReplaceAll(m[3], ",", ", "), m[2])
	}
	b.WriteString("\nGenerated from package `metrics`: `go test ./metrics/watch -run Documented -write`.\n")
	if *write {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != b.String() {
		t.Errorf("docs/metrics.md does not say what is exported: go test ./metrics/watch -run Documented -write (%v)", err)
	}
}

const documentHead = "# Metrics\n\n" +
	"What a collector of package `metrics/watch`, and so the flag `--metrics` of `dgrdmacat`, exports to Prometheus. A metric whose name ends in `_total` is a\n" +
	"counter. `dgrdma_endpoint_completion_seconds` and `dgrdma_endpoint_round_trip_seconds` are histograms. All others are gauges. `go doc\n" +
	"github.com/dgrdma/dgrdma/metrics` explains the labels; what is not known is left out. Words are explained in\n" +
	"[terms.md](terms.md).\n\n" +
	"| metric | labels | |\n|---|---|---|\n"

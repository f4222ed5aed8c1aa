package main

import (
	"math"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestCells checks that each has a name of its own, a path that can be made, and flows that begin in order.
func TestCells(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range cells {
		cfg, err := emulator.Parse(c.path)
		if seen[c.name] || err != nil || len(c.flows) == 0 {
			t.Errorf("%s: %q, %d flows, %v", c.name, c.path, len(c.flows), err)
		}
		seen[c.name] = true
		if c.later != nil {
			if c.later(&cfg, 9*time.Second); len(cfg.Bottleneck.Changes)+len(cfg.Bottleneck.Outages) == 0 {
				t.Errorf("%s: nothing changes", c.name)
			}
		}
		after := time.Duration(0)
		for _, f := range c.flows {
			if f.after < after || f.count < 1 || f.kind == "" {
				t.Errorf("%s: %+v", c.name, f)
			}
			after = f.after
		}
	}
}

// TestChooseCells checks patterns, and that what names nothing is said.
func TestChooseCells(t *testing.T) {
	for pattern, want := range map[string]int{"beside-cubic-q1": 1, "beside-cubic-*": 3, "*": len(cells), "": len(cells)} {
		got, err := chooseCells(strings.Fields(pattern))
		if err != nil || len(got) != want {
			t.Errorf("%q: %d cells, %v; want %d", pattern, len(got), err, want)
		}
	}
	for _, pattern := range []string{"no-such", "["} {
		if _, err := chooseCells([]string{pattern}); err == nil || !strings.Contains(err.Error(), pattern) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestJain checks the index of known distributions.
func TestJain(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{{[]float64{5, 5, 5}, 1}, {[]float64{9, 0, 0}, 1. / 3}, {[]float64{3, 1}, 0.8}} {
		if got := jainIndex(c.rates); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.rates, got, c.want)
		}
	}
}

// TestPortOf checks both forms in which a sink says where it is.
func TestPortOf(t *testing.T) {
	want := netip.MustParseAddrPort("10.77.0.2:7100")
	for _, where := range []string{"10.77.0.2:7100", "ocpi-udp-rdma:10.77.0.2;7100;65536.1.65535"} {
		if got, err := portOf(where); got != want || err != nil {
			t.Errorf("%s: %v, %v", where, got, err)
		}
	}
	if _, err := portOf("nowhere"); err == nil {
		t.Error("nowhere has a port")
	}
}

// TestMeasureCells checks that flows of every kind are measured, alone, to an end, and beside each other.
func TestMeasureCells(t *testing.T) {
	netns.Require(t)
	t.Chdir("../..") // where the sources of QUIC's stream are
	t.Setenv("GOFLAGS", "-pgo=off -ldflags=-w")
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	err := measurePaths(t.Context(), options{repeats: 1, long: 2 * time.Second}, []string{"setup-10M-20ms-0-ours", "first-10M-2ms-0-cubic", "beside-cubic-q1", "outage-ours", "copy-100M-100ms-0", "send-100M-100ms-0"}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"`setup-10M-20ms-0-ours` \\|.* \\|  \\|  \\| .* \\| [1-9][0-9]* \\| [0-9.]+ \\|\n",
		"`first-10M-2ms-0-cubic` \\|.* \\|  \\|  \\| .* \\| [1-9][0-9]* \\| [0-9.]+ \\|\n",
		"`beside-cubic-q1` \\|[^|]* \\| [0-9.]+ [0-9.]+ \\| [01]\\.[0-9]+ \\| [0-9.]+ % \\| [0-9.]+ \\| [0-9.]+ \\|  \\| [0-9.]+ \\|\n",
		"`outage-ours` \\|[^|]* \\| [0-9.]+ \\|",
		"`copy-100M-100ms-0` \\|[^|]* \\| [1-9][0-9.]* \\|",
		"`send-100M-100ms-0` \\|[^|]* \\| [1-9][0-9.]* \\|",
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
}

package metrics

import (
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fake is a source of something.
type fake struct {
	of     any
	e      Endpoint
	closed bool
	looks  int
}

func (f *fake) Of() any { return f.of }

func (f *fake) Look() (Endpoint, bool) {
	f.looks++
	return f.e, !f.closed
}

func TestSourcesComeAndGo(t *testing.T) {
	c := New(Counted{})
	names := func() (all []string) {
		for _, e := range c.View().Endpoints {
			all = append(all, e.Name)
		}
		return all
	}
	first := &fake{of: "first", e: Endpoint{Name: "same"}}
	second := &fake{of: "second", e: Endpoint{Name: "same"}}
	c.Add(first)
	c.Add(second)
	instead := &fake{of: "first", e: Endpoint{Name: "same", Host: &Host{}}}
	c.Add(instead)
	if got := names(); !slices.Equal(got, []string{"same", "same#2"}) {
		t.Errorf("names %q", got)
	}
	if v := c.View(); v.Endpoints[0].Host == nil || v.Endpoints[1].Host != nil {
		t.Errorf("the later source of the first is not shown: %+v", v.Endpoints)
	}
	instead.closed = true
	if got := names(); !slices.Equal(got, []string{"same#2"}) {
		t.Errorf("after the first was closed: %q", got)
	}
	looks := instead.looks
	c.View()
	if instead.looks != looks {
		t.Error("what is closed is looked at")
	}
	c.Add(&fake{of: "third", closed: true})
	// Those that nobody looks at are forgotten too.
	second.closed = true
	c.Add(&fake{of: "fourth", e: Endpoint{Name: "same"}})
	if len(c.sources.all) != 1 || c.sources.all[0].name != "same" {
		t.Errorf("kept: %v", c.sources)
	}
}

// TestHistogramText: buckets add up, in seconds, and their names and bounds are what
// queries rely on.
func TestHistogramText(t *testing.T) {
	c := New(Counted{})
	h := NewHistogram(func(i int) time.Duration { return time.Millisecond << i }, []uint64{1, 0, 2, 4}, 3*time.Second)
	c.Add(&fake{of: 1, e: Endpoint{Name: "e", Completion: h, RoundTrip: NewHistogram(nil, []uint64{0}, 0)}})
	err := testutil.CollectAndCompare(c, strings.NewReader(`
# HELP dgrdma_endpoint_completion_seconds Time from the first frame of a transaction to its acknowledgement.
# TYPE dgrdma_endpoint_completion_seconds histogram
dgrdma_endpoint_completion_seconds_bucket{endpoint="e",le="0.001"} 1
dgrdma_endpoint_completion_seconds_bucket{endpoint="e",le="0.002"} 1
dgrdma_endpoint_completion_seconds_bucket{endpoint="e",le="0.004"} 3
dgrdma_endpoint_completion_seconds_bucket{endpoint="e",le="+Inf"} 7
dgrdma_endpoint_completion_seconds_sum{endpoint="e"} 3
dgrdma_endpoint_completion_seconds_count{endpoint="e"} 7
`), "dgrdma_endpoint_completion_seconds")
	if err != nil {
		t.Error(err)
	}
}

// TestOwnRegistry: a program registers a collector among its own, once.
func TestOwnRegistry(t *testing.T) {
	c, r := New(Counted{}), prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(c); err == nil {
		t.Error("registered twice")
	}
	c.Add(&fake{of: 1, e: Endpoint{Name: "e", Completion: NewHistogram(nil, []uint64{0}, 0), RoundTrip: NewHistogram(nil, []uint64{0}, 0)}})
	if n, err := testutil.GatherAndCount(r, "dgrdma_endpoint_up"); n != 1 || err != nil {
		t.Errorf("%d endpoints, %v", n, err)
	}
	w := httptest.NewRecorder()
	c.ViewHandler().ServeHTTP(w, httptest.NewRequest("GET", "/anywhere", nil))
	if !strings.Contains(w.Body.String(), `"name":"e"`) {
		t.Errorf("the view: %s", w.Body)
	}
}

func TestBuildOf(t *testing.T) {
	own := &debug.BuildInfo{GoVersion: "go1", Main: debug.Module{Path: module, Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}}
	other := &debug.BuildInfo{GoVersion: "go2", Main: debug.Module{Path: "example.com/x", Version: "v9"},
		Deps: []*debug.Module{{Path: "example.com/y", Version: "v8"}, {Path: module, Version: "v1.0.0"}}, Settings: own.Settings}
	for _, c := range []struct {
		info *debug.BuildInfo
		want [3]string
	}{
		{own, [3]string{"v1.2.3", "abc", "go1"}}, {other, [3]string{"v1.0.0", "unknown", "go2"}}, {nil, [3]string{"unknown", "unknown", "unknown"}},
	} {
		version, revision, goVersion := buildOf(c.info)
		if got := [3]string{version, revision, goVersion}; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestNoSource: who has nothing to show shows nothing.
func TestNoSource(t *testing.T) {
	c := New(Counted{})
	c.Add(nil)
	if v := c.View(); len(v.Endpoints) != 0 {
		t.Errorf("%+v", v.Endpoints)
	}
}

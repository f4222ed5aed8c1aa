package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dgrdma/dgrdma/metrics"
)

// exposition is what Prometheus gets.
type exposition struct {
	families map[string]*dto.MetricFamily
	samples  map[string]float64 // by "name{a="x",b="y"}" with labels in order of their names; of histograms their count
}

func newExposition(families map[string]*dto.MetricFamily) (*exposition, error) {
	x := &exposition{families, make(map[string]float64)}
	for name, f := range families {
		for _, m := range f.Metric {
			labels := make(map[string]string)
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			key := sampleKey(name, labels)
			if _, twice := x.samples[key]; twice {
				return nil, fmt.Errorf("%s twice", key)
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				x.samples[key] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				x.samples[key] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				x.samples[key] = float64(m.Histogram.GetSampleCount())
			default:
				return nil, fmt.Errorf("%s is a %v", name, f.GetType())
			}
		}
	}
	return x, nil
}

func sampleKey(name string, labels map[string]string) string {
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", l, labels[l]))
	}
	return name + "{" + strings.Join(parts, ",") + "}"
}

// parse reads a text as Prometheus does.
func parse(text string) (*exposition, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return newExposition(families)
}

// scrape gathers what a collector shows, in a registry that refuses what is
// inconsistent.
func scrape(t testing.TB, c *metrics.Collector) *exposition {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := make(map[string]*dto.MetricFamily)
	for _, f := range all {
		families[f.GetName()] = f
	}
	x, err := newExposition(families)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// lint fails where names break Prometheus' rules. It takes a time that is quadratic.
func lint(t *testing.T, c *metrics.Collector) {
	t.Helper()
	problems, err := testutil.CollectAndLint(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// want checks one sample; labels are pairs of name and value.
func (x *exposition) want(t testing.TB, value float64, name string, labels ...string) {
	t.Helper()
	m := make(map[string]string)
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	key := sampleKey(name, m)
	if got, there := x.samples[key]; !there || got != value {
		t.Errorf("%s is %v (there: %v), want %v", key, got, there, value)
	}
}

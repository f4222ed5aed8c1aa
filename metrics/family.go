package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// family is one metric of things of a kind, and how its samples are made.
type family[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	write func(w *samples, of *T)
}

// samples takes the samples of one family and one thing.
type samples struct {
	to     chan<- prometheus.Metric
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels []string // of the thing
}

// add adds a sample.
func (w *samples) add(v float64, labels ...string) {
	w.to <- prometheus.MustNewConstMetric(w.desc, w.kind, v, w.with(labels)...)
}

func (w *samples) histogram(h *Histogram) {
	buckets := make(map[float64]uint64, len(h.Bounds))
	n := uint64(0)
	for i, k := range h.Counts {
		if n += k; i < len(h.Bounds) {
			buckets[h.Bounds[i]] = n
		}
	}
	w.to <- prometheus.MustNewConstHistogram(w.desc, n, h.Sum, buckets, w.with(nil)...)
}

// with returns the labels of a sample. Those that are not UTF-8 are made so: Prometheus
// refuses others.
func (w *samples) with(labels []string) []string {
	all := make([]string, 0, len(w.labels)+len(labels))
	for _, of := range [][]string{w.labels, labels} {
		for _, l := range of {
			all = append(all, strings.ToValidUTF8(l, "\uFFFD"))
		}
	}
	return all
}

func describe[T any](to chan<- *prometheus.Desc, all []family[T]) {
	for _, f := range all {
		to <- f.desc
	}
}

func collect[T any](to chan<- prometheus.Metric, all []family[T], of *T, labels ...string) {
	for i := range all {
		all[i].write(&samples{to, all[i].desc, all[i].kind, labels}, of)
	}
}

// kindred makes the families of one kind of things, which have the same labels.
type kindred[T any] struct{ labels []string }

func (k kindred[T]) gauge(name, help string, value func(*T) float64) family[T] {
	return k.gauges(name, help, nil, func(w *samples, of *T) { w.add(value(of)) })
}

// known makes a gauge that is left out where its value is not known, and so 0.
func (k kindred[T]) known(name, help string, value func(*T) float64) family[T] {
	return k.gauges(name, help, nil, func(w *samples, of *T) {
		if v := value(of); v > 0 {
			w.add(v)
		}
	})
}

func (k kindred[T]) gauges(name, help string, labels []string, write func(*samples, *T)) family[T] {
	return family[T]{prometheus.NewDesc(name, help, append(k.labels[:len(k.labels):len(k.labels)], labels...), nil), prometheus.GaugeValue, write}
}

func (k kindred[T]) counters(name, help string, labels []string, write func(*samples, *T)) family[T] {
	f := k.gauges(name, help, labels, write)
	f.kind = prometheus.CounterValue
	return f
}

func (k kindred[T]) histogram(name, help string, of func(*T) *Histogram) family[T] {
	return k.gauges(name, help, nil, func(w *samples, x *T) { w.histogram(of(x)) })
}

// named makes a counter of each name, whose value stands under it in a map. A counter that
// the map does not have is left out.
func (k kindred[T]) named(prefix string, names []Counter, where func(*T) map[string]uint64) (all []family[T]) {
	for _, c := range names {
		all = append(all, k.counters(prefix+c.Name+"_total", c.Help, nil, func(w *samples, of *T) {
			if n, ok := where(of)[c.Name]; ok {
				w.add(float64(n))
			}
		}))
	}
	return all
}

// NewHistogram makes a histogram. Each count is of times up to its bound and above the one
// before; the last count is of times above all bounds.
func NewHistogram(bound func(i int) time.Duration, counts []uint64, sum time.Duration) Histogram {
	h := Histogram{Bounds: make([]float64, len(counts)-1), Counts: counts, Sum: sum.Seconds()}
	for i := range h.Bounds {
		h.Bounds[i] = bound(i).Seconds()
	}
	return h
}

package metrics

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The paths at which Handler answers.
const (
	TextPath = "/metrics"
	ViewPath = "/debug/dgrdma"
)

// Handler answers at TextPath with the metrics of this collector alone, and at ViewPath
// with its View. Readers that are slow, or that ask all at once, share a few answers. The readers of the
// oldest are cut short when there are more than three.
func (c *Collector) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	mux := http.NewServeMux()
	text := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	mux.Handle("GET "+TextPath, byEncoding{plain: c.answers(text), zipped: c.answers(text)})
	mux.Handle("GET "+ViewPath, c.ViewHandler())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, TextPath+"  for Prometheus\n"+ViewPath+"  for \"dgrdmacat top\" and other programs\n")
	})
	return mux
}

// answers are those that a handler makes.
func (c *Collector) answers(from http.Handler) *answers {
	return &answers{make: from, turn: c.turn, short: &c.cutShort}
}

// ViewHandler answers with the View, at any path.
func (c *Collector) ViewHandler() http.Handler {
	return c.answers(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(c.View())
	}))
}

package metrics

import (
	"encoding/json"
	"io"
	"net/http"
)

// Where the handler answers.
const (
	TextPath = "/metrics"
	ViewPath = "/debug/dgrdma"
)

// Handler answers at TextPath and ViewPath.
func (r *Registry) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+TextPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		r.WriteText(w) // nobody is there to be told that it failed
	})
	mux.HandleFunc("GET "+ViewPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(r.View())
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, TextPath+"  for Prometheus\n"+ViewPath+"  for \"dgrdmacat top\" and other programs\n")
	})
	return mux
}

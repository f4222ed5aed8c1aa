package watch

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/metrics"
)

// TestScrapesAmidTraffic is for the race detector; counters never shrink.
func TestScrapesAmidTraffic(t *testing.T) {
	n := newNetwork(t)
	a, b := n.host(1), n.host(2)
	r := New()
	r.Add(Host(a))
	r.Add(Host(b))
	out, in := join(t, a, b, "port")
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	for _, path := range []string{metrics.TextPath, metrics.ViewPath} {
		scrapers.Go(func() {
			last := make(map[string]float64)
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := http.Get(server.URL + path)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil {
					t.Error(err)
					return
				}
				if path == metrics.ViewPath {
					if err := json.Unmarshal(body, new(metrics.View)); err != nil {
						t.Error(err)
					}
					continue
				}
				x, err := parse(string(body))
				if err != nil {
					t.Error(err)
					return
				}
				for key, v := range x.samples {
					name, _, _ := strings.Cut(key, "{")
					if x.families[name].GetType() != dto.MetricType_GAUGE && v < last[key] {
						t.Errorf("%s went from %v to %v", key, last[key], v)
					}
					last[key] = v
				}
			}
		})
	}
	var traffic sync.WaitGroup
	traffic.Go(func() {
		for range 3000 {
			if err := out.Out.Send(t.Context(), 0, make([]byte, 100)); err != nil {
				t.Error(err)
				return
			}
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	traffic.Go(func() {
		for _, err := range in.In.Messages(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		in.Close()
	})
	// Peers come and go meanwhile.
	for range 20 {
		e := n.endpoint(3, dgrdma.Config{})
		r.Add(Endpoint(e))
		n.connect(e, 2)
		c := n.connect(a.Endpoint(), 4)
		c.Close()
		e.Close()
	}
	traffic.Wait()
	close(stop)
	scrapers.Wait()
}

// TestThousandPeers: a large endpoint can be looked at.
func TestThousandPeers(t *testing.T) {
	r := New()
	center := manyPeers(t, r, 1000)
	x := scrape(t, r)
	if n := len(center.Conns()); n != 1000 || len(x.samples) < 1000*len(metrics.Counts(new(dgrdma.Counters))) {
		t.Errorf("%d peers, %d samples", n, len(x.samples))
	}
	x.want(t, 1000, "dgrdma_endpoint_peers", "endpoint", "1@02:00:00:00:00:01")
}

// manyPeers makes an endpoint with connections, of which nobody is there.
func manyPeers(t testing.TB, r *metrics.Collector, peers int) *dgrdma.Endpoint {
	n := newNetwork(t)
	center := n.endpoint(1, dgrdma.Config{})
	for i := range uint32(peers) {
		n.connect(center, 2+i)
	}
	r.Add(Endpoint(center))
	return center
}

func BenchmarkThousandPeers(b *testing.B) {
	r := New()
	center := manyPeers(b, r, 1000)
	b.Run("inspect", func(b *testing.B) {
		for b.Loop() {
			center.Inspect()
		}
	})
	for _, path := range []string{metrics.TextPath, metrics.ViewPath} {
		b.Run(path[1:], func(b *testing.B) {
			h := r.Handler()
			size := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

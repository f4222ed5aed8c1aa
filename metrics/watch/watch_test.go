package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestEveryCounterIsShown: each counter of the engine or of a wire has a metric of its own.
func TestEveryCounterIsShown(t *testing.T) {
	var s dgrdma.Stats
	for _, c := range []struct {
		in     reflect.Value
		prefix string
		shown  func() map[string]uint64
	}{
		{reflect.ValueOf(&s.Counters).Elem(), "dgrdma_endpoint_", func() map[string]uint64 { return metrics.Counts(&s.Counters) }},
		{reflect.ValueOf(&s.Transport).Elem(), "dgrdma_transport_", func() map[string]uint64 { return metrics.Counts(&s.Transport) }},
	} {
		there := 0
		for i := range c.in.NumField() {
			f := c.in.Field(i)
			if f.Kind() != reflect.Uint64 {
				continue
			}
			there++
			f.SetUint(1)
			shown := 0
			for name, n := range c.shown() {
				if shown += int(n); n > 0 && !described(c.prefix+name+"_total") {
					t.Errorf("%s has no metric", name)
				}
			}
			if f.SetUint(0); shown != 1 {
				t.Errorf("%s is shown %d times", c.in.Type().Field(i).Name, shown)
			}
		}
		if n := len(c.shown()); n != there {
			t.Errorf("%d counters have names, there are %d", n, there)
		}
	}
}

// described reports whether a collector knows a metric.
func described(name string) bool {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		New().Describe(descs)
	}()
	found := false
	for d := range descs {
		found = found || strings.Contains(d.String(), fmt.Sprintf("fqName: %q,", name))
	}
	return found
}

func TestTextAgreesWithStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		for _, way := range [][2]uint32{{1, 2}, {2, 1}} {
			n.sim.Link(simnet.Addr(way[0]), simnet.Addr(way[1]), simnet.Link{Latency: time.Millisecond, Loss: 0.1})
		}
		a, b := n.endpoint(1, dgrdma.Config{}), n.endpoint(2, dgrdma.Config{AcceptAny: true})
		r := New()
		r.Add(Endpoint(a))
		r.Add(Endpoint(b))
		toB := n.connect(a, 2)
		n.connect(a, 9) // who is never there
		if err := writeSome(t.Context(), toB, 50); err != nil {
			t.Fatal(err)
		}
		stranger := n.sim.Attach(simnet.Addr(7), simnet.Config{})
		if _, err := stranger.Send([]transport.Outgoing{{To: new(simnet.Addr(1)), Buf: make([]byte, 30)}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		x := scrape(t, r)
		for _, e := range []*dgrdma.Endpoint{a, b} {
			s, each := e.Inspect()
			name := fmt.Sprintf("%d@%v", e.ID(), simnet.Addr(uint32(e.ID())))
			for key, n := range metrics.Counts(&s.Counters) {
				x.want(t, float64(n), "dgrdma_endpoint_"+key+"_total", "endpoint", name)
			}
			for i, n := range s.Refused[1:] {
				x.want(t, float64(n), "dgrdma_endpoint_refused_total", "endpoint", name, "reason", dgrdma.Reason(i+1).String())
			}
			for key, n := range metrics.Counts(&s.Transport) {
				x.want(t, float64(n), "dgrdma_transport_"+key+"_total", "endpoint", name)
			}
			x.want(t, float64(s.TransactionsDone), "dgrdma_endpoint_completion_seconds", "endpoint", name)
			x.want(t, float64(s.RoundTrip.Count()), "dgrdma_endpoint_round_trip_seconds", "endpoint", name)
			x.want(t, 1, "dgrdma_endpoint_up", "endpoint", name)
			x.want(t, s.Age.Seconds(), "dgrdma_endpoint_age_seconds", "endpoint", name)
			x.want(t, 65536, "dgrdma_endpoint_memory_bytes", "endpoint", name)
			x.want(t, float64(len(each)), "dgrdma_endpoint_peers", "endpoint", name)
			x.want(t, 1, "dgrdma_endpoint_info", "endpoint", name, "id", strconv.Itoa(int(e.ID())), "address", simnet.Addr(uint32(e.ID())).String(), "url", "")
			for _, p := range each {
				labels := []string{"endpoint", name, "peer", fmt.Sprintf("%d@%v", p.Peer.ID, p.Peer.Addr)}
				for key, n := range metrics.Counts(&p.Counters) {
					x.want(t, float64(n), "dgrdma_peer_"+key+"_total", labels...)
				}
				x.want(t, 1, "dgrdma_peer_info", append(labels, "profile", "native")...)
				x.want(t, float64(p.FrameWindow), "dgrdma_peer_window_frames", labels...)
				x.want(t, float64(p.InFlight), "dgrdma_peer_in_flight_frames", labels...)
				if p.Peer.ID == 9 {
					x.want(t, 0, "dgrdma_peer_ready", labels...)
					continue
				}
				x.want(t, 1, "dgrdma_peer_ready", labels...)
				if p.RTT != 0 { // one that only receives has not measured any
					x.want(t, p.RTT.Seconds(), "dgrdma_peer_rtt_seconds", labels...)
				}
				if p.MinRTT != 0 { // nor does one know it that was told how long a round trip takes
					x.want(t, p.MinRTT.Seconds(), "dgrdma_peer_rtt_min_seconds", labels...)
				}
				if c := p.Congestion; p.TransactionsDone > 0 {
					x.want(t, p.LatestRTT.Seconds(), "dgrdma_peer_rtt_latest_seconds", labels...)
					x.want(t, float64(p.OnWire), "dgrdma_peer_in_flight_bytes", labels...)
					x.want(t, 1, "dgrdma_peer_congestion_info", append(labels, "controller", "bbr", "why", c.Why, "state", c.State, "ecn", p.ECN)...)
					x.want(t, c.Bandwidth, "dgrdma_peer_bandwidth_bytes_per_second", labels...)
					x.want(t, c.PacingRate, "dgrdma_peer_pacing_bytes_per_second", labels...)
					x.want(t, c.MinRTT.Seconds(), "dgrdma_peer_congestion_rtt_min_seconds", labels...)
				}
				x.want(t, p.Silent.Seconds(), "dgrdma_peer_silent_seconds", labels...)
				x.want(t, float64(p.Window), "dgrdma_peer_window_bytes", labels...)
			}
		}
		lint(t, r)
		// The comparison would be of zeros otherwise.
		if s := a.Stats(); s.TransactionsDone != 50 || s.RetransmitsFast+s.RetransmitsTimed == 0 || s.RefusedBy(2) != 1 {
			t.Errorf("no such traffic: %+v", s.Counters)
		}
		if _, there := x.samples[`dgrdma_peer_rtt_seconds{endpoint="1@02:00:00:00:00:01",peer="9@02:00:00:00:00:09"}`]; there {
			t.Error("a round trip to who is not there")
		}
	})
}

// odd is a name that has all there is to escape.
const odd = "a \"b\"\\c\nd\xff"

func TestLinksAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.host(1), n.host(2)
		r := New()
		r.Add(Host(a))
		r.Add(Endpoint(b.Endpoint()))
		r.Add(Host(b)) // the same once more
		out, in := join(t, a, b, odd)
		for range 3 {
			if err := out.Out.Send(t.Context(), 0, make([]byte, 50)); err != nil {
				t.Fatal(err)
			}
		}
		m, err := in.In.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		in.In.Release(m)
		if _, _, err := b.Offer(b.Endpoint().Conns()[0], 0, &link.Options{Buffers: 1 << 16, Size: 1 << 20}); !errors.Is(err, link.ErrNoMemory) {
			t.Fatalf("64 GiB are offered: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		x := scrape(t, r)
		if got := len(r.View().Endpoints); got != 2 {
			t.Errorf("%d endpoints, want 2", got)
		}
		// A host's endpoint has no memory but what its services take.
		x.want(t, float64(a.Endpoint().Size()), "dgrdma_endpoint_memory_bytes", "endpoint", hostName(1))
		if a.Endpoint().Size() < 1<<20 {
			t.Errorf("the host's endpoint has %d addresses", a.Endpoint().Size())
		}
		plain := strings.ToValidUTF8(odd, "\uFFFD")
		number := func(l *link.Link) string { return strconv.Itoa(int(l.Stats().Number)) }
		from := []string{"endpoint", hostName(1), "peer", hostName(2), "port", plain, "link", number(out), "direction", "out"}
		to := []string{"endpoint", hostName(2), "peer", hostName(1), "port", plain, "link", number(in), "direction", "in"}
		for _, c := range []struct {
			name    string
			out, in float64 // -1: none
		}{
			{"messages_total", 3, 1},
			{"bytes_total", 150, 50},
			{"buffers", 4, 4},
			{"buffer_bytes", 100, 100},
			{"free_buffers", 2, 2},
			{"filled_buffers", 2, 2},
			{"held_buffers", 0, 0},
			{"unacknowledged_messages", 0, -1},
			{"owed_credits", -1, 0},
			{"failed", 0, 0},
		} {
			a, b := from, to
			if c.name == "failed" {
				a, b = from[:8], to[:8]
			}
			if c.out >= 0 {
				x.want(t, c.out, "dgrdma_link_"+c.name, a...)
			}
			if c.in >= 0 {
				x.want(t, c.in, "dgrdma_link_"+c.name, b...)
			}
		}
		x.want(t, 3, "dgrdma_host_messages_total", "endpoint", hostName(1), "direction", "out")
		x.want(t, 50, "dgrdma_host_bytes_total", "endpoint", hostName(2), "direction", "in")
		x.want(t, 1, "dgrdma_host_links", "endpoint", hostName(2))
		x.want(t, 1, "dgrdma_host_links_made_total", "endpoint", hostName(2))
		x.want(t, 0, "dgrdma_host_waiting_links", "endpoint", hostName(2), "port", plain)
		for _, bound := range []string{"backlog", "links", "letters", "ended", "sending"} {
			x.want(t, 0, "dgrdma_host_full_total", "endpoint", hostName(2), "bound", bound)
		}
		x.want(t, 1, "dgrdma_host_full_total", "endpoint", hostName(2), "bound", "memory")

		lint(t, r)
		v := r.View()
		o, i := v.Endpoints[0].Host.Links[0], v.Endpoints[1].Host.Links[0]
		if o.State != metrics.LinkOpen || o.Peer != v.Endpoints[0].Peers[0].Name || *o.Out != (metrics.Out{Traffic: metrics.Traffic{Messages: 3, Bytes: 150}, Buffers: 4, BufferBytes: 100, Free: 2, Filled: 2}) {
			t.Errorf("%+v, %+v", o, *o.Out)
		}
		if i.State != metrics.LinkOpen || *i.In != (metrics.In{Traffic: metrics.Traffic{Messages: 1, Bytes: 50}, Buffers: 4, BufferBytes: 100, Free: 2, Waiting: 2}) {
			t.Errorf("%+v, %+v", i, *i.In)
		}
		b.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		v = r.View()
		if len(v.Endpoints) != 1 || v.Endpoints[0].Host.Links[0].State != metrics.LinkFailed || v.Endpoints[0].Host.Links[0].Error == "" {
			t.Errorf("after one host was closed: %+v", v.Endpoints)
		}
	})
}

// TestViewSurvivesJSON: what is decoded is what was encoded, key by key.
func TestViewSurvivesJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.host(1), n.host(2)
		lonely := n.endpoint(3, dgrdma.Config{GiveUp: time.Second})
		r := New()
		r.Add(Host(a))
		r.Add(Host(b))
		r.Add(Endpoint(lonely))
		out, in := join(t, a, b, "port")
		if err := out.Out.Send(t.Context(), 0, make([]byte, 50)); err != nil {
			t.Fatal(err)
		}
		if _, err := in.In.Recv(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := writeSome(t.Context(), n.connect(lonely, 9), 1); err == nil {
			t.Fatal("nobody is there")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want := r.View()
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest("GET", metrics.ViewPath, nil))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
		d := json.NewDecoder(w.Body)
		d.DisallowUnknownFields()
		var got metrics.View
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if !got.Time.Equal(want.Time) {
			t.Errorf("time %v, want %v", got.Time, want.Time)
		}
		got.Time = want.Time // its zone is written in another way
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("got  %+v\nwant %+v", got, *want)
		}
		if got.Format != 1 || len(got.Endpoints) != 3 {
			t.Errorf("format %d, %d endpoints", got.Format, len(got.Endpoints))
		}
		p := got.Endpoints[2].Peers[0]
		if p.State != metrics.StateDown || !strings.Contains(p.Error, "peer never answered") || p.Silent != nil || p.Counters["transactions_lost"] != 1 {
			t.Errorf("the peer that is not there: %+v", p)
		}
		if p := got.Endpoints[1].Peers[0]; p.State != metrics.StateUp || !p.Learned || p.Silent == nil || p.OurEpoch == 0 || p.TheirEpoch != got.Endpoints[0].Peers[0].OurEpoch {
			t.Errorf("the dialing host as the other one sees it: %+v", p)
		}
	})
}

func TestNamesAndClosedEndpoints(t *testing.T) {
	r := New()
	n, other := newNetwork(t), newNetwork(t)
	first, second := n.endpoint(1, dgrdma.Config{}), other.endpoint(1, dgrdma.Config{})
	for range 2 {
		r.Add(Endpoint(first))
		r.Add(Endpoint(second))
	}
	names := func() (all []string) {
		for _, e := range r.View().Endpoints {
			all = append(all, e.Name)
		}
		return all
	}
	if got := names(); !reflect.DeepEqual(got, []string{"1@02:00:00:00:00:01", "1@02:00:00:00:00:01#2"}) {
		t.Errorf("names %q", got)
	}
	scrape(t, r) // finds duplicates
	first.Close()
	if got := names(); !reflect.DeepEqual(got, []string{"1@02:00:00:00:00:01#2"}) {
		t.Errorf("after the first was closed: %q", got)
	}
	// Those that nobody looks at are forgotten too.
	for i := range uint32(10) {
		e := n.endpoint(2+i, dgrdma.Config{})
		r.Add(Endpoint(e))
		e.Close()
	}
	second.Close()
	if x := scrape(t, r); len(x.families) != 3 || x.families["dgrdma_build_info"] == nil || x.families["dgrdma_metrics_cut_short_total"] == nil || x.families["dgrdma_metrics_turned_away_total"] == nil {
		t.Errorf("of nothing: %v", x.samples)
	}
}

func TestHandler(t *testing.T) {
	h := New().Handler()
	for _, c := range []struct {
		method, path string
		code         int
		kind, body   string
	}{
		{"GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "dgrdma_build_info"},
		{"HEAD", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "dgrdma_build_info"},
		{"GET", "/debug/dgrdma", 200, "application/json", `{"dgrdma":1,"pid":`},
		{"GET", "/", 200, "text/plain; charset=utf-8", "/debug/dgrdma  for"},
		{"POST", "/metrics", 405, "", ""},
		{"GET", "/other", 404, "", ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.code || c.kind != "" && w.Header().Get("Content-Type") != c.kind || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s %s: %d, %v, %q", c.method, c.path, w.Code, w.Header(), w.Body)
		}
	}
}

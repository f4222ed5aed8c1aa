package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// network is a simulated network on which everything ends with the test.
type network struct {
	t   testing.TB
	sim *simnet.Network
}

func newNetwork(t testing.TB) *network {
	n := &network{t, simnet.New(1)}
	t.Cleanup(func() { n.sim.Close() })
	return n
}

func (n *network) endpoint(id uint32, cfg dgrdma.Config) *dgrdma.Endpoint {
	n.t.Helper()
	if cfg.Memory == nil {
		memory, err := dgrdma.NewRegion(1 << 16)
		if err != nil {
			n.t.Fatal(err)
		}
		cfg.Memory = memory
	}
	cfg.ID = dgrdma.EndpointID(id)
	e, err := dgrdma.New(n.sim.Attach(simnet.Addr(id), simnet.Config{}), &cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { e.Close() })
	return e
}

// hostAddr is where hosts are: links are dialed by strings, which know no simulated
// addresses.
func hostAddr(id uint32) transport.Addr {
	return transport.UDPAddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(id)}), 7100))
}

func hostName(id uint32) string { return fmt.Sprintf("%d@%v", id, hostAddr(id)) }

func (n *network) host(id uint32) *link.Host {
	n.t.Helper()
	h, err := link.Open("", &link.Config{Memory: 1 << 20, Endpoint: dgrdma.Config{ID: dgrdma.EndpointID(id)},
		Open: func(c *dgrdma.Config) (*dgrdma.Endpoint, error) {
			return dgrdma.New(n.sim.Attach(hostAddr(id), simnet.Config{}), c)
		}})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { h.Close() })
	return h
}

func (n *network) connect(e *dgrdma.Endpoint, to uint32) *dgrdma.Conn {
	n.t.Helper()
	c, err := e.Connect(dgrdma.Peer{ID: dgrdma.EndpointID(to), Addr: simnet.Addr(to), Size: 1 << 16})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

func writeSome(ctx context.Context, c *dgrdma.Conn, times int) error {
	data := make([]byte, 10_000)
	for range times {
		err := c.Write(ctx, &dgrdma.Transaction{
			Segments: []dgrdma.Segment{{Addr: 4096, Bytes: data}}, CompletionAddr: 0, CompletionValue: 1,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestEveryCounterHasAName: what is added to the engine's counters must be shown.
func TestEveryCounterHasAName(t *testing.T) {
	var c dgrdma.Counters
	v := reflect.ValueOf(&c).Elem()
	plain := 0
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(uint64(1000 + i))
			plain++
		}
	}
	seen := make(map[uint64]string)
	for _, k := range counters {
		n := k.of(&c)
		if other := seen[n]; other != "" || n == 0 {
			t.Errorf("%s shows the same as %q", k.name, other)
		}
		seen[n] = k.name
	}
	if len(counters) != plain {
		t.Errorf("%d counters have names, there are %d", len(counters), plain)
	}
	if n := reflect.TypeFor[transport.Stats]().NumField(); n != len(wireCounters) {
		t.Errorf("%d counters of wires have names, there are %d", len(wireCounters), n)
	}
	s := dgrdma.Stats{Transport: transport.Stats{SendDrops: 1, KernelDrops: 2, Truncated: 3, Foreign: 4}}
	for i, k := range wireCounters {
		if n := k.of(&s); n != uint64(i+1) {
			t.Errorf("%s shows %d, want %d", k.name, n, i+1)
		}
	}
}

func TestTextAgreesWithStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		for _, way := range [][2]uint32{{1, 2}, {2, 1}} {
			n.sim.Link(simnet.Addr(way[0]), simnet.Addr(way[1]), simnet.Link{Latency: time.Millisecond, Loss: 0.1})
		}
		a, b := n.endpoint(1, dgrdma.Config{}), n.endpoint(2, dgrdma.Config{AcceptAny: true})
		r := New()
		r.Endpoint(a)
		r.Endpoint(b)
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
			for _, c := range counters {
				x.want(t, float64(c.of(&s.Counters)), "dgrdma_endpoint_"+c.name+"_total", "endpoint", name)
			}
			refusals(&s.Counters, func(reason string, k uint64) {
				x.want(t, float64(k), "dgrdma_endpoint_refused_total", "endpoint", name, "reason", reason)
			})
			for _, c := range wireCounters {
				x.want(t, float64(c.of(&s)), "dgrdma_transport_"+c.name+"_total", "endpoint", name)
			}
			x.want(t, 1, "dgrdma_endpoint_up", "endpoint", name)
			x.want(t, s.Age.Seconds(), "dgrdma_endpoint_age_seconds", "endpoint", name)
			x.want(t, 65536, "dgrdma_endpoint_memory_bytes", "endpoint", name)
			x.want(t, float64(len(each)), "dgrdma_endpoint_peers", "endpoint", name)
			x.want(t, 1, "dgrdma_endpoint_info", "endpoint", name, "id", strconv.Itoa(int(e.ID())), "address", simnet.Addr(uint32(e.ID())).String(), "url", "")
			for _, p := range each {
				labels := []string{"endpoint", name, "peer", fmt.Sprintf("%d@%v", p.Peer.ID, p.Peer.Addr)}
				for _, c := range counters {
					x.want(t, float64(c.of(&p.Counters)), "dgrdma_peer_"+c.name+"_total", labels...)
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
					x.want(t, p.MinRTT.Seconds(), "dgrdma_peer_rtt_min_seconds", labels...)
				}
				x.want(t, p.Silent.Seconds(), "dgrdma_peer_silent_seconds", labels...)
				x.want(t, float64(p.Window), "dgrdma_peer_window_bytes", labels...)
			}
		}
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
		r.Host(a)
		r.Endpoint(b.Endpoint())
		r.Host(b) // the same once more
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
		time.Sleep(time.Second)
		synctest.Wait()
		x := scrape(t, r)
		if got := len(r.View().Endpoints); got != 2 {
			t.Errorf("%d endpoints, want 2", got)
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

		v := r.View()
		o, i := v.Endpoints[0].Host.Links[0], v.Endpoints[1].Host.Links[0]
		if o.State != LinkOpen || o.Peer != v.Endpoints[0].Peers[0].Name || *o.Out != (Out{Traffic: Traffic{3, 150}, Buffers: 4, BufferBytes: 100, Free: 2, Filled: 2}) {
			t.Errorf("%+v, %+v", o, *o.Out)
		}
		if i.State != LinkOpen || *i.In != (In{Traffic: Traffic{1, 50}, Buffers: 4, BufferBytes: 100, Free: 2, Waiting: 2}) {
			t.Errorf("%+v, %+v", i, *i.In)
		}
		b.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		v = r.View()
		if len(v.Endpoints) != 1 || v.Endpoints[0].Host.Links[0].State != LinkFailed || v.Endpoints[0].Host.Links[0].Error == "" {
			t.Errorf("after one host was closed: %+v", v.Endpoints)
		}
	})
}

// join makes a link through which a sends to b.
func join(t testing.TB, a, b *link.Host, name string) (out, in *link.Link) {
	t.Helper()
	port, err := b.Listen(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *link.Link, 1)
	go func() {
		l, err := port.Accept(context.Background())
		if err != nil {
			t.Error(err)
		}
		accepted <- l
	}()
	id := uint32(b.Endpoint().ID())
	out, err = a.Dial(context.Background(), fmt.Sprintf("ocpi-udp-rdma:10.0.0.%d;7100;1048576.%d.16", id, id), name, &link.Options{Buffers: 4, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return out, <-accepted
}

// TestViewSurvivesJSON: what is decoded is what was encoded, key by key.
func TestViewSurvivesJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.host(1), n.host(2)
		lonely := n.endpoint(3, dgrdma.Config{GiveUp: time.Second})
		r := New()
		r.Host(a)
		r.Host(b)
		r.Endpoint(lonely)
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
		r.Handler().ServeHTTP(w, httptest.NewRequest("GET", ViewPath, nil))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
		d := json.NewDecoder(w.Body)
		d.DisallowUnknownFields()
		var got View
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
		if p.State != StateDown || !strings.Contains(p.Error, "does not answer any more") || p.Silent != nil || p.Counters["transactions_lost"] != 1 {
			t.Errorf("the peer that is not there: %+v", p)
		}
		if p := got.Endpoints[1].Peers[0]; p.State != StateUp || !p.Learned || p.Silent == nil || p.OurLife == 0 || p.TheirLife != got.Endpoints[0].Peers[0].OurLife {
			t.Errorf("the dialing host as the other one sees it: %+v", p)
		}
	})
}

func TestNamesAndClosedEndpoints(t *testing.T) {
	r := New()
	n, other := newNetwork(t), newNetwork(t)
	first, second := n.endpoint(1, dgrdma.Config{}), other.endpoint(1, dgrdma.Config{})
	for range 2 {
		r.Endpoint(first)
		r.Endpoint(second)
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
		r.Endpoint(e)
		e.Close()
	}
	if len(r.sources) > 2 {
		t.Errorf("%d endpoints are kept, one is open", len(r.sources))
	}
	second.Close()
	if x := scrapeEmpty(t, r); x != "" {
		t.Errorf("of nothing: %q", x)
	}
}

func scrapeEmpty(t *testing.T, r *Registry) string {
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHandler(t *testing.T) {
	h := New().Handler()
	for _, c := range []struct {
		method, path string
		code         int
		kind, body   string
	}{
		{"GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", ""},
		{"HEAD", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", ""},
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

// TestScrapesAmidTraffic is for the race detector; counters never shrink.
func TestScrapesAmidTraffic(t *testing.T) {
	n := newNetwork(t)
	a, b := n.host(1), n.host(2)
	r := New()
	r.Host(a)
	r.Host(b)
	out, in := join(t, a, b, "port")
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	for _, path := range []string{TextPath, ViewPath} {
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
				if path == ViewPath {
					if err := json.Unmarshal(body, new(View)); err != nil {
						t.Error(err)
					}
					continue
				}
				x, err := parseExposition(string(body))
				if err != nil {
					t.Error(err)
					return
				}
				for key, v := range x.samples {
					name, _, _ := strings.Cut(key, "{")
					if x.kinds[name] == "counter" && v < last[key] {
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
		r.Endpoint(e)
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
	if n := len(center.Conns()); n != 1000 || len(x.samples) < 1000*len(counters) {
		t.Errorf("%d peers, %d samples", n, len(x.samples))
	}
	x.want(t, 1000, "dgrdma_endpoint_peers", "endpoint", "1@02:00:00:00:00:01")
}

// manyPeers makes an endpoint with connections, of which nobody is there.
func manyPeers(t testing.TB, r *Registry, peers int) *dgrdma.Endpoint {
	n := newNetwork(t)
	center := n.endpoint(1, dgrdma.Config{})
	for i := range uint32(peers) {
		n.connect(center, 2+i)
	}
	r.Endpoint(center)
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
	for _, path := range []string{TextPath, ViewPath} {
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

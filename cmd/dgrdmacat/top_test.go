package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/metrics"
)

var writeGolden = flag.Bool("write-top", false, "write what top shows to testdata/top, to be looked at")

// twoViews are of a program with two endpoints, peers in all states and links, ten
// seconds apart.
func twoViews() (before, now *metrics.View) {
	counts := func(sent, received, frames, again, done uint64) map[string]uint64 {
		return map[string]uint64{
			"bytes_sent": sent, "bytes_received": received, "frames_sent": frames, "frames_received": frames / 2, "acks_alone": frames / 10,
			"retransmits_fast": again, "transactions_done": done, "completions": done / 2, "duplicates": again,
		}
	}
	view := func(k uint64) *metrics.View {
		peer := func(n int, state string, c map[string]uint64) metrics.Peer {
			p := metrics.Peer{Name: fmt.Sprintf("%d@10.0.0.%d:7100", n, n), Profile: "native", State: state, WindowFrames: 1024, InFlight: 3 * n, Queued: n, Counters: c}
			if state != metrics.StateUnheard {
				p.RTT, p.Silent = 0.0123/float64(n), new(float64(n*n)/50)
			}
			switch n {
			case 1:
				p.RTTLatest, p.OnWire, p.WindowBytes, p.ECN = 0.0234, 29_920, 480_000, "on"
				p.Congestion = &metrics.Congestion{
					Controller: "bbr", Why: "no round trip of late took less than 1ms", State: "ProbeBW_CRUISE", Bandwidth: 151_000_000, Pacing: 149_500_000, MinRTT: 0.0102,
					LongTerm: 510_000, ShortTerm: 470_000,
				}
			case 2:
				p.RTTLatest, p.Congestion = 0.0001, &metrics.Congestion{Controller: "adaptive", Bandwidth: 51_000_000}
			case 4:
				p.Congestion = &metrics.Congestion{Controller: "bbr", Why: "no round trip is known", State: "Startup"} // nothing was sent
			}
			return p
		}
		a := metrics.Endpoint{
			Name: "31337@10.0.0.100:7100", Counters: counts(k*2_000_000_000, k*1_000_000, k*2_000_000, k*50_000, k*2000),
			Transport: map[string]uint64{"kernel_drops": k * 20}, Refused: map[string]uint64{"stale": k * 3, "foreign": k * 4},
			Peers: []metrics.Peer{
				peer(1, metrics.StateUp, counts(k*1_500_000_000, k*1_000_000, k*1_500_000, 0, k*1500)),
				peer(2, metrics.StateUp, counts(k*500_000_000, 0, k*500_000, k*50_000, k*500)),
				peer(3, metrics.StateDown, counts(1000, 1000, 10, 0, 1)),
				peer(4, metrics.StateAsking, counts(k*50, 0, k, 0, 0)),
				peer(5, metrics.StateUnheard, nil),
			},
		}
		a.Counters["queue_full"], a.Counters["strangers_unanswered"] = 3, k*1000
		a.Host = &metrics.Host{Full: map[string]uint64{"memory": 1, "backlog": k * 10}, Links: []metrics.Link{
			{Number: 7, Port: "frames", Peer: a.Peers[0].Name, State: metrics.LinkOpen, Out: &metrics.Out{
				Traffic: metrics.Traffic{Messages: k * 22_000, Bytes: k * 1_400_000_000}, Buffers: 64, Free: 3, Acquired: 1, Filled: 60, Unacknowledged: 12}},
			{Number: 8, Port: "both", Peer: a.Peers[1].Name, State: metrics.LinkOpen,
				Out: &metrics.Out{Traffic: metrics.Traffic{Messages: k, Bytes: k * 10}, Buffers: 8, Free: 8},
				In:  &metrics.In{Traffic: metrics.Traffic{Messages: k * 1000, Bytes: k * 64_000}, Buffers: 16, Free: 10, Waiting: 5, Held: 1, Owed: 2}},
			{Number: 9, Port: "\x1b[2Jna\u00efve", Peer: a.Peers[2].Name, State: metrics.LinkFailed, In: &metrics.In{Buffers: 4, Free: 4}},
			{Number: 10, Peer: a.Peers[3].Name, State: metrics.LinkDialing, Out: &metrics.Out{}},
		}}
		b := metrics.Endpoint{Name: "2@02:00:00:00:00:02", Error: "interface down", Counters: counts(0, 0, 0, 0, 0)}
		if k == 2 {
			// One that is new.
			b.Peers = append(b.Peers, peer(6, metrics.StateUp, counts(20_000_000, 0, 20_000, 0, 1000)))
		}
		return &metrics.View{
			Format: 1, PID: 4242, Time: time.Date(2026, 11, 21, 14, 3, int(10*k), 0, time.UTC), Elapsed: 100 + 10*float64(k),
			Endpoints: []metrics.Endpoint{b, a},
		}
	}
	return view(1), view(2)
}

// manyPeers is a view of an endpoint with that many.
func manyPeers(n int) *metrics.View {
	v := &metrics.View{Format: 1, PID: 1, Elapsed: 1, Endpoints: []metrics.Endpoint{{Name: "1@10.0.0.1:7100"}}}
	for i := range n {
		v.Endpoints[0].Peers = append(v.Endpoints[0].Peers, metrics.Peer{Name: fmt.Sprintf("%05d@10.0.0.2:7100", i), State: metrics.StateUp})
	}
	return v
}

func textOf(lines []topLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

func TestTopLayout(t *testing.T) {
	src := &viewSource{host: "127.0.0.1:9100"}
	before, now := twoViews()
	for _, c := range []struct {
		name           string
		before, now    *metrics.View
		columns, lines int
	}{
		{"piped", before, now, 0, 0},
		{"wide", before, now, 160, 40},
		{"usual", before, now, 80, 24},
		{"small", before, now, 50, 14},
		{"tiny", before, now, 20, 6},
		{"first", nil, now, 100, 30},
		{"empty", nil, &metrics.View{Format: 1, PID: 4242}, 80, 24},
		{"crowd", nil, manyPeers(1000), 80, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := textOf(topLayout(src.title(c.now, ""), topTables(c.before, c.now), c.columns, c.lines))
			file := filepath.Join("testdata", "top", c.name+".txt")
			if *writeGolden {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// TestTopFits: whatever the size, nothing is wider or longer, and nothing panics.
func TestTopFits(t *testing.T) {
	t.Parallel()
	src := &viewSource{host: "127.0.0.1:9100"}
	before, now := twoViews()
	for _, v := range []*metrics.View{now, manyPeers(40), {Format: 1}, {Format: 1, Endpoints: make([]metrics.Endpoint, 3)}} {
		for columns := 1; columns < 200; columns++ {
			for _, lines := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20, 50} {
				got := topLayout(src.title(v, ""), topTables(before, v), columns, lines)
				if len(got) > lines {
					t.Fatalf("%d lines on a screen of %d", len(got), lines)
				}
				for _, l := range got {
					if len(l.text) > columns || l.text != printableASCII(l.text) {
						t.Fatalf("%q on a screen of %d columns", l.text, columns)
					}
				}
			}
		}
	}
}

func TestTopStyles(t *testing.T) {
	before, now := twoViews()
	want := map[string]topStyle{
		"2@02:00:00:00:00:02": styleBad, "31337@10.0.0.100:7100": styleWarn,
		"1@10.0.0.1:7100": stylePlain, "2@10.0.0.2:7100": styleWarn, "3@10.0.0.3:7100": styleBad, "frames#7": stylePlain, "PEER": styleTitle,
	}
	for _, l := range topLayout(topLine{}, topTables(before, now), 0, 0) {
		first, _, _ := strings.Cut(l.text, " ")
		if s, listed := want[first]; listed && l.style != s {
			t.Errorf("%q has style %d, want %d", l.text, l.style, s)
		}
	}
}

func TestNumbersForTop(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 9.6: "10", 999: "999", 999.6: "1.00k", 12_345: "12.3k", 999_600: "1.00M", 1.5e9: "1.50G", 2e13: "20T"} {
		if got := shortNumber(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.031: "0.03", 0.1: "0.1", 9.96: "10.0", 99.96: "100", 3000: "3000"} {
		if got := fewDecimals(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.00008: "80us", 0.0012: "1.2ms", 0.123: "123ms", 0.9999: "1.0s", 12.3: "12.3s", 100: "1m40s", 864_000: "10d"} {
		if got := briefTime(v); got != want {
			t.Errorf("%v s are shown as %s, want %s", v, got, want)
		}
	}
	c := topChange{before: map[string]uint64{"a": 10, "b": 100}, now: map[string]uint64{"a": 30, "b": 5, "c": 7}, seconds: 2}
	if n := c.counted("a", "b", "c", "d"); n != 32 || c.rate("a") != 10 {
		t.Errorf("counted %d, %v a second", n, c.rate("a"))
	}
}

func TestTopRefusesWhatIsNoView(t *testing.T) {
	noGoroutineLeft(t)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		says   string
	}{
		{"missing", http.NotFound, "is not a program with --metrics: 404 Not Found"},
		{"html", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "is not a program with --metrics: no view"},
		{"other JSON", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"a":1}`) }, "no view"},
		{"a list", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `[]`) }, "no view"},
		{"later format", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"dgrdma":2}`) }, "views of format 2, this dgrdmacat knows 1"},
		{"damaged", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"dgrdma":1,"endpoints":[{"id":-1}]}`)
		}, "is not a program with --metrics: json:"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, "302 Found"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"dgrdma":1`)
		}, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.answer)
			defer s.Close()
			for _, extra := range []string{"", "--json"} {
				code, out, stderr := runFor(t, t.Context(), strings.Fields("top "+extra+" "+s.URL)...)
				if code != exitError || out != "" || !strings.Contains(stderr, c.says) {
					t.Errorf("code %d, %q, %q, want %q", code, out, stderr, c.says)
				}
			}
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1024)) // the whole request: it is short
			io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n")
			c.Close()
		}
	}()
	if code, _, stderr := runFor(t, t.Context(), "top", l.Addr().String()); code != exitError || !strings.Contains(stderr, "does not speak HTTP") {
		t.Errorf("code %d, %q", code, stderr)
	}
	l.Close()
	if code, _, stderr := runFor(t, t.Context(), "top", l.Addr().String()); code != exitError || !strings.Contains(stderr, "nothing listens at "+l.Addr().String()) {
		t.Errorf("code %d, %q", code, stderr)
	}
}

// TestTopBoundsWhatItReads checks that what a server answers makes top neither allocate nor print many times as much.
func TestTopBoundsWhatItReads(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 1<<20)
	for name, body := range map[string]string{
		"empty peers":     `{"dgrdma":1,"endpoints":[{"peers":[{}` + strings.Repeat(`,{}`, mostParts) + `]}]}`,
		"null peers":      `{"dgrdma":1,"endpoints":[{"peers":[null` + strings.Repeat(`,null`, mostParts) + `]}]}`,
		"numbers":         `{"dgrdma":1,"endpoints":[0` + strings.Repeat(`,0`, mostParts) + `]}`,
		"behind a string": `{"dgrdma":1,"a":"[\\\"{","endpoints":[0` + strings.Repeat(`,0`, mostParts) + `]}`,
		"too deep":        `{"dgrdma":1,"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `,"endpoints":[0` + strings.Repeat(`,0`, mostParts) + `]}`,
		"a long number":   `{"dgrdma":1,"pid":` + long + `}`,
		"too long":        `{"dgrdma":1,"a":"` + strings.Repeat("a", largestView) + `"}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		src, err := newViewSource(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = src.look(t.Context()); err == nil || len(err.Error()) > longestReason+100 {
			t.Errorf("%s: an error of %d bytes", name, len(fmt.Sprint(err)))
		}
		src.close()
		s.Close()
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("A", strings.Repeat("a", largestHeader))
	}))
	defer s.Close()
	if code, _, stderr := runFor(t, t.Context(), "top", s.URL); code != exitError || len(stderr) > 1000 {
		t.Errorf("a long header: code %d, %d bytes", code, len(stderr))
	}
	// What a program really has may be large.
	v := manyPeers(65535)
	for i := range v.Endpoints[0].Peers {
		v.Endpoints[0].Peers[i].Counters, v.Endpoints[0].Peers[i].Refused = map[string]uint64{"a": 1}, map[string]uint64{"b": 1}
	}
	v.Endpoints[0].Peers[0].Name = long
	body, err := json.Marshal(v)
	if err != nil || partsOf(body) > mostParts*3/5 {
		t.Errorf("%d parts of 65535 peers, %v", partsOf(body), err)
	}
	if n := len(textOf(topLayout(topLine{}, topTables(nil, v), 0, 0))); n > 70000*(longestCell+200) {
		t.Errorf("one long name makes %d bytes of text", n)
	}
}

// TestTopOfAPortOfRDMA: whoever gives top the port of RDMA over TCP reads what may be wrong, as does whose program ends amid an answer.
func TestTopOfAPortOfRDMA(t *testing.T) {
	t.Parallel()
	const says = " ended the connection before it had answered ("
	const asks = "): was the program stopped, or is that a port where RDMA goes, and not its --metrics?\n"
	p := asProcess(t, "ping", "--serve", "tcp:127.0.0.1:0").start()
	p.says("tcp:127.0.0.1:")
	_, port, _ := strings.Cut(p.err.String(), "tcp:127.0.0.1:")
	port = port[:strings.IndexFunc(port, func(r rune) bool { return r < '0' || r > '9' })]
	if code, _, stderr := runFor(t, t.Context(), "top", port); code != exitError || !strings.HasPrefix(stderr, "dgrdmacat top: 127.0.0.1:"+port+says) || !strings.HasSuffix(stderr, asks) {
		t.Errorf("code %d: %s", code, stderr)
	}
	p.Process.Kill()
	p.code()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1))
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	}()
	if code, _, stderr := runFor(t, t.Context(), "top", l.Addr().String()); code != exitError || stderr != "dgrdmacat top: "+l.Addr().String()+says+"connection reset by peer"+asks {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestTopPrintsWhatMoves watches an endpoint of ours that writes to itself.
func TestTopPrintsWhatMoves(t *testing.T) {
	noGoroutineLeft(t)
	var m metricsFlag
	addr, stop := startMetrics(t, &m)
	defer stop()
	a, b := openPlain(t), openPlain(t)
	defer a.Close()
	defer b.Close()
	m.endpoint(a)
	c, err := a.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	write := func() error {
		return c.Write(context.Background(), &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 64, Bytes: make([]byte, 1000)}}, Completion: dgrdma.Word(0, 1)})
	}
	if err := write(); err != nil { // the peer is up then
		t.Fatal(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		for ctx.Err() == nil {
			write()
			time.Sleep(time.Millisecond)
		}
	}()
	defer func() { cancel(); <-written }()

	const long = "500ms" // in which even a busy machine writes
	code, out, stderr := runFor(t, t.Context(), "top", addr, "--interval", long, "--count", "2")
	if code != exitOK || stderr != "" || strings.Count(out, "ENDPOINT") != 2 || strings.Count(out, "\n") != 2*10+1 {
		t.Fatalf("code %d, %q\n%s", code, stderr, out)
	}
	lines := strings.Split(out, "\n")
	titles, cells := strings.Fields(strings.ReplaceAll(lines[2], " MB/s", "-MB/s")), strings.Fields(lines[3])
	if !strings.HasPrefix(lines[2], "ENDPOINT") || cells[0] != fmt.Sprintf("%d@%v", a.ID(), a.LocalAddr()) || cells[1] != "up" || cells[2] != "1" || cells[3] == "0" || cells[3] == "-" {
		t.Errorf("%q\n%q", titles, cells)
	}
	if peer := strings.Fields(lines[6]); peer[0] != fmt.Sprintf("%d@%v", b.ID(), b.LocalAddr()) || peer[1] != "up" {
		t.Errorf("%q", peer)
	}

	code, out, stderr = runFor(t, t.Context(), "top", "--json", "--interval", long, "--count", "3", "http://"+addr)
	if code != exitOK || stderr != "" {
		t.Fatalf("code %d, %q", code, stderr)
	}
	last := uint64(0)
	for line := range strings.Lines(out) {
		var v metrics.View
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		n := v.Endpoints[0].Counters["frames_sent"]
		if n <= last {
			t.Errorf("%d frames after %d", n, last)
		}
		last = n
	}
	if n := strings.Count(out, "\n"); n != 3 {
		t.Errorf("%d objects, want 3", n)
	}

	// Interrupted before it has a rate to show.
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if code, out, stderr := runFor(t, short, "top", addr, "--interval", "1m"); code != exitInterrupted || out != "" || !strings.Contains(stderr, "interrupted") {
		t.Errorf("code %d, %q, %q", code, out, stderr)
	}
}

func openPlain(t *testing.T) *dgrdma.Endpoint {
	t.Helper()
	e, err := dgrdma.Open("udp:127.0.0.1?accept=any", nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

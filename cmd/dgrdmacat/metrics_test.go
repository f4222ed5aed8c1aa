package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/metrics"
)

// startMetrics is --metrics at any free port, and where that is.
func startMetrics(t *testing.T, m *metricsFlag) (addr string, stop func()) {
	t.Helper()
	m.addr = "0"
	var said bytes.Buffer
	stop, err := m.start(&said)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`^metrics on http://(127\.0\.0\.1:\d+)/metrics; dgrdmacat top (\S+) shows them\n$`).FindStringSubmatch(said.String())
	if found == nil || found[1] != found[2] {
		t.Fatalf("said %q", said.String())
	}
	return found[1], stop
}

func get(t *testing.T, url string) string {
	t.Helper()
	// A connection that is kept, as Prometheus keeps it.
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v", url, answer.Status, err)
	}
	return string(body)
}

func TestMetricsFlag(t *testing.T) {
	noGoroutineLeft(t)
	var m metricsFlag
	addr, stop := startMetrics(t, &m)
	e, err := dgrdma.Open("udp:127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	m.endpoint(e)
	name := fmt.Sprintf("%d@%v", e.ID(), e.LocalAddr())
	if text := get(t, "http://"+addr+metrics.TextPath); !strings.Contains(text, fmt.Sprintf("dgrdma_endpoint_peers{endpoint=%q} 0\n", name)) {
		t.Errorf("no %s in\n%s", name, text)
	}
	e.Close()
	if text := get(t, "http://"+addr+metrics.TextPath); strings.Contains(text, name) {
		t.Errorf("an endpoint that is closed in\n%s", text)
	}

	// The port is taken now.
	other := metricsFlag{addr: addr}
	if _, err := other.start(io.Discard); err == nil || !strings.Contains(err.Error(), "the port is taken; give another one, or 0") {
		t.Errorf("a second one on the same port: %v", err)
	}
	stop()
	if _, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		t.Error("it still listens")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestWithoutMetricsFlag(t *testing.T) {
	noGoroutineLeft(t)
	var m metricsFlag
	stop, err := m.start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	m.endpoint(nil)
	m.host(nil)
}

// TestMetricsStopIsNotHeldUp: who says nothing, or takes no answer, does not keep
// the command from ending.
func TestMetricsStopIsNotHeldUp(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	var m metricsFlag
	addr, stop := startMetrics(t, &m)
	for _, says := range []string{"", "GET /metrics HTTP/1.1\r\nHost: x\r\n"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, says); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(20 * time.Millisecond) // until they are accepted
	began := time.Now()
	stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestHTTPAddresses(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{":9100", ":9100"},
		{"9100", "127.0.0.1:9100"},
		{"0.0.0.0:9100", "0.0.0.0:9100"},
		{"[::1]:9100", "[::1]:9100"},
		{"name:80", "name:80"},
		{"", ""},
		{"name", ""},
		{"127.0.0.1", ""},
		{"::1", ""},
		{":", ""},
		{":http", ""},
		{":65536", ""},
		{":-1", ""},
		{"a:b:c", ""},
	} {
		got, err := httpAddress(c.given)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v; want %q", c.given, got, err, c.want)
		}
	}
}

// TestCommandsShowThemselves: each way to run bench and ping says where to look,
// and shows what it opened.
func TestCommandsShowThemselves(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bench --seconds 30", `dgrdma_endpoint_bytes_sent_total{endpoint="`},
		{"bench --seconds 30 --peers 3", `dgrdma_endpoint_bytes_sent_total{endpoint="`},
		{"bench --seconds 30 --link", `direction="in"`},
		{"bench --serve udp:127.0.0.1", `url="ocpi-udp-rdma:127.0.0.1;`},
		{"bench --serve udp:127.0.0.1 --link", "dgrdma_host_free_bytes"},
		{"ping --serve udp:127.0.0.1", `url="ocpi-udp-rdma:127.0.0.1;`},
		{"ping --serve udp:127.0.0.1 --link", `dgrdma_host_waiting_links{endpoint="`},
		{"ping --serve udp:127.0.0.1 --busy-poll", `dgrdma_endpoint_up{endpoint="`},
		{"ping --to ocpi-udp-rdma:127.0.0.1;9;1048576.2.16", `dgrdma_peer_ready{endpoint="`},
		{"listen udp:127.0.0.1", `dgrdma_host_waiting_links{endpoint="`},
		{"send ocpi-udp-rdma:127.0.0.1;9;1048576.2.16", `dgrdma_peer_ready{endpoint="`},
		{"ping --link --to ocpi-udp-rdma:127.0.0.1;9;1048576.2.16", `dgrdma_peer_ready{endpoint="`},
	} {
		t.Run(strings.ReplaceAll(c.args, " ", "_"), func(t *testing.T) {
			noGoroutineLeft(t)
			defer http.DefaultClient.CloseIdleConnections()
			addr := free(t).String()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan string)
			go func() {
				_, _, stderr := runFor(t, ctx, append(strings.Fields(c.args), "--metrics", addr)...)
				ended <- stderr
			}()
			text := ""
			for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
				if answer, err := http.Get("http://" + addr + metrics.TextPath); err == nil {
					body, _ := io.ReadAll(answer.Body)
					answer.Body.Close()
					if text = string(body); strings.Contains(text, c.want) {
						break
					}
				}
			}
			cancel()
			if stderr := <-ended; !strings.Contains(stderr, "metrics on http://"+addr+"/metrics") {
				t.Errorf("stderr: %q", stderr)
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("no %s in\n%s", c.want, text)
			}
		})
	}
}

// TestMetricsEverywhere: a port behind a colon is at every address, and says so; top finds it.
func TestMetricsEverywhere(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	var m metricsFlag
	m.addr = ":0"
	var says strings.Builder
	stop, err := m.start(&says)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var port int
	if _, err := fmt.Sscanf(says.String(), "metrics on port %d of every address of this machine", &port); err != nil {
		t.Fatalf("%q: %v", says.String(), err)
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "[::1]"} {
		r, err := http.Get(fmt.Sprintf("http://%s:%d%s", host, port, metrics.TextPath))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		r.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	for _, at := range []string{fmt.Sprint(port), fmt.Sprint(":", port)} {
		if code, _, stderr := runFor(t, t.Context(), "top", "--count", "1", at); code != exitOK {
			t.Errorf("top %s: code %d, %s", at, code, stderr)
		}
	}
}

// TestMetricsSaysWhatFails checks that what the HTTP server of --metrics has to say is a line in the style of the program: it has too few
// file descriptors here for all clients.
func TestMetricsSaysWhatFails(t *testing.T) {
	t.Parallel()
	p := asProcess(t)
	p.Cmd = exec.Command("sh", "-c", `ulimit -n 20; exec "$@"`, "sh", program(t), "serve", "--accept", "any", "--metrics", "0", "udp:127.0.0.1")
	p.Stdout, p.Stderr = &p.out, &p.err
	p.start()
	p.says("any peer may write into it")
	at := regexp.MustCompile(`http://([0-9.:]+)/`).FindStringSubmatch(p.err.String())[1]
	for range 20 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	p.says("too many open files")
	if said := p.err.String(); !strings.Contains(said, "\nmetrics: http: Accept error: accept tcp ") {
		t.Errorf("said %s", said)
	}
	p.Process.Kill()
	p.code()
}

// TestMetricsAtAPrivilegedPort checks that --metrics says as other sockets do what a port below 1024 needs.
func TestMetricsAtAPrivilegedPort(t *testing.T) {
	if first, _ := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); strings.TrimSpace(string(first)) != "1024" {
		t.Skipf("ports from %s on need no privilege here", first)
	}
	p := asNobody(asProcess(t, "serve", "--accept", "any", "--metrics", "1023", "udp:127.0.0.1")).start()
	const want = "dgrdmacat serve: --metrics 1023: listen tcp 127.0.0.1:1023: bind: permission denied: ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE\n"
	if code := p.code(); code != exitError || p.err.String() != want {
		t.Errorf("code %d: %s", code, p.err.String())
	}
}

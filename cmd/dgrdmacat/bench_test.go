package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
)

func runJSON(t *testing.T, args string) map[string]any {
	t.Helper()
	return objectOf(t, runOK(t, args))
}

// objectOf returns the JSON object that was printed, and nothing else.
func objectOf(t *testing.T, out string) (got map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &got); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v: not one JSON object: %s", err, out)
	}
	return got
}

// benchUntil runs bench for longer and longer until it prints enough, and returns that: in a short
// time a busy machine measures little, or nothing, which is an error.
func benchUntil(t *testing.T, seconds float64, args string, enough func(out string) bool) string {
	t.Helper()
	for ; ; seconds *= 4 {
		line := fmt.Sprintf("bench --seconds %g %s", seconds, args)
		code, out, stderr := runOnce(t.Context(), strings.Fields(line)...)
		last := seconds > patience.Seconds()/8
		if strings.Contains(stderr, tooShort) && !last {
			continue
		}
		if code != exitOK || stderr != "" {
			t.Fatalf("%s: code %d, %s%s", line, code, out, stderr)
		}
		if last || enough(out) {
			return out
		}
	}
}

// benchJSON is benchUntil with --json.
func benchJSON(t *testing.T, seconds float64, args string, enough func(got map[string]any) bool) (got map[string]any) {
	t.Helper()
	return objectOf(t, benchUntil(t, seconds, "--json "+args, func(out string) bool { return enough(objectOf(t, out)) }))
}

// wanting returns the first of these figures that is not more than nothing, or "".
func wanting(got map[string]any, figures []string) string {
	for _, key := range figures {
		if v, ok := got[key].(float64); !ok || v <= 0 {
			return key
		}
	}
	return ""
}

func TestBenchWithBothEndsHere(t *testing.T) {
	for _, c := range []struct {
		args string
		want map[string]any
	}{
		{"", map[string]any{"transport": "udp", "size": 65536.0, "depth": 64.0, "one_process": true, "verify": "sample"}},
		{"--size 4k --depth 3", map[string]any{"size": 4096.0}},
		{"--size 64 --depth 100", map[string]any{"size": 64.0, "depth": 100.0}},
		{"--size 1 --depth 1", map[string]any{"size": 1.0}},
		{"--size 100001 --verify full --mtu 1500 --gso off --gro off", map[string]any{"mtu": 1500.0, "verify": "full"}},
		{"--verify off --sockbuf default --window 100", map[string]any{"verify": "off"}},
		{"--bidir", map[string]any{"bidir": true}},
		{"--busy-poll", map[string]any{"busy_poll": true}},
		{"--peers 8 --depth 4 --bidir", map[string]any{"peers": 8.0, "depth": 4.0, "outstanding": 32.0}},
		{"--peers 20 --size 2000000", map[string]any{"depth": 1.0, "outstanding": 2.0}},
		{"--profile fpga --size 16384", map[string]any{"profile": "fpga"}},
		{"--profile opencpi --size 16384 --verify full", map[string]any{"profile": "opencpi"}},
		{"--profile opencpi-legacy --size 16384", map[string]any{"profile": "opencpi-legacy"}},
		{"--compare tcp,tls --bidir", map[string]any{}},
		{"--compare raw,tcp --warm-up 10ms", map[string]any{}},
		{"--loss 2 --seed 5", map[string]any{"loss_percent": 2.0, "loss_seed": 5.0}},
	} {
		t.Run(strings.ReplaceAll(strings.Trim(c.args, "-"), " ", "_"), func(t *testing.T) {
			t.Parallel()
			noGoroutineOfItsOwnLeft(t)
			figures := []string{"mtu", "seconds", "bytes", "mb_per_s", "transactions_per_s", "frames", "cpu_ns_per_frame"}
			if strings.Contains(c.args, "--bidir") {
				figures = append(figures, "back_mb_per_s")
			}
			if strings.Contains(c.args, "--loss") {
				figures = append(figures, "lost_frames")
			}
			got := benchJSON(t, 0.03, "--histogram --size 65536 "+c.args, func(got map[string]any) bool {
				return got["p50_us"] != nil && wanting(got, figures) == "" && bothMoved(got)
			})
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
			if key := wanting(got, figures); key != "" {
				t.Errorf("%s is %v", key, got[key])
			}
			wantLatencies(t, got, 0)
			for _, key := range []string{"retransmits", "duplicates", "kernel_drops"} {
				if _, ok := got[key].(float64); !ok {
					t.Errorf("no %s", key)
				}
			}
			if _, lossy := got["lost_frames"]; lossy != strings.Contains(c.args, "--loss") {
				t.Errorf("%v frames were lost", got["lost_frames"])
			}
			wantComparison(t, got, c.args)
		})
	}
}

// serving runs a serving command and returns its URL, and what it ends with.
func serving(t *testing.T, ctx context.Context, args string) (url string, end func() (int, string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	type result struct {
		code   int
		stderr string
	}
	ended := make(chan result, 1)
	go func() {
		code, _, stderr := runFor(t, ctx, append(strings.Fields(args), "--url-file", file)...)
		ended <- result{code, stderr}
	}()
	eventually(t, "the URL is there", func() bool {
		b, err := os.ReadFile(file)
		url = strings.TrimSpace(string(b))
		return err == nil
	})
	return url, func() (int, string) { r := <-ended; return r.code, r.stderr }
}

// said is how a command ended.
type said struct {
	code     int
	out, err string
}

// object is the one that a command printed, which went well.
func (s said) object(t *testing.T) map[string]any {
	t.Helper()
	if s.code != exitOK {
		t.Fatalf("%+v", s)
	}
	return objectOf(t, s.out)
}

// servesOnce has a server, which ends with its first client, serve a client whose arguments are those for its URL. A client that did
// nothing in its time, as on a busy machine, has ended the server all the same: then another server serves it again.
func servesOnce(t *testing.T, server string, client func(url string) string) (url string, there, here said) {
	t.Helper()
	for range 20 {
		ctx, stop := context.WithCancel(patient(t))
		var end func() (int, string)
		url, end = serving(t, ctx, server)
		here.code, here.out, here.err = runOnce(patient(t), strings.Fields(client(url))...)
		if here.code != exitOK {
			stop() // it may not have come to the server
		}
		there.code, there.err = end()
		if stop(); !strings.Contains(here.err, tooShort) {
			break
		}
	}
	return url, there, here
}

func TestBenchServerAndClients(t *testing.T) {
	noGoroutineLeft(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url, end := serving(t, ctx, "bench --serve udp:127.0.0.1")
	if !strings.HasPrefix(url, "ocpi-udp-rdma:127.0.0.1;") || !strings.Contains(url, ";134217728.") {
		t.Errorf("serves on %s", url)
	}
	ran := 0
	for range 2 {
		times, code, out, stderr := runTimes(t.Context(), strings.Fields("bench --json --seconds 0.05 --size 100000 --to "+url)...)
		if got := (said{code, out, stderr}).object(t); got["one_process"] != false {
			t.Errorf("%v", got)
		}
		ran += times
	}
	out := benchUntil(t, 0.05, "--compare tcp --local udp --to "+url, func(string) bool { return true })
	if !strings.Contains(out, "\ntcp  ") || !strings.Contains(out, "\nmachine  ") || !strings.Contains(out, "verified     sample") {
		t.Error(out)
	}
	code, _, stderr := runFor(t, ctx, "bench", "--size", "268435456", "--to", url)
	if code != exitUsage || !strings.Contains(stderr, "bytes of memory at the server, which has 134217728") {
		t.Errorf("code %d: %s", code, stderr)
	}
	cancel()
	if code, stderr := end(); code != exitOK || strings.Count(stderr, "100000 bytes") != ran ||
		!strings.Contains(stderr, "any peer may write") || strings.Contains(stderr, "error") {
		t.Errorf("server: code %d, %s", code, stderr)
	}
}

func TestBenchLinks(t *testing.T) {
	noGoroutineLeft(t)
	got := benchJSON(t, 0.1, "--link --histogram --size 8000", func(got map[string]any) bool {
		return got["p50_us"] != nil && wanting(got, []string{"messages", "mb_per_s"}) == ""
	})
	wantLatencies(t, got, 0)
	if got["one_process"] != true || got["size"] != 8000.0 || got["buffers"] != 64.0 || got["messages"].(float64) < 1 || got["mb_per_s"].(float64) <= 0 {
		t.Errorf("%v", got)
	}
	_, there, here := servesOnce(t, "bench --link --once --serve udp:127.0.0.1", func(url string) string {
		return "bench --link --stream --json --seconds 0.05 --size 100000 --buffers 5 --to " + url
	})
	if got := here.object(t); got["stream"] != true || got["buffers"] != 5.0 {
		t.Errorf("%v", got)
	}
	if there.code != exitOK || !strings.Contains(there.err, `any peer may dial port "bench"`) {
		t.Errorf("server: %+v", there)
	}
}

func TestBenchServesOnce(t *testing.T) {
	noGoroutineLeft(t)
	_, there, here := servesOnce(t, "bench --once --profile fpga --serve udp:127.0.0.1", func(url string) string {
		return "bench --json --seconds 0.05 --size 4096 --profile fpga --to " + url
	})
	if got := here.object(t); got["profile"] != "fpga" {
		t.Errorf("%v", got)
	}
	if there.code != exitOK {
		t.Errorf("server: %+v", there)
	}
}

// What client and server say to each other, as it has always been: the words of a
// plan, and the kinds of control records, which come at 64 and 0.
const (
	says, record                    = 0, 64
	begin, ready, ends, report, bye = 1, 2, 3, 4, 5
)

// onePeer is the plan of transactions of 64 bytes, one at a time, by peer 7: size,
// slots, peers, outstanding, first id, verification, both ways, more runs.
var onePeer = []uint32{64, 1, 1, 1, 7, 0, 0, 0}

func say(t *testing.T, c *dgrdma.Conn, kind uint32, words ...uint32) {
	t.Helper()
	x := &dgrdma.Transaction{Completion: dgrdma.Word(says, kind)}
	if len(words) > 0 {
		b, _ := binary.Append(nil, binary.LittleEndian, words)
		x.Segments = []dgrdma.Segment{{Addr: record, Bytes: b}}
	}
	if err := c.Write(t.Context(), x); err != nil {
		t.Fatal(err)
	}
}

func TestBenchTurnsASecondClientAway(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	url, end := serving(t, t.Context(), "bench --once --serve udp:127.0.0.1")
	memory, err := dgrdma.NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	first, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7, Service: bench.Service, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	c, err := first.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	hears := func(kind uint32) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := memory.WaitFor(ctx, says, kind); err != nil {
			t.Fatalf("no answer %d: %v", kind, err)
		}
	}
	say(t, c, begin, onePeer...)
	hears(ready)
	code, _, stderr := runFor(t, t.Context(), "bench", "--seconds", "0.1", "--to", url)
	if code != exitError || !strings.Contains(stderr, "busy with another client") {
		t.Errorf("code %d: %s", code, stderr)
	}
	say(t, c, ends)
	hears(report)
	say(t, c, bye)
	if code, stderr := end(); code != exitOK {
		t.Errorf("server: code %d, %s", code, stderr)
	}
}

// TestBenchIsInterrupted: what was measured until then is printed, and that it is
// less than was wished.
func TestBenchIsInterrupted(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	// A busy machine may take long to begin: then it is tried again, with more time.
	interrupted := func(server, client, middle string) {
		for after := 500 * time.Millisecond; ; after *= 2 {
			args := append([]string{"bench", "--seconds", "60"}, strings.Fields(client)...)
			serves, leave := context.WithCancel(t.Context())
			defer leave()
			var end func() (int, string)
			if server != "" {
				var url string
				url, end = serving(t, serves, server)
				args = append(args, "--to", url)
			}
			ctx, cancel := context.WithCancel(t.Context())
			late := time.AfterFunc(after, cancel)
			code, out, stderr := runFor(t, ctx, args...)
			late.Stop()
			cancel()
			// "after 0s" is before anything was measured.
			begun := strings.Contains(stderr, middle) && strings.Contains(out, "MB/s") == (end != nil)
			if !begun && after < patience {
				if leave(); end != nil {
					end()
				}
				continue
			}
			if code != exitInterrupted || !begun {
				t.Errorf("%s: code %d, %s %s", client, code, out, stderr)
			}
			if end == nil {
				return
			}
			if code, stderr := end(); code != exitOK {
				t.Errorf("%s: server: code %d, %s", client, code, stderr)
			}
			return
		}
	}
	const serve = "bench --once --serve udp:127.0.0.1"
	interrupted(serve, "", "interrupted after")
	interrupted(serve+" --link", "--link", "interrupted after")
	interrupted(serve+" --link", "--link --stream", "interrupted after")
	interrupted("", "--compare tcp", "dgrdmacat bench: tcp beside it: interrupted after ")
	interrupted("bench --once --serve tcp:127.0.0.1", "--size 64k", "interrupted after ")
}

func TestBenchServerIsInterruptedOrLosesItsClient(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, end := serving(t, ctx, "bench --once --serve udp:127.0.0.1")
	cancel()
	if code, stderr := end(); code != exitInterrupted || !strings.Contains(stderr, "interrupted") {
		t.Errorf("server: code %d, %s", code, stderr)
	}

	url, end := serving(t, t.Context(), "bench --once --serve udp:127.0.0.1?giveup=300ms")
	e, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7, Service: bench.Service})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, begin, onePeer...)
	e.Close()
	if code, stderr := end(); code != exitError {
		t.Errorf("server: code %d, %s", code, stderr)
	}
}

// TestBenchSaysOnce what ended a link, at the end that sends and at the one that serves,
// which learn of it in two ways.
func TestBenchSaysOnce(t *testing.T) {
	t.Parallel()
	const giveUp = "?giveup=3s"
	server, url := startServer(t, "bench", "--link", "--serve", "udp:127.0.0.1"+giveUp)
	measuring := func() *process {
		p := asProcess(t, "bench", "--link", "--seconds", "3600", "-i", "50ms", "--to", url+giveUp).start()
		p.moves()
		return p
	}
	client := measuring()
	client.Process.Kill()
	client.code()
	eventually(t, "the server says what became of its client", func() bool { return strings.Contains(server.err.String(), "does not answer any more") })
	client = measuring()
	server.Process.Kill()
	if code := client.code(); code != exitError {
		t.Errorf("code %d", code)
	}
	for _, p := range []*process{server, client} {
		if said := p.err.String(); strings.Count(said, "does not answer any more") != 1 {
			t.Errorf("not said once: %s", said)
		}
	}
}

func TestServerMissing(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	const nobody = "ocpi-udp-rdma:127.0.0.1;9;134217728.2.16?giveup=100ms"
	for _, args := range []string{"bench --to " + nobody, "bench --peers 3 --to " + nobody} {
		code, out, stderr := runFor(t, t.Context(), strings.Fields(args)...)
		if code != exitError || out != "" || !strings.Contains(stderr, "peer never answered") {
			t.Errorf("%s: code %d, %q, %q", args, code, out, stderr)
		}
	}
}

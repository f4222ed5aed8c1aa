package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/bench"
)

// TestCongestionFlag: names are the kernel's, and the flag is for connections of TCP.
func TestCongestionFlag(t *testing.T) {
	for text, ok := range map[string]bool{"auto": true, "default": true, "bbr": true, "bbr2_x-y": true, "": false, "Reno": false, "a b": false, "x/y": false, strings.Repeat("x", 16): false} {
		f := congestionFlag("kept")
		if err := f.Set(text); (err == nil) != ok || ok && f.String() != text || !ok && f != "kept" {
			t.Errorf("%q: %v, %q", text, err, f)
		}
	}
	f := congestionFlag("reno")
	for _, c := range []struct {
		all []bench.Carrier
		ok  bool
	}{{nil, false}, {[]bench.Carrier{bench.Raw}, false}, {[]bench.Carrier{bench.Raw, bench.TLS}, true}, {[]bench.Carrier{bench.TCP}, true}} {
		if err := f.checkFor(&compareFlag{c.all}); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.all, err)
		}
	}
}

// TestBenchSaysWithWhichController: in words and in JSON, what was tried, and what the machine's default does.
func TestBenchSaysWithWhichController(t *testing.T) {
	o := bench.NewOutcome()
	turns := func(who bench.Contender, bytes uint64) {
		o.Turns = append(o.Turns, bench.Turn{Contender: who, Bytes: bytes, Took: 1e9, CPU: 1e6})
	}
	turns(bench.Contender{}, 6e9)
	turns(bench.Contender{Carrier: bench.TCP, Controller: "reno"}, 8e9)
	turns(bench.Contender{Carrier: bench.TCP}, 3e9)
	turns(bench.Contender{Carrier: bench.TLS}, 1e9)
	o.Choices = []bench.Choice{
		{Carrier: bench.TCP, Controller: "reno", Default: "bbr", Trials: []bench.Trial{{Controller: "reno", PerSecond: 7e9}, {Controller: "bbr", PerSecond: 2e9}}, Refused: []bench.RefusedController{{Name: "cubic", Err: unix.EPERM}}, ClientOnly: true},
		{Carrier: bench.TLS, Controller: "bbr", Default: "bbr"},
	}
	c := compare(o, []bench.Carrier{bench.TCP, bench.TLS}, "dgrdma")
	var out strings.Builder
	c.describe(&out)
	for _, want := range []string{
		"tcp          8000 MB/s (8000..8000), 0 ns of processor time per kB, 0.0 waits per MB: ratio 0.75, by reno, the fastest of reno, bbr, at this end alone: the server cannot set it\n" +
			"             3000 MB/s (3000..3000), 0 ns of processor time per kB, 0.0 waits per MB: ratio 2.00, by bbr, the machine's default\n" +
			"             not tried: cubic, which only root may use (net.ipv4.tcp_allowed_congestion_control)\n",
		"tls          1000 MB/s (1000..1000), 1 ns of processor time per kB, 0.0 waits per MB: ratio 6.00, by bbr\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
	b, err := json.Marshal(&c)
	var got struct {
		Compare []struct {
			Congestion string
			Trials     []struct {
				Congestion string
			} `json:"congestion_trials"`
			Refused   []string `json:"congestion_refused"`
			ByDefault *struct {
				Congestion string
				MBPerS     float64 `json:"mb_per_s"`
				Ratio      float64
			} `json:"by_default"`
		}
	}
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || len(got.Compare) != 2 {
		t.Fatalf("%v: %s", err, b)
	}
	tcp, tls := got.Compare[0], got.Compare[1]
	if tcp.Congestion != "reno" || len(tcp.Trials) != 2 || len(tcp.Refused) != 1 || tcp.ByDefault == nil || tcp.ByDefault.Congestion != "bbr" || tcp.ByDefault.MBPerS != 3000 || tcp.ByDefault.Ratio != 2 || tls.Congestion != "bbr" || tls.ByDefault != nil {
		t.Errorf("%s", b)
	}
}

// TestBenchChoosesTheController that was the fastest in trials of all that this machine lets it use; one that it has not is refused by name.
func TestBenchChoosesTheController(t *testing.T) {
	t.Parallel()
	found := bench.FindControllers()
	for _, load := range []string{"", " --op write"} {
		got := runJSON(t, "bench --json --size 65536 --seconds 0.1 --compare tcp"+load)
		all, _ := got["compare"].([]any)
		if len(all) != 1 {
			t.Fatalf("%v", got)
		}
		tcp := all[0].(map[string]any)
		name, _ := tcp["congestion"].(string)
		byDefault, _ := tcp["by_default"].(map[string]any)
		if trials, _ := tcp["congestion_trials"].([]any); !slices.Contains(found.Usable, name) || len(found.Usable) > 1 && len(trials) != len(found.Usable) || (name == found.Default) != (byDefault == nil) {
			t.Errorf("%v of %+v", tcp, found)
		}
		if cpu, _ := got["cpu_ns_per_kb"].(float64); cpu <= 0 {
			t.Errorf("processor time: %v", got["cpu_ns_per_kb"])
		}
		if code, _, stderr := runOnce(t.Context(), strings.Fields("bench --seconds 0.1 --compare tcp --congestion no-such"+load)...); code != exitUsage || !strings.Contains(stderr, "--congestion no-such, which this kernel does not have: use one of ") {
			t.Errorf("code %d: %s", code, stderr)
		}
	}
}

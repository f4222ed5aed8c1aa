package main

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/metrics"
)

// TestBenchSaysWhatCongestionControlDid: in JSON always, but where the server sent, in words where others use the path.
func TestBenchSaysWhatCongestionControlDid(t *testing.T) {
	t.Parallel()
	const run = "bench --seconds 0.1 --size 64k"
	if c, _ := runJSON(t, run+" --json")["congestion"].(map[string]any); c["controller"] != "adaptive" || c["why"] != "a round trip took less than 1ms" {
		t.Errorf("on loopback: %v", c)
	}
	if back := runJSON(t, run+" --json --reverse")["congestion"]; back != nil {
		t.Errorf("the server sends: %v", back)
	}
	var out strings.Builder
	describeCongestion(&out, nil)
	describeCongestion(&out, &metrics.Congestion{Controller: "adaptive", Bandwidth: 1e9})
	describeCongestion(&out, &metrics.Congestion{Controller: "bbr", State: "ProbeBW_UP", Bandwidth: 12.3e6, Pacing: 15.1e6, MinRTT: .04, LongTerm: 600_000, ShortTerm: 500_000})
	describeCongestion(&out, &metrics.Congestion{Controller: "bbr", State: "Startup", Bandwidth: 1e6, Pacing: 2e6})
	want := "congestion   bbr in ProbeBW_UP: the path delivers 12.3 MB/s, paced at 15.1 MB/s, round trip without queues 40ms, long-term bound 600 kB, short-term bound 500 kB\n" +
		"congestion   bbr in Startup: the path delivers 1.00 MB/s, paced at 2.00 MB/s, round trip without queues -\n"
	if out.String() != want {
		t.Errorf("%s, want\n%s", &out, want)
	}
}

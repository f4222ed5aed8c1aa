package main

import (
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/bench"
)

// TestChoiceInWords: the controller, what a stream did with each, and why there was none to choose.
func TestChoiceInWords(t *testing.T) {
	trials := []bench.Trial{{Controller: "reno", PerSecond: 7.4e9}, {Controller: "bbr", PerSecond: 2.9e9}}
	for _, c := range []struct {
		choice
		want string
	}{
		{choice{"reno", "bbr", trials, "", nil}, "by reno; a stream in trials: reno 7400, bbr, the machine's default, 2900"},
		{choice{"bbr", "bbr", trials[1:], "", []string{"cubic"}}, "by bbr, the machine's default; a stream in trials: bbr 2900; not tried, as net.ipv4.tcp_allowed_congestion_control does not have it: cubic"},
		{choice{"bbr", "bbr", nil, "it needs root", nil}, "by bbr, the machine's default, as it needs root"},
	} {
		if got := c.choice.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestWhichRowsAreOverTCP: those of verbs, calls and files have a controller chosen for them; bench chooses for those over UDP.
func TestWhichRowsAreOverTCP(t *testing.T) {
	for _, r := range rows {
		want := strings.HasPrefix(r.name, "verbs-") || strings.HasPrefix(r.name, "rpc-") || strings.HasPrefix(r.name, "nfs-") || r.name == "tcp-streams" || r.name == "send"
		if r.overTCP() != want {
			t.Errorf("%s is over TCP: %v", r.name, r.overTCP())
		}
	}
	none := make(controllers)
	if c, err := none.at(t.Context(), &rows[0], options{}, nil); c != nil || err != nil || len(none) != 0 {
		t.Errorf("%s: %v, %v", rows[0].name, c, err)
	}
}

// TestSeriesInATable: figures, controllers, processor time of both, and the load, each in its cell.
func TestSeriesInATable(t *testing.T) {
	r := &row{name: "x", line: "ours", versus: "TCP"}
	s := &series{load: [2]float64{0.5, 3}}
	s.add(result{ours: 6000, theirs: 8000, oursCPU: 390, theirsCPU: 250, by: "reno", byItself: "bbr", byDefault: 3000}, true)
	s.add(result{ours: 6000, theirs: 8000, oursCPU: 410, theirsCPU: 250, by: "cubic"}, true)
	s.add(result{ours: 6000, theirs: 8000, oursCPU: 390, theirsCPU: 270, by: "reno", byItself: "bbr", byDefault: 3100}, true)
	const want = "| `x` | ours | 6000 (6000..6000) | TCP: 8000 (8000..8000) by reno or cubic; by bbr, the machine's default, 3050 | 0.75 | 390 / 250 | 0.5, 3.0 |"
	if got := r.markdown(s); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	r.versus, s = "", &series{}
	s.add(result{ours: 10, oursCPU: 7}, false)
	if got, want := r.markdown(s), "| `x` | ours | 10 (10..10) | | | 7 | 0.0, 0.0 |"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

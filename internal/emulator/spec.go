package emulator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// Example is a path as [Parse] reads it.
const Example = "rate=20M,rtt=40ms,queue=1bdp,loss=1%"

// property is what a path string may say once, or often if many is set.
type property struct {
	name, how string
	many      bool
	set       func(s *spec, value string) bool
}

// spec is a path string that is being read. A queue may be told by what rate and trip make of it.
type spec struct {
	cfg       Config
	queue     func(rate int64, trip time.Duration) float64
	burst     float64
	loss      float64
	reorderBy time.Duration
}

// properties are all of them, in the order of the documentation.
var properties = []property{
	{name: "rate", how: "bits per second, as 20M or 1.5G", set: func(s *spec, v string) (ok bool) {
		s.cfg.Bottleneck.Rate, ok = parseRate(v)
		return ok && s.cfg.Bottleneck.Rate > 0
	}},
	{name: "rtt", how: "the round trip without queues, as 40ms, at most 10s", set: func(s *spec, v string) (ok bool) {
		s.cfg.Trip, ok = parseTime(v)
		return ok && s.cfg.Trip <= 10*time.Second
	}},
	{name: "queue", how: "bytes, as 100k; a time at the rate, as 50ms; or a multiple of rate and rtt, as 1bdp", set: (*spec).setQueue},
	{name: "loss", how: "a share of the packets, each way, as 1%", set: func(s *spec, v string) (ok bool) {
		s.loss, ok = parseShare(v)
		return ok
	}},
	{name: "burst", how: "how many packets are lost in a row, on average, from 1 on, as 5", set: func(s *spec, v string) bool {
		n, err := strconv.ParseFloat(v, 64)
		s.burst = n
		return err == nil && n >= 1 && n <= 1e6
	}},
	{name: "jitter", how: "the bound of a random delay, each way, as 2ms", set: func(s *spec, v string) (ok bool) {
		s.cfg.Jitter, ok = parseTime(v)
		return ok
	}},
	{name: "reorder", how: "a share of the packets that others overtake, as 1%", set: func(s *spec, v string) (ok bool) {
		s.cfg.Reorder, ok = parseShare(v)
		return ok
	}},
	{name: "codel", how: "yes: the queue is controlled by CoDel (RFC 8289)", set: func(s *spec, v string) bool {
		s.cfg.Bottleneck.CoDel = new(bottleneck.CoDel)
		return v == "yes"
	}},
	{name: "change", how: "a later rate and when it begins, as 10M@5s; 0@5s stands still", many: true, set: (*spec).addChange},
	{name: "outage", how: "how long all is lost and when that begins, as 2s@5s", many: true, set: (*spec).addOutage},
	{name: "seed", how: "a number that says which packets are lost", set: func(s *spec, v string) bool {
		n, err := strconv.ParseUint(v, 10, 64)
		s.cfg.Seed = n
		return err == nil
	}},
}

// reordered is how much longer a packet takes that others overtake; arbitrary.
const reordered = time.Millisecond

// Parse reads a path string, as [Example]. Its errors say what was wrong and how it is written.
func Parse(text string) (Config, error) {
	s := &spec{reorderBy: reordered, queue: func(rate int64, trip time.Duration) float64 { return bytesIn(rate, trip) }}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(text, ",") {
		name, value, is := strings.Cut(part, "=")
		at := slices.IndexFunc(properties, func(p property) bool { return p.name == name })
		switch {
		case at < 0:
			return Config{}, fmt.Errorf("%q is no property: there are %s; write it as %s", name, names(), Example)
		case !is || value == "":
			return Config{}, fmt.Errorf("%s has no value: write %s=, and %s", name, name, properties[at].how)
		case seen[name] && !properties[at].many:
			return Config{}, fmt.Errorf("%s is there twice: leave one out", name)
		case !properties[at].set(s, value):
			return Config{}, fmt.Errorf("%s cannot be %s: it is %s", name, value, properties[at].how)
		}
		seen[name] = true
	}
	for _, needed := range []string{"rate", "rtt"} {
		if !seen[needed] {
			return Config{}, fmt.Errorf("%s is missing: write it as %s", needed, Example)
		}
	}
	if seen["burst"] && s.loss == 0 {
		return Config{}, fmt.Errorf("burst is there without loss: write loss=1%%, say")
	}
	return s.finish(), nil
}

func (s *spec) finish() Config {
	cfg := s.cfg
	b := &cfg.Bottleneck
	b.Queue = max(leastQueue, int(s.queue(b.Rate, cfg.Trip)))
	if cfg.Reorder > 0 {
		cfg.ReorderBy = s.reorderBy
	}
	if s.burst > 1 {
		cfg.Bursts = bottleneck.Bursts(s.loss, s.burst)
	} else {
		cfg.Loss = s.loss
	}
	slices.SortStableFunc(b.Changes, func(x, y bottleneck.Change) int { return int(x.At - y.At) })
	return cfg
}

// leastQueue is room for two packets of 1500 bytes: with less a path carries nothing well.
const leastQueue = 3000

func (s *spec) setQueue(v string) bool {
	if n, is := strings.CutSuffix(v, "bdp"); is {
		times, err := strconv.ParseFloat(n, 64)
		s.queue = func(rate int64, trip time.Duration) float64 { return times * bytesIn(rate, trip) }
		return err == nil && times > 0 && times <= 1000
	}
	if d, ok := parseTime(v); ok {
		s.queue = func(rate int64, _ time.Duration) float64 { return bytesIn(rate, d) }
		return d > 0
	}
	n, ok := parseRate(v)
	s.queue = func(int64, time.Duration) float64 { return float64(n) }
	return ok && n > 0 && n <= 1<<30
}

func (s *spec) addChange(v string) bool {
	rate, at, _ := strings.Cut(v, "@")
	r, ok := parseRate(rate)
	t, timed := parseTime(at)
	s.cfg.Bottleneck.Changes = append(s.cfg.Bottleneck.Changes, bottleneck.Change{At: t, Rate: r})
	return ok && timed
}

func (s *spec) addOutage(v string) bool {
	long, at, _ := strings.Cut(v, "@")
	l, ok := parseTime(long)
	t, timed := parseTime(at)
	s.cfg.Bottleneck.Outages = append(s.cfg.Bottleneck.Outages, bottleneck.Outage{From: t, For: l})
	return ok && timed
}

func names() string {
	var all []string
	for _, p := range properties {
		all = append(all, p.name)
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// Help says what a path string may say, a line for each property.
func Help() string {
	var b strings.Builder
	for _, p := range properties {
		fmt.Fprintf(&b, "  %-9s %s\n", p.name, p.how)
	}
	return b.String()
}

func bytesIn(rate int64, d time.Duration) float64 { return float64(rate) / 8 * d.Seconds() }

// mostRate is what a processor can carry, and more.
const mostRate = 10_000_000_000

// parseRate reads a number with k, M or G.
func parseRate(v string) (int64, bool) {
	unit := 1.
	for suffix, factor := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if n, is := strings.CutSuffix(v, suffix); is {
			v, unit = n, factor
			break
		}
	}
	n, err := strconv.ParseFloat(v, 64)
	n = math.Round(n * unit)
	return int64(n), err == nil && n >= 0 && n <= mostRate
}

// parseTime reads a time from 0 to a day.
func parseTime(v string) (time.Duration, bool) {
	d, err := time.ParseDuration(v)
	return d, err == nil && d >= 0 && d <= 24*time.Hour
}

// parseShare reads a percentage below 100.
func parseShare(v string) (float64, bool) {
	n, is := strings.CutSuffix(v, "%")
	p, err := strconv.ParseFloat(n, 64)
	return p / 100, err == nil && is && p >= 0 && p < 100
}

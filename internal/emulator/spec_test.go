package emulator_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

const ms = time.Millisecond

// TestParse checks every property, in every form.
func TestParse(t *testing.T) {
	for text, want := range map[string]emulator.Config{
		emulator.Example:                        {Bottleneck: bottleneck.Config{Rate: 20e6, Queue: 100_000}, Trip: 40 * ms, Loss: 0.01},
		"rate=1.5G,rtt=1s":                      {Bottleneck: bottleneck.Config{Rate: 1_500_000_000, Queue: 187_500_000}, Trip: time.Second},
		"rate=8M,rtt=100ms,queue=50ms":          {Bottleneck: bottleneck.Config{Rate: 8e6, Queue: 50_000}, Trip: 100 * ms},
		"queue=0.25bdp,rate=8M,rtt=100ms":       {Bottleneck: bottleneck.Config{Rate: 8e6, Queue: 25_000}, Trip: 100 * ms},
		"rate=8M,rtt=100ms,queue=64k":           {Bottleneck: bottleneck.Config{Rate: 8e6, Queue: 64_000}, Trip: 100 * ms},
		"rate=500k,rtt=0ms":                     {Bottleneck: bottleneck.Config{Rate: 500_000, Queue: 3000}},
		"rate=8M,rtt=8ms,loss=2%,burst=5":       {Bottleneck: bottleneck.Config{Rate: 8e6, Queue: 8000}, Trip: 8 * ms, Bursts: bottleneck.Bursts(0.02, 5)},
		"rate=8M,rtt=8ms,loss=2%,burst=1":       {Bottleneck: bottleneck.Config{Rate: 8e6, Queue: 8000}, Trip: 8 * ms, Loss: 0.02},
		"rate=8M,rtt=8ms,jitter=2ms,reorder=3%": {Bottleneck: bottleneck.Config{Rate: 8e6, Queue: 8000}, Trip: 8 * ms, Jitter: 2 * ms, Reorder: 0.03, ReorderBy: ms},
		"rate=8M,rtt=8ms,codel=yes,seed=7":      {Bottleneck: bottleneck.Config{Rate: 8e6, Queue: 8000, CoDel: &bottleneck.CoDel{}}, Trip: 8 * ms, Seed: 7},
		"rate=8M,rtt=8ms,change=8M@10s,change=0@5s,outage=2s@20s": {Bottleneck: bottleneck.Config{
			Rate: 8e6, Queue: 8000, Changes: []bottleneck.Change{{At: 5 * time.Second}, {At: 10 * time.Second, Rate: 8e6}},
			Outages: []bottleneck.Outage{{From: 20 * time.Second, For: 2 * time.Second}},
		}, Trip: 8 * ms},
	} {
		got, err := emulator.Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", text, got, err, want)
		}
	}
}

// TestParseErrors checks that what is wrong is named, and how it is written.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                   {`"" is no property`, "rate, rtt, queue", emulator.Example},
		"rate=20M":                           {"rtt is missing", emulator.Example},
		"rtt=40ms":                           {"rate is missing"},
		"rate=20M,rtt=40ms,":                 {`"" is no property`},
		"rate=20M,rtt=40ms,rate=1M":          {"rate is there twice"},
		"rate=20M,rtt=40ms,queue":            {"queue has no value", "as 100k"},
		"rate=20M,rtt=40ms,queue=":           {"queue has no value"},
		"rate=20Q,rtt=40ms":                  {"rate cannot be 20Q", "bits per second, as 20M"},
		"rate=0,rtt=40ms":                    {"rate cannot be 0"},
		"rate=-1M,rtt=40ms":                  {"rate cannot be -1M"},
		"rate=NaN,rtt=40ms":                  {"rate cannot be NaN"},
		"rate=100G,rtt=40ms":                 {"rate cannot be 100G"},
		"rate=20M,rtt=40":                    {"rtt cannot be 40", "as 40ms"},
		"rate=20M,rtt=11s":                   {"rtt cannot be 11s", "at most 10s"},
		"rate=20M,rtt=40ms,loss=1":           {"loss cannot be 1", "as 1%"},
		"rate=20M,rtt=40ms,loss=100%":        {"loss cannot be 100%"},
		"rate=20M,rtt=40ms,queue=0bdp":       {"queue cannot be 0bdp", "as 1bdp"},
		"rate=20M,rtt=40ms,queue=2G":         {"queue cannot be 2G"},
		"rate=20M,rtt=40ms,burst=5":          {"burst is there without loss"},
		"rate=20M,rtt=40ms,burst=.5,loss=1%": {"burst cannot be .5"},
		"rate=20M,rtt=40ms,codel=no":         {"codel cannot be no", "it is yes"},
		"rate=20M,rtt=40ms,change=10M":       {"change cannot be 10M", "10M@5s"},
		"rate=20M,rtt=40ms,outage=@5s":       {"outage cannot be @5s", "2s@5s"},
		"rate=20M,rtt=40ms,seed=-1":          {"seed cannot be -1"},
		"rate=20M,rtt=40ms,delay=1ms":        {`"delay" is no property`},
	} {
		_, err := emulator.Parse(text)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s in it", text, err, w)
			}
		}
	}
}

// TestHelp checks that each property that errors name has its line.
func TestHelp(t *testing.T) {
	_, err := emulator.Parse("x")
	for line := range strings.Lines(emulator.Help()) {
		if name := strings.Fields(line)[0]; !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in %v", name, err)
		}
	}
}

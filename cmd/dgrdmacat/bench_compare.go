package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/url"
)

// compareFlag is --compare: with what a run takes turns.
type compareFlag struct {
	all []bench.Carrier
}

func (f *compareFlag) String() string {
	names := make([]string, len(f.all))
	for i, c := range f.all {
		names[i] = c.String()
	}
	return strings.Join(names, ",")
}

// Set implements [flag.Value].
func (f *compareFlag) Set(text string) error {
	f.all = nil
	for name := range strings.SplitSeq(text, ",") {
		c, known := bench.Carriers[name]
		switch {
		case name == "quic":
			return errors.New("quic is not in this program, as its library would be everybody's: go run -C tests/quic . -h, or as root go run ./tests/rows udp-quic, in the sources")
		case !known:
			return fmt.Errorf("%q is none of %s", name, strings.Join(f.choices(), ", "))
		case slices.Contains(f.all, c):
			return fmt.Errorf("%s is there twice", name)
		}
		f.all = append(f.all, c)
	}
	return nil
}

func (f *compareFlag) choices() []string { return slices.Sorted(maps.Keys(bench.Carriers)) }

// check refuses what cannot be compared with.
func (f *compareFlag) check(o *benchOptions) error {
	switch {
	case len(f.all) == 0:
		return nil
	case o.rate.bytes != 0 || o.interval != 0 || o.sweep.from != 0:
		return badUsage("--compare takes turns, as fast as it goes, with one size: leave out --rate, -i and --sweep")
	case (o.bidir || o.reverse) && slices.ContainsFunc(f.all, bench.Carrier.OneWay):
		return badUsage("--compare raw goes to the server alone: leave out --bidir and --reverse")
	}
	return nil
}

// checkWire refuses what there is none of on a wire.
func (f *compareFlag) checkWire(scheme url.Scheme) error {
	for _, c := range f.all {
		if c != bench.Raw && scheme != url.UDP {
			return badUsage("--compare %v: there is no TCP on bare Ethernet; compare with raw there, or over UDP", c)
		}
	}
	return nil
}

// benchTurns is what the turns of one carrier had, as JSON has it.
type benchTurns struct {
	Protocol string  `json:"protocol"`
	Turns    int     `json:"turns"`
	MBPerS   float64 `json:"mb_per_s"` // medians
	Least    float64 `json:"least_mb_per_s"`
	Most     float64 `json:"most_mb_per_s"`
	CPU      float64 `json:"cpu_ns_per_kb"`   // both ends
	Waits    float64 `json:"waits_per_mb"`    // how often a thread of theirs gave up its processor
	Ratio    float64 `json:"ratio,omitempty"` // ours to this
}

// benchMachine is what a machine did besides, as JSON has it.
type benchMachine struct {
	Processors int      `json:"processors"`
	Load       float64  `json:"load,omitempty"`
	Others     *float64 `json:"others_cpu_share,omitempty"`
	Busy       bool     `json:"busy"`
}

func machineOf(m bench.Machine) *benchMachine {
	b := &benchMachine{Processors: m.Processors, Load: m.Load, Busy: m.Busy()}
	if m.Others >= 0 {
		b.Others = &m.Others
	}
	return b
}

// benchComparison is the part of a result that is about others.
type benchComparison struct {
	Ours          *benchTurns   `json:"ours,omitempty"`
	Compared      []*benchTurns `json:"compare,omitempty"`
	Machine       *benchMachine `json:"machine,omitempty"`
	ServerMachine *benchMachine `json:"server_machine,omitempty"` // if it is another one
}

// compare sums up the turns of ours, which has that name, and of its rivals.
func compare(o *bench.Outcome, rivals []bench.Carrier, ours string) (c benchComparison) {
	if len(o.Turns) == 0 {
		return c
	}
	here, there := o.Machines()
	if c.Machine = machineOf(here); there != here {
		c.ServerMachine = machineOf(there)
	}
	if len(rivals) == 0 {
		return c
	}
	c.Ours = turnsOf(o, bench.Ours)
	c.Ours.Protocol = ours
	for _, rival := range rivals {
		t := turnsOf(o, rival)
		if t.Turns == 0 {
			continue // it ended before
		}
		if t.MBPerS > 0 {
			t.Ratio = c.Ours.MBPerS / t.MBPerS
		}
		c.Compared = append(c.Compared, t)
	}
	return c
}

func turnsOf(o *bench.Outcome, c bench.Carrier) *benchTurns {
	rate := o.Spread(c, bench.Turn.PerSecond)
	cpu := o.Spread(c, func(t bench.Turn) float64 { return t.Per1000(float64(t.CPU.Nanoseconds())) })
	waits := o.Spread(c, func(t bench.Turn) float64 { return t.Per1000(1000 * float64(t.Waits)) })
	return &benchTurns{c.String(), rate.Turns, rate.Median / 1e6, rate.Least / 1e6, rate.Most / 1e6, cpu.Median, waits.Median, 0}
}

func (t *benchTurns) String() string {
	return fmt.Sprintf("%s MB/s (%s..%s), %.0f ns of processor time per kB, %.1f waits per MB", threeDigits(t.MBPerS), threeDigits(t.Least), threeDigits(t.Most), t.CPU, t.Waits)
}

// describe writes the comparison for people.
func (c *benchComparison) describe(w io.Writer) {
	if len(c.Compared) == 0 {
		return
	}
	fmt.Fprintf(w, "%-12s %v; median of %s\n", c.Ours.Protocol, c.Ours, count(c.Ours.Turns, "turn"))
	for _, t := range c.Compared {
		fmt.Fprintf(w, "%-12s %v: ratio %.2f\n", t.Protocol, t, t.Ratio)
	}
	c.Machine.describe(w, "machine")
	if c.ServerMachine != nil {
		c.ServerMachine.describe(w, "its server's")
	}
}

func (m *benchMachine) describe(w io.Writer, what string) {
	fmt.Fprintf(w, "%-12s %s", what, count(m.Processors, "processor"))
	if m.Load > 0 {
		fmt.Fprintf(w, ", load %.2f", m.Load)
	}
	if m.Others != nil {
		fmt.Fprintf(w, ", others took %.0f %% of their time", 100**m.Others)
	}
	if m.Busy {
		fmt.Fprint(w, ": busy, do not rely on ratios")
	}
	fmt.Fprintln(w)
}

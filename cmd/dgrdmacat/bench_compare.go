package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/settings"
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

// congestionFlag is --congestion: what connections of --compare have. "" is bench.FastestController.
type congestionFlag string

func (f *congestionFlag) String() string { return string(*f) }

// Set implements [flag.Value].
func (f *congestionFlag) Set(text string) error {
	named := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' }
	if text == "" || len(text) > bench.MostControllerName || strings.ContainsFunc(text, func(r rune) bool { return !named(r) }) {
		return fmt.Errorf("%q is no congestion controller: need auto, default or a name such as cubic", text)
	}
	*f = congestionFlag(text)
	return nil
}

// checkFor refuses the flag where no connection of TCP is compared with.
func (f *congestionFlag) checkFor(c *compareFlag) error {
	if *f != "" && !slices.ContainsFunc(c.all, bench.Carrier.Stream) {
		return badUsage("--congestion is for what runs over TCP: give it beside --compare tcp or tls")
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
	CPU      float64 `json:"cpu_ns_per_kb"`     // both ends
	Waits    float64 `json:"waits_per_mb"`      // how often a thread of theirs gave up its processor
	Ratio    float64 `json:"ratio,omitempty"`   // ours to this
	Options  string  `json:"options,omitempty"` // of the wire, where they are not those of ours
	*controllerTurns
}

// controllerTurns is what turns over TCP have in addition, as JSON has it.
type controllerTurns struct {
	Congestion string            `json:"congestion,omitempty"`
	Trials     []controllerTrial `json:"congestion_trials,omitempty"` // the fastest first
	Refused    []string          `json:"congestion_refused,omitempty"`
	ClientOnly bool              `json:"congestion_of_client_only,omitempty"`
	ByDefault  *benchTurns       `json:"by_default,omitempty"` // with the machine's default, if that is another one
}

type controllerTrial struct {
	Congestion string  `json:"congestion"`
	MBPerS     float64 `json:"mb_per_s"`
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
	c.Ours = turnsOf(o, bench.Contender{})
	c.Ours.Protocol = ours
	for _, rival := range rivals {
		t := c.rival(o, bench.Contender{Carrier: rival})
		if i := slices.IndexFunc(o.Choices, func(x bench.Choice) bool { return x.Carrier == rival }); i >= 0 {
			t = c.chosen(o, &o.Choices[i])
		}
		if t.Turns > 0 { // else it ended before
			c.Compared = append(c.Compared, t)
		}
	}
	return c
}

// rival sums up the turns of a contender, and compares ours with them.
func (c *benchComparison) rival(o *bench.Outcome, who bench.Contender) *benchTurns {
	t := turnsOf(o, who)
	if t.MBPerS > 0 {
		t.Ratio = c.Ours.MBPerS / t.MBPerS
	}
	return t
}

// chosen sums up the turns of a carrier over TCP: with the controller that was chosen, and with the machine's default.
func (c *benchComparison) chosen(o *bench.Outcome, choice *bench.Choice) *benchTurns {
	byDefault := c.rival(o, bench.Contender{Carrier: choice.Carrier})
	byDefault.controllerTurns = &controllerTurns{Congestion: choice.Default}
	t := byDefault
	if choice.Controller != choice.Default {
		t = c.rival(o, bench.Contender{Carrier: choice.Carrier, Controller: choice.Controller})
		t.controllerTurns = &controllerTurns{Congestion: choice.Controller, ClientOnly: choice.ClientOnly}
		if byDefault.Turns > 0 {
			t.ByDefault = byDefault
		}
	}
	for _, trial := range choice.Trials {
		t.Trials = append(t.Trials, controllerTrial{trial.Controller, trial.PerSecond / 1e6})
	}
	for _, r := range choice.Refused {
		t.Refused = append(t.Refused, r.String())
	}
	return t
}

func turnsOf(o *bench.Outcome, c bench.Contender) *benchTurns {
	rate := o.Spread(c, bench.Turn.PerSecond)
	cpu := o.Spread(c, func(t bench.Turn) float64 { return t.Per1000(float64(t.CPU.Nanoseconds())) })
	waits := o.Spread(c, func(t bench.Turn) float64 { return t.Per1000(1000 * float64(t.Waits)) })
	return &benchTurns{c.Carrier.String(), rate.Turns, rate.Median / 1e6, rate.Least / 1e6, rate.Most / 1e6, cpu.Median, waits.Median, 0, "", nil}
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
		fmt.Fprintf(w, "%-12s %v: ratio %.2f%s%s\n", t.Protocol, t, t.Ratio, t.byController(), t.withOptions())
		t.describeController(w)
	}
	c.Machine.describe(w, "machine")
	if c.ServerMachine != nil {
		c.ServerMachine.describe(w, "its server's")
	}
}

// noteWire says of turns on a wire what that has differently for them.
func (c *benchComparison) noteWire(scheme url.Scheme) {
	for _, t := range c.Compared {
		if scheme == url.Ether && t.Protocol == bench.Raw.String() {
			t.Options = settings.XDP.Option + "=" + settings.Off
		}
	}
}

func (t *benchTurns) withOptions() string {
	if t.Options == "" {
		return ""
	}
	return ", with " + t.Options
}

// byController says with which controller these turns were, and of which that was the fastest.
func (t *benchTurns) byController() string {
	if t.controllerTurns == nil || t.Congestion == "" {
		return ""
	}
	s := ", by " + t.Congestion
	var tried []string
	for _, trial := range t.Trials {
		tried = append(tried, trial.Congestion)
	}
	if len(tried) > 1 {
		s += ", the fastest of " + strings.Join(tried, ", ")
	}
	if t.ClientOnly {
		s += ", at this end alone: the server cannot set it"
	}
	return s
}

// describeController writes what the machine's default makes of it, and which controllers could not be tried.
func (t *benchTurns) describeController(w io.Writer) {
	if t.controllerTurns == nil {
		return
	}
	if d := t.ByDefault; d != nil {
		fmt.Fprintf(w, "%-12s %v: ratio %.2f, by %s, the machine's default\n", "", d, d.Ratio, d.Congestion)
	}
	for _, r := range t.Refused {
		fmt.Fprintf(w, "%-12s not tried: %s\n", "", r)
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

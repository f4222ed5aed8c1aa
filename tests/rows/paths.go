package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// chooseCells returns the cells that patterns name, as path.Match has them; none: all.
func chooseCells(patterns []string) (chosen []cell, err error) {
	for _, p := range patterns {
		before := len(chosen)
		for _, c := range cells {
			if is, err := path.Match(p, c.name); err != nil {
				return nil, fmt.Errorf("cells %s: %w", p, err)
			} else if is {
				chosen = append(chosen, c)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("there is no cell %s: -paths -l lists them", p)
		}
	}
	if len(patterns) == 0 {
		chosen = cells
	}
	return chosen, nil
}

// outcome is what a cell measured once. Values that were not measured are NaN.
type outcome struct {
	rates   []float64 // Mbit/s of each flow
	dropped float64   // share of what came to the bottleneck
	perByte float64   // bytes at the bottleneck for each that was delivered
	queue   float64   // ms that packets waited, 95th percentile
	took    float64   // ms for the bytes of the cell
	failed  []string  // what flows said that ended by themselves
}

// measurePaths measures cells and prints them as a table.
func measurePaths(ctx context.Context, o options, patterns []string, out io.Writer) error {
	chosen, err := chooseCells(patterns)
	if err = cmp.Or(o.check(), err); err != nil {
		return err
	}
	if why := netns.Missing(); why != "" {
		return fmt.Errorf("paths are between network namespaces: %s", why)
	}
	t, err := build(ctx, false, slices.ContainsFunc(chosen, func(c cell) bool {
		return slices.ContainsFunc(c.flows, func(f pathFlows) bool { return f.kind == kindQUIC })
	}))
	if err != nil {
		return err
	}
	defer t.remove()
	fmt.Fprintf(out, "| cell | path | Mbit/s | Jain | dropped | bytes per byte | queue ms | took ms | load |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range chosen {
		var all []outcome
		for range o.repeats {
			one, err := c.measure(ctx, o, t)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err != nil {
				return fmt.Errorf("cell %s: %w", c.name, err)
			}
			all = append(all, one)
		}
		fmt.Fprintln(out, c.markdown(all))
	}
	fmt.Fprintf(out, "\n%s; median of %d runs of %v.\n", machine(), o.repeats, o.long)
	fmt.Fprintln(out, "A flow alone is measured by what was delivered after its first quarter (QUIC's: by all; one over a link: by what its receiver read); flows that share, by what of each left the bottleneck in the last three quarters of the time that they share.")
	return nil
}

// markdown is a cell as a line of the table: medians.
func (c *cell) markdown(all []outcome) string {
	median := func(of func(outcome) float64, format string) string {
		var f figures
		for _, one := range all {
			if v := of(one); !math.IsNaN(v) {
				f = append(f, v)
			}
		}
		if len(f) == 0 {
			return ""
		}
		return fmt.Sprintf(format, f.median())
	}
	var rates []string
	for i := range all[0].rates {
		rates = append(rates, median(func(o outcome) float64 { return o.rates[i] }, "%.2f"))
	}
	jain := ""
	if len(rates) > 1 {
		jain = median(func(o outcome) float64 { return jainIndex(o.rates) }, "%.2f")
	}
	cells := []string{
		"`" + c.name + "`", c.path, strings.Join(rates, " "), jain,
		median(func(o outcome) float64 { return 100 * o.dropped }, "%.1f %%"), median(func(o outcome) float64 { return o.perByte }, "%.2f"),
		median(func(o outcome) float64 { return o.queue }, "%.1f"), median(func(o outcome) float64 { return o.took }, "%.0f"),
		fmt.Sprintf("%.1f", bench.ThisMachine().Load),
	}
	line := "| " + strings.Join(cells, " | ") + " |"
	for _, o := range all {
		for _, f := range o.failed {
			line += "\n" + f
		}
	}
	return line
}

// jainIndex is 1 where all have the same, and 1/n where one has all (Jain, Chiu and Hawe, 1984).
func jainIndex(rates []float64) float64 {
	sum, squares := 0., 0.
	for _, r := range rates {
		sum += r
		squares += r * r
	}
	return sum * sum / (float64(len(rates)) * squares)
}

// measuredFlow is a flow while it is measured.
type measuredFlow struct {
	kind         string
	after        time.Duration
	local        netip.Addr
	where        string
	at           netip.AddrPort // of the sink
	sink, client *process
	report       flowReport
	window       [2]bottleneck.Counts
	asks         io.Writer // standard input and output of the sink
	says         *bufio.Reader
}

func (c *cell) measure(ctx context.Context, o options, t *tools) (outcome, error) {
	cfg, err := emulator.Parse(c.path)
	if err != nil {
		return outcome{}, err
	}
	if c.later != nil {
		c.later(&cfg, o.long)
	}
	var flows []*measuredFlow
	for _, f := range c.flows {
		local := netns.IPv4(client)
		if f.trip > 0 {
			local = tripAddress
			cfg.Trips = map[netip.Addr]time.Duration{local: f.trip}
		}
		for range f.count {
			flows = append(flows, &measuredFlow{kind: f.kind, after: f.after, local: local})
		}
	}
	p, err := netns.OpenPath(1500, cfg)
	if err != nil {
		return outcome{}, err
	}
	defer p.Close()
	dir, err := os.MkdirTemp(t.dir, c.name+".")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	g := &rig{ctx: ctx, row: &row{name: c.name}, opt: o, tools: t, pair: p.Pair, dir: dir}
	defer func() {
		for _, f := range flows {
			f.stop()
		}
	}()
	for i, f := range flows {
		if err := f.listen(g, i); err != nil {
			return outcome{}, err
		}
	}
	return c.run(g, p, flows)
}

// firstPort is that of QUIC's sinks; arbitrary.
const firstPort = 7100

// listen starts the sink of a flow.
func (f *measuredFlow) listen(g *rig, number int) (err error) {
	at := netns.IPv4(server).String()
	switch f.kind {
	case kindQUIC:
		f.at = netip.AddrPortFrom(netns.IPv4(server), uint16(firstPort+number))
		f.where = f.at.String()
		f.sink = g.command(server, g.tools.quic, "-serve", f.where)
		if err := g.start(f.sink); err != nil {
			return err
		}
		return f.await(g)
	case kindOurs, kindCopy, kindSend:
		at = "udp:" + at
		if g.opt.endpoint != "" {
			at += "?" + g.opt.endpoint
		}
	default:
		at += ":0"
	}
	f.sink = g.command(server, g.tools.self, f.kind, at)
	f.sink.Env = append(os.Environ(), roleVariable+"=path-sink")
	f.sink.Stdout = nil
	if f.asks, err = f.sink.StdinPipe(); err != nil {
		return err
	}
	said, err := f.sink.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.start(f.sink); err != nil {
		return err
	}
	f.says = bufio.NewReader(said)
	line, err := f.says.ReadString('\n')
	if err != nil {
		return fmt.Errorf("sink of %s: %w: %s", f.kind, err, f.sink.err.String())
	}
	f.where = strings.TrimSpace(line)
	if f.at, err = portOf(f.where); err == nil && f.isOurs() {
		f.where = "udp:" + f.at.String() // as users write it: what is not in it is asked for
	}
	return err
}

// isOurs reports whether the flow is between endpoints of ours.
func (f *measuredFlow) isOurs() bool { return f.kind == kindOurs || overLink(f.kind) }

// arrived returns how many bytes came over a link.
func (f *measuredFlow) arrived() (n uint64, err error) {
	if _, err = io.WriteString(f.asks, "\n"); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanln(f.says, &n)
	return n, err
}

// await waits until the sink has its UDP port.
func (f *measuredFlow) await(g *rig) error {
	hexPort := fmt.Sprintf(":%04X ", f.at.Port())
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		there := false
		g.pair[server].In(func() {
			for _, name := range []string{"udp", "udp6"} {
				b, err := os.ReadFile("/proc/thread-self/net/" + name)
				there = there || err == nil && strings.Contains(string(b), hexPort)
			}
		})
		if there {
			return nil
		}
		if time.Now().After(deadline) || f.sink.dead() {
			return fmt.Errorf("sink of %s did not come up: %s", f.kind, f.sink.err.String())
		}
	}
}

// begin starts the flow.
func (f *measuredFlow) begin(g *rig, long time.Duration, bytes int) error {
	if f.kind == kindQUIC {
		f.client = g.command(client, g.tools.quic, "-to", f.where, "-seconds", seconds(long), "-bytes", fmt.Sprint(bytes))
	} else {
		local := f.local.String()
		if f.isOurs() {
			local = "udp:" + local
			if g.opt.endpoint != "" {
				local += "?" + g.opt.endpoint
			}
		}
		f.client = g.command(client, g.tools.self, f.kind, local, f.where, seconds(long), fmt.Sprint(bytes))
		f.client.Env = append(os.Environ(), roleVariable+"=path-flow")
	}
	return g.start(f.client)
}

func (f *measuredFlow) stop() {
	for _, p := range []*process{f.client, f.sink} {
		if p != nil && p.Process != nil && p.ProcessState == nil {
			p.Process.Kill()
			p.Wait()
		}
	}
}

// counts returns what the bottleneck has of the flow.
func (f *measuredFlow) counts(w *emulator.Direction) (n bottleneck.Counts) {
	for _, s := range w.Flows {
		if s.To == f.at {
			n.Bytes += s.Bytes
			n.LeftBytes += s.LeftBytes
		}
	}
	return n
}

func (c *cell) run(g *rig, p *netns.Path, flows []*measuredFlow) (outcome, error) {
	long := g.opt.long
	if c.bytes > 0 {
		long = patience
	}
	began, latest := time.Now(), time.Duration(0)
	for _, f := range flows { // in order of their times
		time.Sleep(f.after - time.Since(began))
		if long <= f.after {
			return outcome{}, fmt.Errorf("takes more than -t %v, after which a flow begins", f.after)
		}
		if err := f.begin(g, long-f.after, c.bytes); err != nil {
			return outcome{}, err
		}
		latest = max(latest, f.after)
	}
	shared := len(flows) > 1
	var from, to time.Time
	if shared {
		// QUIC ends when it has sent, and all others at the end: what is after it has not all of them.
		time.Sleep(latest + (long-latest)/4 - time.Since(began))
		from = time.Now()
		w := p.Router.Way(client)
		for _, f := range flows {
			f.window[0] = f.counts(&w)
		}
		time.Sleep(long - 200*time.Millisecond - time.Since(began))
		to = time.Now()
		w = p.Router.Way(client)
		for _, f := range flows {
			f.window[1] = f.counts(&w)
		}
	}
	one := outcome{perByte: math.NaN(), took: math.NaN()}
	if f := flows[0]; overLink(f.kind) && c.bytes == 0 {
		// What the sender gave away may wait in buffers, which grow: what arrives is counted.
		time.Sleep(long/4 - time.Since(began))
		from := time.Now()
		before, err := f.arrived()
		time.Sleep(long - 200*time.Millisecond - time.Since(began))
		after, err2 := f.arrived()
		if err = cmp.Or(err, err2); err != nil {
			return outcome{}, fmt.Errorf("sink of %s: %w", f.kind, err)
		}
		one.rates = append(one.rates, float64(after-before)*8/1e6/time.Since(from).Seconds())
	}
	delivered := 0.
	for i, f := range flows {
		if err := f.client.ended(long*3 + patience); err != nil {
			one.failed = append(one.failed, fmt.Sprintf("flow %d, %s: %v", 1+i, f.kind, err))
		} else if err := json.Unmarshal(f.client.out.Bytes(), &f.report); err != nil {
			return outcome{}, fmt.Errorf("%s printed no object: %w", f.kind, err)
		}
		r := f.report
		delivered += r.Bytes
		switch {
		case shared:
			one.rates = append(one.rates, float64(f.window[1].LeftBytes-f.window[0].LeftBytes)*8/1e6/to.Sub(from).Seconds())
		case overLink(f.kind) && c.bytes == 0:
		case c.bytes > 0:
			one.took = r.Seconds * 1e3
		default:
			one.rates = append(one.rates, cmp.Or(r.Late, r.Bytes)*8/1e6/cmp.Or(r.LateFor, r.Seconds))
		}
	}
	w := p.Router.Way(client)
	one.dropped, one.queue = float64(w.Dropped)/float64(w.Frames), w.Delay95.Seconds()*1e3
	if delivered > 0 {
		one.perByte = float64(w.Bytes) / delivered
	}
	return one, nil
}

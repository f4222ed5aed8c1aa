package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// A row in which programs of all kinds talk over TCP, ours too, is measured in namespaces whose controller is the one with which a
// stream of TCP is fastest at such a place. Only root can choose for a whole namespace: an ordinary user's rows have the machine's default.
// A namespace can have what net.ipv4.tcp_allowed_congestion_control has, and no other, whoever sets it.
// Rows over UDP leave the choice to bench, which sets the controller of its own connections.

// choice is what trials of a stream of TCP found out.
type choice struct {
	controller, byItself string
	trials               []bench.Trial
	refused              string   // why there was none
	skipped              []string // which a namespace may not have
}

// String says by what a row is measured, and what else a stream of TCP did.
func (c *choice) String() string {
	s := "by " + c.controller
	if c.controller == c.byItself {
		s += ", the machine's default"
	}
	if c.refused != "" {
		return s + ", as " + c.refused
	}
	var tried []string
	for _, t := range c.trials {
		name := t.Controller
		if name == c.byItself && name != c.controller {
			name += ", the machine's default,"
		}
		tried = append(tried, fmt.Sprintf("%s %.0f", name, t.PerSecond/1e6))
	}
	if len(tried) > 0 {
		s += "; a stream in trials: " + strings.Join(tried, ", ")
	}
	if len(c.skipped) > 0 {
		s += "; not tried, as net.ipv4.tcp_allowed_congestion_control does not have it: " + strings.Join(c.skipped, ", ")
	}
	return s
}

// controllers are those that were chosen, by where and beside what.
type controllers map[site]*choice

// site is all that a choice depends on.
type site struct {
	mtu, loss int
	busy      bool
}

// at returns the controller for a row, after trials if it is the first at such a place.
func (all controllers) at(ctx context.Context, r *row, o options, t *tools) (*choice, error) {
	if !r.overTCP() {
		return nil, nil
	}
	where := site{r.place.mtu, r.loss, r.busy}
	if c := all[where]; c != nil {
		return c, nil
	}
	found := bench.FindControllers()
	c := &choice{controller: found.Default, byItself: found.Default}
	if why := netns.Missing(); why != "" {
		c.refused = "another one cannot be set for all programs: " + why
		all[where] = c
		return c, nil
	}
	var trials []bench.Trial
	for round := range bench.TrialRounds {
		for _, name := range found.Usable {
			if slices.Contains(c.skipped, name) {
				continue
			}
			rate, err := r.trial(ctx, options{long: bench.TrialTime(o.long)}, t, name)
			if round == 0 && errors.Is(err, unix.EPERM) {
				c.skipped = append(c.skipped, name)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("trial of %s: %w", name, err)
			}
			trials = append(trials, bench.Trial{Controller: name, PerSecond: rate * 1e6})
		}
	}
	c.trials = bench.FastestFirst(trials)
	c.controller = c.trials[0].Controller
	all[where] = c
	return c, nil
}

// trial measures one stream of TCP, in MB/s, where the row is measured.
func (r *row) trial(ctx context.Context, o options, t *tools, controller string) (float64, error) {
	g, err := newRig(ctx, r, o, t)
	if err != nil {
		return 0, err
	}
	defer g.close()
	if err := errors.Join(g.setController(controller), g.startLoops()); err != nil {
		return 0, err
	}
	rate, _, err := g.streams(1)
	return rate, err
}

// setController sets the controller of both ends.
func (g *rig) setController(name string) error {
	for end := range g.pair {
		if n := g.namespace(end); n != nil {
			if err := n.SetController(name); err != nil {
				return fmt.Errorf("congestion controller %s: %w", name, err)
			}
		}
	}
	return nil
}

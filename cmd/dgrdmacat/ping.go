package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"
)

var pingCommand = command{
	name: "ping", summary: "measure how long a write takes to arrive",
	about: `Measures how long a 64-byte write with completion takes to arrive: half of what
it takes until the peer's answer, the same in the other direction, is complete.

  dgrdmacat ping --serve URL    answer
  dgrdmacat ping --to URL       measure

URL as for bench. --busy-poll drives the endpoint from one thread that never
sleeps; give it to both sides.`,
	flags: func(fs *flag.FlagSet) action {
		o := new(pingOptions)
		o.register(fs)
		return func(ctx context.Context, std *stdio, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			stop, err := o.metrics.start(std.err)
			if err != nil {
				return err
			}
			defer stop()
			switch {
			case o.link && o.serve != "":
				return pingLinkServe(ctx, o, std.err)
			case o.link:
				return pingLinkTo(ctx, o, std.out, std.err)
			case o.serve != "":
				return pingServe(ctx, o, std.err)
			}
			return pingTo(ctx, o, std.out, std.err)
		}
	},
}

type pingOptions struct {
	serve, to, local string
	once, json       bool
	busyPoll, link   bool
	n                int
	metrics          metricsFlag
}

func (o *pingOptions) register(fs *flag.FlagSet) {
	fs.StringVar(&o.serve, "serve", "", "`URL` to answer on")
	fs.BoolVar(&o.once, "once", false, "with --serve: end after one client")
	fs.StringVar(&o.to, "to", "", "complete `URL` of the server")
	fs.StringVar(&o.local, "local", "", "with --to: `URL` of this side; Ethernet needs it")
	fs.IntVar(&o.n, "n", 10000, "how many to measure")
	fs.BoolVar(&o.busyPoll, "busy-poll", false, "never sleep")
	fs.BoolVar(&o.link, "link", false, "over a link; both sides need it")
	fs.BoolVar(&o.json, "json", false, "print one JSON object")
	o.metrics.register(fs)
}

func (o *pingOptions) check() error {
	switch {
	case (o.serve == "") == (o.to == ""):
		return badUsage("give --serve or --to")
	case o.serve == "" && o.once:
		return badUsage("--once belongs to --serve")
	case o.to == "" && o.local != "":
		return badUsage("--local belongs to --to")
	case o.n < 1 || o.n > 100_000_000:
		return badUsage("-n %d: need 1 to 100000000", o.n)
	}
	return nil
}

// pingResult is the object that --json prints: one-way times in microseconds.
type pingResult struct {
	Transport string  `json:"transport"`
	BusyPoll  bool    `json:"busy_poll"`
	Bytes     int     `json:"bytes"`
	N         int     `json:"n"`
	Min       float64 `json:"min_us"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Max       float64 `json:"max_us"`
}

func pingServe(ctx context.Context, o *pingOptions, stderr io.Writer) error {
	local, err := parseLocal("serve", o.serve)
	if err != nil {
		return err
	}
	size := pingMemory
	if local.Size != 0 {
		size = int(local.Size)
	}
	if size < pingData+pingBytes {
		return badUsage("--serve: memory of %d bytes, need at least %d", size, pingData+pingBytes)
	}
	for first := true; ; first = false {
		p, err := newPinger(size)
		if err != nil {
			return err
		}
		p.arrived = p.write
		if err := p.open(local.String(), o.busyPoll, true); err != nil {
			return err
		}
		o.metrics.endpoint(p.endpoint)
		if first {
			fmt.Fprintf(stderr, "answering on %s\nany peer may write into its memory\n", p.endpoint.URL())
			// The next client finds us where this one did.
			options := local.Options
			if local, err = parseLocal("serve", p.endpoint.URL()); err == nil {
				local.Options = options
			}
		}
		err = errors.Join(err, p.wait(ctx))
		if err == nil {
			p.linger(farewell, nil)
		}
		p.endpoint.Close()
		switch {
		case o.once:
			return err
		case ctx.Err() != nil:
			return nil
		case err != nil:
			fmt.Fprintln(stderr, err)
		}
	}
}

func pingTo(ctx context.Context, o *pingOptions, stdout, stderr io.Writer) error {
	local, peer, err := parseEnds(o.to, o.local)
	if err != nil {
		return err
	}
	if peer.Size < pingData+pingBytes {
		return badUsage("--to: memory of %d bytes, need at least %d", peer.Size, pingData+pingBytes)
	}
	p, err := newPinger(pingMemory)
	if err != nil {
		return err
	}
	trips := make([]time.Duration, 0, o.n)
	p.arrived = func(number uint32) {
		if took := p.elapsed(); number > pingWarmUp {
			trips = append(trips, took)
		}
		if len(trips) == o.n {
			p.end(nil)
			return
		}
		p.write(number + 1)
	}
	if err := p.open(local.String(), o.busyPoll, false); err != nil {
		return err
	}
	defer p.endpoint.Close()
	o.metrics.endpoint(p.endpoint)
	conn, err := p.endpoint.Dial(peer.String())
	if err != nil {
		return err
	}
	p.peer.Store(conn)
	stopped := showProgress(stderr, func() string { return fmt.Sprintf("%d of %d", p.Load32(pingWord), o.n+pingWarmUp) })
	p.write(1)
	err = p.wait(ctx)
	stopped()
	if err != nil {
		return err
	}
	p.bye(conn)
	r := o.summary(wireName(peer), trips)
	return r.print(stdout, o.json)
}

// summary is of round trips; each way takes half.
func (o *pingOptions) summary(wire string, trips []time.Duration) pingResult {
	slices.Sort(trips)
	half := func(i int) float64 { return microseconds(trips[i]) / 2 }
	n := len(trips)
	return pingResult{
		Transport: wire, BusyPoll: o.busyPoll, Bytes: pingBytes, N: n,
		Min: half(0), P50: half(n / 2), P99: half(n * 99 / 100), Max: half(n - 1),
	}
}

func (r *pingResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	how := "sleeping"
	if r.BusyPoll {
		how = "busy polling"
	}
	_, err := fmt.Fprintf(w, "one way over %s, %s, %d times %d bytes: min %.1f us, p50 %.1f us, p99 %.1f us, max %.1f us\n",
		r.Transport, how, r.N, r.Bytes, r.Min, r.P50, r.P99, r.Max)
	return err
}

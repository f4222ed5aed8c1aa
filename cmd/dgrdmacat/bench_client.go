package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

// benchClient is the side of bench that decides what is run.
type benchClient struct {
	bench.Client
	opt         *benchOptions
	local, peer url.Endpoint
	plans       []bench.Plan
	unfit       error         // why the server cannot run the plans
	begun       chan struct{} // closed when the first turn begins
}

// openClient opens an endpoint and connects it once as each peer that it plays.
func openClient(opt *benchOptions, local, peer url.Endpoint, stderr io.Writer) (*benchClient, error) {
	plans := opt.plans(peer.Size)
	var unfit error
	for _, p := range plans {
		unfit = cmp.Or(unfit, p.Check(peer.Size))
	}
	first := idsBeside(peer.ID, opt.peers)
	if local.ID != 0 {
		first = dgrdma.EndpointID(local.ID)
	}
	if peer.ID != 0 && opt.peers == 1 && uint16(first) == peer.ID {
		return nil, badUsage("--local has id %d, which is the server's", first)
	}
	local, err := opt.wire.apply(local)
	if err = cmp.Or(err, opt.wire.profile.sayOnce(peer), fitsWay(local, peer)); err != nil {
		return nil, err
	}
	c := &benchClient{opt: opt, local: local, peer: peer, plans: plans, unfit: unfit, begun: make(chan struct{})}
	if unfit != nil {
		c.plans = nil // nor may they fit here
	}
	for i := range plans {
		plans[i].FirstID = uint32(first)
	}
	c.Receive, c.WarmUp, c.Every = opt.reverse, opt.warmUp, opt.interval
	c.Rivals, c.Congestion, c.Local = opt.compare.all, string(opt.congestion), local.String()
	begin := sync.OnceFunc(func() { close(c.begun) })
	c.Began = func(moved func() (bench.Moved, time.Duration)) (over func()) {
		if begin(); opt.interval > 0 {
			return func() {}
		}
		return showProgress(stderr, func() string {
			m, took := moved()
			return fmt.Sprintf("%4.1f of %.1f s  %s  %s", took.Seconds(), opt.perTurn().Seconds(),
				rateText(perSecond(m.Bytes, took)), countPerSecond(perSecond(m.Transactions, took), "transaction"))
		})
	}
	profile, err := profileBetweenUs(opt.wire.profile.orDefault(), peer.Scheme == url.UDP, false)
	if err != nil {
		return nil, err
	}
	if err := c.open(first, &profile); err != nil {
		return nil, err
	}
	to, err := dgrdma.ParsePeer(peer.String())
	for i := 0; i < opt.peers && err == nil; i++ {
		to.As = first + dgrdma.EndpointID(i)
		var conn *dgrdma.Conn
		if conn, err = c.Endpoint.Connect(to); err == nil {
			c.Conns = append(c.Conns, conn)
		}
	}
	if err != nil {
		c.Endpoint.Close()
		return nil, err
	}
	return c, nil
}

func (c *benchClient) open(id dgrdma.EndpointID, profile *dgrdma.Profile) (err error) {
	size := bench.Plan{}.ClientMemory()
	for _, p := range c.plans {
		size = max(size, p.ClientMemory())
	}
	if c.Memory, err = bench.NewMemory(int(size)); err != nil {
		return err
	}
	c.Endpoint, err = c.opt.loss.open(withMemory(c.local, size).String(), &dgrdma.Config{
		ID: id, Memory: c.Memory, Service: bench.Service, Profile: profile, MaxPeers: mostPeers, Queue: mostDepth, BusyPoll: c.opt.busyPoll,
	})
	if err == nil {
		c.opt.metrics.endpoint(c.Endpoint)
	}
	return err
}

// toFit says what makes plans fit that are too large for a server with so much memory, as unfit says.
func (o *benchOptions) toFit(unfit error, memory uint64) error {
	needed := uint64(0)
	for _, p := range o.plans(memory) {
		if err := fitsEndpoint(p); err != nil {
			return err
		}
		needed = max(needed, p.ServerMemory())
	}
	const step = 1 << 20
	if needed > memory {
		return badUsage("%w: --memory %v beside its --serve", unfit, &sizeFlag{value: min((needed+step-1)/step*step, url.MaxSize)})
	}
	return usageError{unfit}
}

// measure runs a client and prints what it measured.
func measure(ctx context.Context, opt *benchOptions, local, peer url.Endpoint, oneProcess bool, stdout, stderr io.Writer) error {
	c, err := openClient(opt, local, peer, stderr)
	if err != nil {
		return err
	}
	defer c.Endpoint.Close()
	stopSaying := func() error { return nil }
	if !oneProcess {
		stopSaying = sayUnheard(stderr, c.Endpoint, local, peer)
		defer stopSaying()
	}
	if c.unfit != nil {
		// That it is no server at all is worth more to know.
		if err := c.Join(ctx); err != nil {
			return benchInWords(orTold(err, stopSaying(), peer), false)
		}
		return opt.toFit(c.unfit, c.peer.Size)
	}
	doubting, stop := c.sizeDoubted(ctx)
	defer stop()
	return runPlans(doubting, opt, c.plans, stdout, func(ctx context.Context, p bench.Plan, more bool, each func(bench.Interval), o *bench.Outcome) error {
		c.Plan, c.MoreRuns, c.Each = p, more, each
		err := c.Run(ctx, opt.duration, o)
		if wrong := (usageError{}); errors.As(context.Cause(doubting), &wrong) {
			return wrong
		}
		return benchInWords(orTold(err, stopSaying(), peer), o.Mine.Transactions+o.Theirs.Transactions > 0)
	}, func(o *bench.Outcome) *benchResult { return c.result(o, oneProcess) })
}

// sizeDoubted returns a context that ends when the plans turn out not to fit the server, with why: it is asked for the size of its
// memory if it does not let the first of them begin within a moment, as it does not where it has less than its string says.
func (c *benchClient) sizeDoubted(ctx context.Context) (doubting context.Context, stop func()) {
	doubting, cancel := context.WithCancelCause(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-doubting.Done():
			return
		case <-c.begun:
			return
		case <-time.After(soonHeard):
		}
		size, other := otherSize(doubting, c.local, c.peer)
		for _, p := range c.plans {
			if unfit := p.Check(size); other && unfit != nil {
				cancel(saidBy(c.opt.toFit(unfit, size), c.peer))
				c.Conns[0].Close() // what has begun waits for the server
			}
		}
	}()
	return doubting, func() { cancel(nil); <-gone }
}

// nothing is why there is no result of pieces of that size.
func (o *benchOptions) nothing(size int) error {
	what := "transaction was acknowledged"
	switch {
	case o.tcp != nil:
		what = "operation was done"
	case o.link:
		what = "message was sent"
	}
	if each := float64(size) / float64(o.rate.bytes); o.rate.bytes > 0 && each > o.duration.Seconds() {
		return fmt.Errorf("no %s in --seconds: --rate %s brings one of %s in %.1f s: give more --seconds, or a smaller --size", what, o.rate.text, count(size, "byte"), each)
	}
	return fmt.Errorf("no %s in --seconds: give it more", what)
}

// loadResult is a result of a load.
type loadResult interface {
	nameBuild()
	common() *benchLoad
	print(w io.Writer) error
	printRow(w io.Writer, first bool) error
}

// runPlans runs all plans, and prints what each measured.
func runPlans[R loadResult](ctx context.Context, opt *benchOptions, plans []bench.Plan, stdout io.Writer,
	run func(ctx context.Context, p bench.Plan, more bool, each func(bench.Interval), o *bench.Outcome) error, result func(*bench.Outcome) R) error {
	var results []R
	err := func() error {
		for i, p := range plans {
			log, ctx := opt.follow(ctx, stdout)
			o := bench.NewOutcome()
			err := run(ctx, p, i < len(plans)-1, log.each(), o)
			intervals, unread := log.close()
			switch {
			case unread != nil:
				return unread
			case o.Mine.Transactions+o.Theirs.Transactions == 0:
				err = cmp.Or(err, opt.nothing(int(p.Size)))
				if len(results) > 0 { // else benchCommand prints it
					r := result(o)
					r.common().Error = err.Error()
					results = append(results, r)
				}
				return err
			}
			r := result(o)
			r.common().Intervals = intervals
			if err != nil {
				r.common().Error = err.Error()
			}
			results = append(results, r)
			switch {
			case opt.json:
			case opt.sweep.from != 0:
				err = errors.Join(err, r.printRow(stdout, i == 0))
			default:
				err = errors.Join(err, r.print(stdout))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}()
	if opt.json && len(results) > 0 {
		err = errors.Join(err, printJSON(stdout, results, opt.sweep.from != 0))
	}
	return err
}

// printJSON prints one object, or with a sweep an array of them.
func printJSON[R interface{ nameBuild() }](w io.Writer, results []R, all bool) error {
	for _, r := range results {
		r.nameBuild()
	}
	if all {
		return json.NewEncoder(w).Encode(results)
	}
	return json.NewEncoder(w).Encode(results[0])
}

// compareInWords names the flag that an error of what is compared with is about.
func compareInWords(rival *bench.CarrierError) error {
	if refused := (*bench.ControllerError)(nil); errors.As(rival, &refused) {
		return usageError{fmt.Errorf("--congestion %v: use one of %s", refused.Refused, strings.Join(refused.Usable, ", "))}
	}
	return fmt.Errorf("--compare %v: %w", rival.Carrier, rival.Err)
}

// benchInWords names the flags that an error is about, and what a user may look at.
// answered: the server had acknowledged some transaction.
func benchInWords(err error, answered bool) error {
	var rival *bench.CarrierError
	switch {
	case errors.Is(err, dgrdma.ErrNoService):
		return elsewhere(err, "bench", false)
	case errors.Is(err, bench.ErrNoAnswer):
		return errors.New("the server does not answer; does it serve bench, with the same --profile, and with no larger --mtu than the way to here carries?")
	case saysAll(err):
		return err
	case errors.Is(err, dgrdma.ErrPeerDown) && answered:
		return fmt.Errorf("%w: was the server killed, or is the network down?", err)
	case errors.Is(err, dgrdma.ErrPeerDown):
		return fmt.Errorf("%w; does dgrdmacat bench --serve run there, with the same --profile, and is this the URL it printed?", err)
	case errors.As(err, &rival) && !errors.Is(err, bench.ErrInterrupted):
		return compareInWords(rival)
	}
	return err
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

// benchClient is the side of bench that decides what is run.
type benchClient struct {
	bench.Client
	opt         *benchOptions
	local, peer url.Endpoint
	unfit       error // why the server cannot run the plan
}

// openClient opens an endpoint and connects it once as each peer that it plays.
func openClient(opt *benchOptions, local, peer url.Endpoint, stderr io.Writer) (*benchClient, error) {
	p := opt.plan.WithDepth(opt.depth, peer.Size)
	unfit := p.Check(peer.Size)
	if unfit != nil {
		p.BothWays = 0 // nor may it fit here
	}
	first := idsBeside(peer.ID, opt.peers)
	if local.ID != 0 {
		first = dgrdma.EndpointID(local.ID)
	}
	if peer.ID != 0 && opt.peers == 1 && uint16(first) == peer.ID {
		return nil, badUsage("--local has id %d, which is the server's", first)
	}
	p.FirstID = uint32(first)
	local, err := opt.wire.apply(local)
	if err = cmp.Or(err, opt.wire.profile.sayOnce(peer)); err != nil {
		return nil, err
	}
	c := &benchClient{opt: opt, local: local, peer: peer, unfit: unfit}
	c.Plan = p
	if opt.compare != "" {
		c.TCP = peer.Addr
	}
	c.Began = func(l *bench.Load) (over func()) {
		return showProgress(stderr, func() string {
			n, bytes, took := l.Progress()
			at := took.Seconds()
			return fmt.Sprintf("%4.1f of %.1f s  %.0f MB/s  %s", at, opt.perTurn().Seconds(), float64(bytes)/at/1e6, countPerSecond(float64(n)/at, "transaction"))
		})
	}
	profile, err := profileBetweenUs(opt.wire.profile.orDefault(), peer.Scheme == url.UDP, false)
	if err != nil {
		return nil, err
	}
	if err := c.open(&profile); err != nil {
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

func (c *benchClient) open(profile *dgrdma.Profile) (err error) {
	size := c.Plan.ClientMemory()
	if c.Memory, err = bench.NewMemory(int(size)); err != nil {
		return err
	}
	c.Endpoint, err = dgrdma.Open(withMemory(c.local, size).String(), &dgrdma.Config{
		ID: dgrdma.EndpointID(c.Plan.FirstID), Memory: c.Memory, Service: bench.Service, Profile: profile, Queue: mostDepth, BusyPoll: c.opt.busyPoll,
	})
	if err == nil {
		c.opt.metrics.endpoint(c.Endpoint)
	}
	return err
}

// toFit says what makes a plan fit that is too large for the server.
func (c *benchClient) toFit() error {
	if err := fitsEndpoint(c.Plan); err != nil {
		return err
	}
	const step = 1 << 20
	if needed := c.Plan.ServerMemory(); needed > c.peer.Size {
		return badUsage("%w: --memory %v beside its --serve", c.unfit, &sizeFlag{value: min((needed+step-1)/step*step, url.MaxSize)})
	}
	return usageError{c.unfit}
}

// measure runs a client and prints what it measured.
func measure(ctx context.Context, opt *benchOptions, local, peer url.Endpoint, oneProcess bool, stdout, stderr io.Writer) error {
	c, err := openClient(opt, local, peer, stderr)
	if err != nil {
		return err
	}
	defer c.Endpoint.Close()
	if c.unfit != nil {
		// That it is no server at all is worth more to know.
		if err := c.Join(ctx); err != nil {
			return benchInWords(err, false)
		}
		return c.toFit()
	}
	o := bench.NewOutcome()
	err = c.Run(ctx, opt.duration, o)
	err = benchInWords(err, o.Mine.Transactions > 0)
	if o.Mine.Transactions == 0 {
		if err == nil {
			err = errors.New("no transaction was acknowledged in --seconds: give it more")
		}
		return err
	}
	r := c.result(o, oneProcess)
	return errors.Join(err, r.print(stdout, opt.json))
}

// benchInWords names the flags that an error is about, and what a user may look at.
// answered: the server had acknowledged some transaction.
func benchInWords(err error, answered bool) error {
	var tcp *bench.TCPError
	switch {
	case errors.As(err, &tcp):
		return fmt.Errorf("--compare tcp: %w", tcp.Err)
	case errors.Is(err, bench.ErrNoAnswer):
		return errors.New("the server does not answer; does it serve bench, with the same --profile?")
	case errors.Is(err, dgrdma.ErrPeerDown) && answered:
		return fmt.Errorf("%w: was the server killed, or is the network down?", err)
	case errors.Is(err, dgrdma.ErrPeerDown):
		return fmt.Errorf("%w; does dgrdmacat bench --serve run there, with the same --profile, and is this the URL it printed?", err)
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/url"
)

// client is the side of bench that decides what is run.
type client struct {
	opt      *benchOptions
	local    url.Endpoint
	peer     url.Endpoint
	plan     plan
	endpoint *dgrdma.Endpoint
	target   *target
	conns    []*dgrdma.Conn // to the server, each under an id of its own
	stderr   io.Writer
}

// outcome is what the turns of a client amount to.
type outcome struct {
	mine, theirs seen
	times        histogram
	streamed     uint64        // bytes over TCP
	streaming    time.Duration // how long that took
}

// compareTurns is how often the two that are compared take turns.
const compareTurns = 3

// openClient opens an endpoint and connects it as each peer that is to be
// played.
func openClient(opt *benchOptions, local, peer url.Endpoint, stderr io.Writer) (*client, error) {
	p := opt.plan.withDepth(opt.depth, peer.Size)
	if err := p.check(peer.Size); err != nil {
		return nil, usageError{err}
	}
	first := idsBeside(peer.ID, opt.peers)
	if local.ID != 0 {
		first = dgrdma.EndpointID(local.ID)
	}
	if peer.ID != 0 && opt.peers == 1 && uint16(first) == peer.ID {
		return nil, badUsage("--local has id %d, which is the server's", first)
	}
	p.FirstID = uint32(first)
	local = opt.wire.apply(local)
	c := &client{opt: opt, local: local, peer: peer, plan: p, stderr: stderr}
	profile, err := profileBetweenUs(opt.wire.profile, peer.Scheme == url.UDP, false)
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
		if conn, err = c.endpoint.Connect(to); err == nil {
			c.conns = append(c.conns, conn)
		}
	}
	if err != nil {
		c.endpoint.Close()
		return nil, err
	}
	return c, nil
}

func (c *client) open(profile *dgrdma.Profile) (err error) {
	local, size := c.local, uint64(completionsAt)
	if c.plan.BothWays != 0 {
		size = c.plan.needs()
	}
	if local.Size != 0 && local.Size < size {
		return badUsage("--local: memory of %d bytes, the run needs %d", local.Size, size)
	}
	if c.target, err = newTarget(int(max(size, local.Size))); err != nil {
		return err
	}
	c.endpoint, err = dgrdma.Open(local.String(), &dgrdma.Config{
		ID: dgrdma.EndpointID(c.plan.FirstID), Memory: c.target, Profile: profile, Queue: 1 << 20, BusyPoll: c.opt.busyPoll,
	})
	if err == nil {
		c.opt.metrics.endpoint(c.endpoint)
	}
	return err
}

func (c *client) close() { c.endpoint.Close() }

// run takes all turns. What was measured is good also if a turn failed.
func (c *client) run(ctx context.Context, o *outcome) error {
	if err := c.join(ctx); err != nil {
		return err
	}
	turns := 1
	if c.opt.compare != "" {
		turns = compareTurns
	}
	long := c.opt.duration / time.Duration(turns)
	for i := range turns {
		p := c.plan
		if i < turns-1 {
			p.MoreRuns = 1
		}
		if c.opt.compare != "" {
			// First, so that the server's last run is ours.
			n, took, err := streamTCP(ctx, c.endpoint.LocalAddr().AddrPort().Addr(), c.peer.Addr, long, p.BothWays != 0)
			switch {
			case ctx.Err() != nil:
				return errors.New("interrupted in a turn of TCP")
			case err != nil:
				return err
			}
			o.streamed += n
			o.streaming += took
		}
		if err := c.turn(ctx, p, long, o); err != nil {
			return err
		}
	}
	if o.theirs.Wrong > 0 {
		return fmt.Errorf("verification failed at the server: %d errors, the first: %w", o.theirs.Wrong, o.theirs.mismatch())
	}
	if o.mine.Wrong > 0 {
		return fmt.Errorf("verification failed here: %d errors, the first: %w", o.mine.Wrong, o.mine.mismatch())
	}
	if o.theirs.Arrived != o.mine.Transactions {
		return fmt.Errorf("%d transactions were acknowledged, but %d arrived", o.mine.Transactions, o.theirs.Arrived)
	}
	return nil
}

// join makes every peer known to the server.
func (c *client) join(ctx context.Context) error {
	joined := make(chan error, len(c.conns))
	for i, conn := range c.conns {
		err := conn.Post(&dgrdma.Transaction{
			CompletionAddr: joinWord, CompletionValue: uint32(i), Done: func(_ *dgrdma.Transaction, err error) { joined <- err },
		})
		if err != nil {
			return err
		}
	}
	for range c.conns {
		select {
		case err := <-joined:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return errors.New("interrupted before the server answered")
		}
	}
	return nil
}

// turn is one run.
func (c *client) turn(ctx context.Context, p plan, long time.Duration, o *outcome) error {
	var in *arrivals
	if p.BothWays != 0 {
		in = c.target.expect(p)
	}
	out := newPump(p, c.conns, &o.times)
	// What the server was told to begin, it is told to end, even if the user is
	// in a hurry.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), long+4*c.endpoint.GiveUp())
	defer cancel()
	if err := tell(bounded, c.conns[0], kindBegin, &p); err != nil {
		return err
	}
	if _, err := c.answer(bounded, kindReady); err != nil {
		return err
	}
	before := countsOf(c.endpoint)
	timer := time.AfterFunc(long, out.end) // also if starting takes longer
	defer timer.Stop()
	out.start()
	stopped := showProgress(c.stderr, func() string {
		n, at := out.done.Load(), time.Since(out.began).Seconds()
		return fmt.Sprintf("%4.1f of %.1f s  %.0f MB/s  %.0f transactions/s", at, long.Seconds(), float64(n)*float64(p.Size)/at/1e6, float64(n)/at)
	})
	var interrupted error
	select {
	case <-out.ending:
	case <-ctx.Done():
		interrupted = fmt.Errorf("interrupted after %v", time.Since(out.began).Round(time.Millisecond))
	}
	err := out.stop(bounded)
	stopped()
	if err != nil {
		return err
	}
	var mine, theirs seen
	out.report(&mine)
	if err := tell(bounded, c.conns[0], kindEnd, nil); err != nil {
		return err
	}
	report, err := c.answer(bounded, kindReport)
	if err != nil {
		return err
	}
	countsOf(c.endpoint).since(before, &mine)
	decode(report.data, &theirs)
	if in != nil {
		in.report(&mine)
	}
	c.thank(bounded)
	o.mine.add(&mine)
	o.theirs.add(&theirs)
	return interrupted
}

// answer waits for a control record of the server.
func (c *client) answer(ctx context.Context, kind uint32) (control, error) {
	timer := time.NewTimer(2 * c.endpoint.GiveUp())
	defer timer.Stop()
	for {
		select {
		case m := <-c.target.control:
			switch m.kind {
			case kind:
				return m, nil
			case kindBusy:
				return m, errors.New("the server is busy with another client")
			}
		case <-c.conns[0].Done():
			return control{}, c.conns[0].Err()
		case <-ctx.Done():
			return control{}, context.Cause(ctx)
		case <-timer.C:
			return control{}, errors.New("the server does not answer; does it serve bench, with the same --profile?")
		}
	}
}

// thank tells the server that its report is here, and stays until it knows.
func (c *client) thank(ctx context.Context) {
	told := make(chan struct{})
	t := dgrdma.Transaction{
		CompletionAddr: controlWord, CompletionValue: kindBye, Done: func(*dgrdma.Transaction, error) { close(told) },
	}
	if c.conns[0].Post(&t) != nil {
		return
	}
	select {
	case <-told:
	case <-ctx.Done():
	case <-time.After(10 * farewell):
	}
}

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Runs is what a server tells of its clients' runs.
type Runs struct {
	// Began, if not nil, is told of each run, and returns what is called when it is
	// over; arrived is how many operations are there.
	Began func(p Plan, arrived func() uint64) (over func())
	// Ran, if not nil, is told of each run that is over.
	Ran func(r Run)
}

// Run is a run as the server saw it.
type Run struct {
	Client fmt.Stringer // the first of its peers
	Plan   Plan
	Saw    Counts
	Took   time.Duration // by the client's clock, from its first post until all had arrived, unless it is an older one
}

// attended is the server's end of a client.
type attended interface {
	side
	name() fmt.Stringer
	// ready answers a plan.
	ready(ctx context.Context, r *Ready) error
	// ended returns when the client says that all of it has arrived, with what it tells of that, or is gone.
	ended(ctx context.Context, in *arrivals) (finish, error)
	// deliver sends the client what was seen.
	deliver(ctx context.Context, saw *Counts) error
	// abandon has done with a client that is gone.
	abandon()
}

// serve serves one run, of which saw has something already.
func (s *Runs) serve(ctx context.Context, p Plan, c attended, saw *Counts) error {
	if p.Carrier != Ours {
		return s.serveRival(ctx, p, c)
	}
	in := c.expect(p)
	var out *Load
	if p.BothWays != 0 {
		out = NewLoad(p, c.poster(p), nil)
	}
	before := c.counts()
	began := time.Now()
	if err := c.ready(ctx, &Ready{Knows: knowsAll}); err != nil {
		return err
	}
	if out != nil {
		out.Start(0)
	}
	over := func() {}
	if s.Began != nil {
		over = s.Began(p, in.progress)
	}
	told, err := c.ended(ctx, in)
	took := told.took(time.Since(began))
	over()
	if errors.Is(err, ErrSilent) {
		c.abandon()
	}
	if out != nil {
		bounded, cancel := context.WithTimeout(context.Background(), c.giveUp())
		err = cmp.Or(err, out.Drain(bounded))
		cancel()
		out.report(saw)
	}
	if err != nil {
		return err
	}
	c.counts().since(before, saw)
	c.settle(in)
	in.report(saw)
	if s.Ran != nil {
		s.Ran(Run{c.name(), p, *saw, took})
	}
	err = c.deliver(ctx, saw)
	if saw.Wrong > 0 {
		return fmt.Errorf("errors in what arrived: %d, the first: %w", saw.Wrong, saw.mismatch())
	}
	return err
}

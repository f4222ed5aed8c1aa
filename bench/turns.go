package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Turns are what a client has run, one after the other, of its own and of rivals.
type Turns struct {
	Plan       Plan
	Rivals     []Carrier     // to take turns with
	Congestion string        // controller of rivals' connections: its name, [FastestController], which "" is, or [DefaultController]
	Receive    bool          // only the server posts; the plan says both ways
	WarmUp     time.Duration // run for so long before anything is measured
	MoreRuns   bool          // another Run follows soon

	// Each, if not nil, is told of every interval of a measured turn that is so long.
	Every time.Duration
	Each  func(Interval)
	// Began, if not nil, is told of each turn, and returns what is called when it is over;
	// moved is what it has moved so far, for how long.
	Began func(moved func() (Moved, time.Duration)) (over func())
}

// side is an end of what carries both operations and the control records about them.
type side interface {
	giveUp() time.Duration // after which a silent other end is gone
	counts() counts
	// expect begins to look at what comes, and settle looks at what could not be looked at then.
	expect(p Plan) *arrivals
	settle(in *arrivals)
	poster(p Plan) Poster
	// bytes is the memory that the plan's slots are in.
	bytes() []byte
	here() dgrdma.Addr
	there() dgrdma.Addr
	wire() string // the string of this end, with its options: for Raw
}

// session is the client's end.
type session interface {
	side
	// begin tells the server what to run, and returns what it says of itself.
	begin(ctx context.Context, p Plan) (there Ready, err error)
	// end tells the server that all of this side has arrived, and for how long that took, and returns what it saw.
	end(ctx context.Context, mine, theirs *Counts) error
	// thank tells the server that its report has come.
	thank(ctx context.Context)
	// stay lets the server know that this side is there while it posts nothing, and lost that the
	// server is not.
	stay(lost func(error)) (leave func())
}

// Outcome sums up the turns of a client. NewOutcome makes it.
type Outcome struct {
	Mine, Theirs Counts
	Times        *Histogram // of completions
	Turns        []Turn     // whole ones, rivals' too
	Choices      []Choice   // of those of them that are connections of TCP

	hereAll, thereAll Counts // of those, whoever carried
}

// NewOutcome makes an outcome of nothing yet.
func NewOutcome() *Outcome { return &Outcome{Times: NewHistogram()} }

// run is Run of a client that has joined.
func (c *Turns) run(ctx context.Context, s session, long time.Duration, o *Outcome) error {
	turns := 1
	if len(c.Rivals) > 0 {
		turns = TurnsBeside
	}
	each := long / time.Duration(turns)
	if c.WarmUp > 0 {
		p, unmeasured := c.Plan, NewOutcome()
		p.MoreRuns = 1
		if err := cmp.Or(c.turn(ctx, s, p, c.WarmUp, nil, unmeasured), unmeasured.check()); err != nil {
			return fmt.Errorf("while it warmed up: %w", err)
		}
	}
	var rivals []Contender
	for _, carrier := range c.Rivals {
		chosen, err := c.choose(ctx, s, carrier, each, o)
		if err != nil {
			return err
		}
		rivals = append(rivals, chosen...)
	}
	for i := range turns {
		p := c.Plan
		if i < turns-1 || c.MoreRuns {
			p.MoreRuns = 1
		}
		// Rivals first, so that the server's last run is ours.
		for _, rival := range rivals {
			if err := c.rivalTurn(ctx, s, rival, each, false, o); err != nil {
				return err
			}
		}
		if err := c.turn(ctx, s, p, each, c.Each, o); err != nil {
			return err
		}
	}
	return o.check()
}

// check returns what is wrong with what arrived.
func (o *Outcome) check() error {
	if o.Theirs.Wrong > 0 {
		return fmt.Errorf("verification failed at the server, errors: %d, the first: %w", o.Theirs.Wrong, o.Theirs.mismatch())
	}
	if o.Mine.Wrong > 0 {
		return fmt.Errorf("verification failed here, errors: %d, the first: %w", o.Mine.Wrong, o.Mine.mismatch())
	}
	for _, way := range [][2]uint64{{o.Mine.Transactions, o.Theirs.Arrived}, {o.Theirs.Transactions, o.Mine.Arrived}} {
		if way[0] != way[1] {
			return fmt.Errorf("transactions acknowledged: %d, but arrived: %d", way[0], way[1])
		}
	}
	return nil
}

// turn runs the plan once.
func (c *Turns) turn(ctx context.Context, s session, p Plan, long time.Duration, each func(Interval), o *Outcome) error {
	var in *arrivals
	if p.BothWays != 0 {
		in = s.expect(p)
	}
	// What the server was told to begin, it is told to end, even if the user is
	// in a hurry.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), long+4*s.giveUp())
	defer cancel()
	there, err := s.begin(bounded, p)
	if err != nil {
		return err
	}
	if p.Rate > 0 && p.BothWays != 0 && there.Knows&knowsRate == 0 {
		if s.end(bounded, new(Counts), new(Counts)) == nil {
			s.thank(bounded)
		}
		return ErrNoRate
	}
	writes := p
	if c.Receive {
		writes.Depth, writes.Active = 0, 0
	}
	// With much memory, on a busy machine, to fill it takes longer than the server waits for a client that says nothing.
	leave := s.stay(func(error) {}) // the load finds out
	out := NewLoad(writes, s.poster(p), o.Times)
	leave()
	before := s.counts() // after what the slots have in them was made
	began := time.Now()
	out.Start(long)
	moved := func() Moved { return c.moved(s, out, in, &before) }
	sample := moved
	if each == nil {
		sample = func() Moved { return c.arrived(out, in) }
	}
	sampled := Sample(c.Every, sample, each)
	over := func() {}
	if c.Began != nil {
		over = c.Began(func() (Moved, time.Duration) { return moved(), time.Since(began) })
	}
	leave = func() {}
	if c.Receive || p.Rate != 0 { // it may write nothing for long
		leave = s.stay(out.fail)
	}
	interrupted := out.Over(ctx)
	err = out.Drain(bounded)
	leave()
	over()
	until := sampled()
	var mine, theirs Counts
	out.report(&mine)
	if err == nil {
		err = s.end(bounded, &mine, &theirs)
	}
	s.counts().since(before, &mine)
	if in != nil {
		if err == nil {
			s.settle(in)
		}
		in.report(&mine)
	}
	if err != nil {
		// Nothing is known of the server but what arrived here.
		if mine.Nanoseconds = uint64(until); in != nil {
			mine.Arrived = in.progress()
		}
		theirs = Counts{Transactions: mine.Arrived, Bytes: mine.Arrived * uint64(p.Size), Nanoseconds: uint64(until)}
	} else {
		s.thank(bounded)
	}
	o.Mine.add(&mine)
	o.Theirs.add(&theirs)
	if err = cmp.Or(err, interrupted); err == nil {
		took := time.Duration(max(mine.Nanoseconds, theirs.Nanoseconds*uint64(p.BothWays)))
		o.note(Contender{}, mine.Bytes+theirs.Bytes, took, &mine, &theirs)
	}
	return err
}

// moved returns what a turn has moved so far, both ways, and which frames were sent again for that. To count those takes a look at
// every connection.
func (c *Turns) moved(s session, out *Load, in *arrivals, before *counts) Moved {
	m := c.arrived(out, in)
	var now Counts
	s.counts().since(*before, &now)
	m.Resent = now.Retransmits
	return m
}

// arrived is moved without the frames.
func (c *Turns) arrived(out *Load, in *arrivals) Moved {
	n, _, _ := out.Progress()
	if in != nil {
		n += in.progress()
	}
	return Moved{Bytes: n * uint64(c.Plan.Size), Transactions: n}
}

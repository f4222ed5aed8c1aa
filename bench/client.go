package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Client is the side that decides what is run.
type Client struct {
	Plan     Plan
	Endpoint *dgrdma.Endpoint
	Memory   *Memory        // the endpoint's
	Conns    []*dgrdma.Conn // to the server: one as each peer of the plan
	Rivals   []Carrier      // to take turns with
	Local    string         // the endpoint's own string, with its options: for Raw
	Receive  bool           // only the server writes; the plan says both ways
	WarmUp   time.Duration  // run for so long before anything is measured
	MoreRuns bool           // another Run follows soon

	// Each, if not nil, is told of every interval of a measured turn that is so long.
	Every time.Duration
	Each  func(Interval)
	// Began, if not nil, is told of each turn, and returns what is called when it is over;
	// moved is what it has moved so far, for how long.
	Began func(moved func() (Moved, time.Duration)) (over func())
}

// Outcome sums up the turns of a client. NewOutcome makes it.
type Outcome struct {
	Mine, Theirs Counts
	Times        *Histogram // of completions
	Turns        []Turn     // whole ones, rivals' too

	hereAll, thereAll Counts // of those, whoever carried
}

// NewOutcome makes an outcome of nothing yet.
func NewOutcome() *Outcome { return &Outcome{Times: NewHistogram()} }

// Run runs the plan for that long. What it measured is in o, and is good even if it fails:
// then it is what was moved until nothing moved any more.
func (c *Client) Run(ctx context.Context, long time.Duration, o *Outcome) error {
	if err := c.Join(ctx); err != nil {
		return err
	}
	turns := 1
	if len(c.Rivals) > 0 {
		turns = TurnsBeside
	}
	each := long / time.Duration(turns)
	if c.WarmUp > 0 {
		p, unmeasured := c.Plan, NewOutcome()
		p.MoreRuns = 1
		if err := cmp.Or(c.turn(ctx, p, c.WarmUp, nil, unmeasured), unmeasured.check()); err != nil {
			return fmt.Errorf("while it warmed up: %w", err)
		}
	}
	for i := range turns {
		p := c.Plan
		if i < turns-1 || c.MoreRuns {
			p.MoreRuns = 1
		}
		// Rivals first, so that the server's last run is ours.
		for _, rival := range c.Rivals {
			if err := c.rivalTurn(ctx, rival, each, o); err != nil {
				return err
			}
		}
		if err := c.turn(ctx, p, each, c.Each, o); err != nil {
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

// Join makes every peer known to the server. It fails if nobody is there, or something
// else than a server of measurements.
func (c *Client) Join(ctx context.Context) error {
	joined := make(chan error, len(c.Conns))
	for i, conn := range c.Conns {
		err := conn.Post(&dgrdma.Transaction{
			Completion: dgrdma.Word(joinWord, uint32(i)), Done: func(_ *dgrdma.Transaction, err error) { joined <- err },
		})
		if err != nil {
			return err
		}
	}
	for range c.Conns {
		select {
		case err := <-joined:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%w before the server answered", ErrInterrupted)
		}
	}
	return nil
}

// turn runs the plan once.
func (c *Client) turn(ctx context.Context, p Plan, long time.Duration, each func(Interval), o *Outcome) error {
	var in *arrivals
	if p.BothWays != 0 {
		in = c.Memory.expect(p)
	}
	// What the server was told to begin, it is told to end, even if the user is
	// in a hurry.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), long+4*c.Endpoint.GiveUp())
	defer cancel()
	there, err := c.begin(bounded, p)
	if err != nil {
		return err
	}
	if p.Rate > 0 && p.BothWays != 0 && there.Knows&knowsRate == 0 {
		if c.end(bounded, new(Counts)) == nil {
			c.thank(bounded)
		}
		return ErrNoRate
	}
	before := countsOf(c.Endpoint)
	writes := p
	if c.Receive {
		writes.Depth, writes.Active = 0, 0
	}
	out := NewLoad(writes, &transactions{p, c.Conns}, o.Times)
	began := time.Now()
	out.Start(long)
	moved := func() Moved { return c.moved(out, in, &before) }
	sampled := Sample(c.Every, moved, each)
	over := func() {}
	if c.Began != nil {
		over = c.Began(func() (Moved, time.Duration) { return moved(), time.Since(began) })
	}
	leave := func() {}
	if c.Receive || p.Rate != 0 { // it may write nothing for long
		leave = c.stay(out.fail)
	}
	interrupted := out.Over(ctx)
	err = out.Drain(bounded)
	leave()
	over()
	until := sampled()
	var mine, theirs Counts
	out.report(&mine)
	if err == nil {
		err = c.end(bounded, &theirs)
	}
	countsOf(c.Endpoint).since(before, &mine)
	if in != nil {
		in.report(&mine)
	}
	if err != nil {
		// Nothing is known of the server but what arrived here.
		mine.Nanoseconds = uint64(until)
		theirs = Counts{Transactions: mine.Arrived, Bytes: mine.Arrived * uint64(p.Size), Nanoseconds: uint64(until)}
	} else {
		c.thank(bounded)
	}
	o.Mine.add(&mine)
	o.Theirs.add(&theirs)
	if err = cmp.Or(err, interrupted); err == nil {
		took := time.Duration(max(mine.Nanoseconds, theirs.Nanoseconds*uint64(p.BothWays)))
		o.note(DGRDMA, mine.Bytes+theirs.Bytes, took, &mine, &theirs)
	}
	return err
}

// begin tells the server what to run, and returns what it says of itself.
func (c *Client) begin(ctx context.Context, p Plan) (there Ready, err error) {
	if err := tell(ctx, c.Conns[0], kindBegin, &p); err != nil {
		return there, err
	}
	answered, err := c.answer(ctx, kindReady)
	if err != nil {
		return there, err
	}
	decode(answered.data, &there)
	return there, nil
}

// moved returns what a turn has moved so far, both ways.
func (c *Client) moved(out *Load, in *arrivals, before *counts) Moved {
	n, _, _ := out.Progress()
	if in != nil {
		n += in.arrived.Load()
	}
	var now Counts
	countsOf(c.Endpoint).since(*before, &now)
	return Moved{Bytes: n * uint64(c.Plan.Size), Transactions: n, Resent: now.Retransmits}
}

// stay lets the server know that this side is there while it writes no transactions, and lost that
// the server is not.
func (c *Client) stay(lost func(error)) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(c.Endpoint.GiveUp() / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if err := c.Conns[0].Write(ctx, &dgrdma.Transaction{Completion: dgrdma.Word(joinWord, 0)}); err != nil && ctx.Err() == nil {
				lost(err)
				return
			}
		}
	}()
	return func() { cancel(); <-gone }
}

// end tells the server that all of this side is acknowledged, and returns what it saw.
func (c *Client) end(ctx context.Context, theirs *Counts) error {
	if err := tell(ctx, c.Conns[0], kindEnd, nil); err != nil {
		return err
	}
	report, err := c.answer(ctx, kindReport)
	if err != nil {
		return err
	}
	decode(report.data, theirs)
	return nil
}

// answer waits for a control record of the server.
func (c *Client) answer(ctx context.Context, kind uint32) (control, error) {
	timer := time.NewTimer(2 * c.Endpoint.GiveUp())
	defer timer.Stop()
	for {
		select {
		case m := <-c.Memory.control:
			switch m.kind {
			case kind:
				return m, nil
			case kindBusy:
				return m, busyWith(m.data)
			}
		case <-c.Conns[0].Done():
			return control{}, c.Conns[0].Err()
		case <-ctx.Done():
			return control{}, context.Cause(ctx)
		case <-timer.C:
			return control{}, ErrNoAnswer
		}
	}
}

// thank tells the server that its report has come, and waits until that has arrived.
func (c *Client) thank(ctx context.Context) {
	told := make(chan struct{})
	t := dgrdma.Transaction{
		Completion: dgrdma.Word(controlWord, kindBye), Done: func(*dgrdma.Transaction, error) { close(told) },
	}
	if c.Conns[0].Post(&t) != nil {
		return
	}
	select {
	case <-told:
	case <-ctx.Done():
	case <-time.After(10 * Linger):
	}
}

// tell writes a control record and waits until it is acknowledged.
func tell(ctx context.Context, c *dgrdma.Conn, kind uint32, content any) error {
	t := dgrdma.Transaction{Completion: dgrdma.Word(controlWord, kind)}
	if content != nil {
		t.Segments = []dgrdma.Segment{{Addr: controlData, Bytes: encode(content)}}
	}
	return c.Write(ctx, &t)
}

package bench

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Client is the side that decides what is run.
type Client struct {
	Plan     Plan
	Endpoint *dgrdma.Endpoint
	Memory   *Memory        // the endpoint's
	Conns    []*dgrdma.Conn // to the server: one as each peer of the plan
	TCP      netip.AddrPort // if valid: take turns with a TCP stream to the server

	// Began, if not nil, is told of each turn of the load, and returns what is called
	// when it is over.
	Began func(*Load) (over func())
}

// Outcome sums up the turns of a client. NewOutcome makes it.
type Outcome struct {
	Mine, Theirs Counts
	Times        *Histogram    // of completions
	Streamed     uint64        // bytes over TCP, both ways
	Streaming    time.Duration // how long that took
}

// NewOutcome makes an outcome of nothing yet.
func NewOutcome() *Outcome { return &Outcome{Times: NewHistogram()} }

// TurnsBeside is how many turns DG/RDMA and TCP each have, where they are compared.
const TurnsBeside = 3

// Run runs the plan for that long. What it measured is in o, and is good even if it fails.
func (c *Client) Run(ctx context.Context, long time.Duration, o *Outcome) error {
	if err := c.Join(ctx); err != nil {
		return err
	}
	turns := 1
	if c.TCP.IsValid() {
		turns = TurnsBeside
	}
	each := long / time.Duration(turns)
	for i := range turns {
		p := c.Plan
		if i < turns-1 {
			p.MoreRuns = 1
		}
		if c.TCP.IsValid() {
			// First, so that the server's last run is ours.
			n, took, err := overTCP(ctx, c.Endpoint.LocalAddr().AddrPort().Addr(), c.TCP, each, p.BothWays != 0)
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("%w in a turn of TCP", ErrInterrupted)
			case err != nil:
				return &TCPError{err}
			}
			o.Streamed += n
			o.Streaming += took
		}
		if err := c.turn(ctx, p, each, o); err != nil {
			return err
		}
	}
	if o.Theirs.Wrong > 0 {
		return fmt.Errorf("verification failed at the server, errors: %d, the first: %w", o.Theirs.Wrong, o.Theirs.mismatch())
	}
	if o.Mine.Wrong > 0 {
		return fmt.Errorf("verification failed here, errors: %d, the first: %w", o.Mine.Wrong, o.Mine.mismatch())
	}
	if o.Theirs.Arrived != o.Mine.Transactions {
		return fmt.Errorf("transactions acknowledged: %d, but arrived: %d", o.Mine.Transactions, o.Theirs.Arrived)
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
func (c *Client) turn(ctx context.Context, p Plan, long time.Duration, o *Outcome) error {
	var in *arrivals
	if p.BothWays != 0 {
		in = c.Memory.expect(p)
	}
	out := NewLoad(p, &transactions{p, c.Conns}, o.Times)
	// What the server was told to begin, it is told to end, even if the user is
	// in a hurry.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), long+4*c.Endpoint.GiveUp())
	defer cancel()
	if err := tell(bounded, c.Conns[0], kindBegin, &p); err != nil {
		return err
	}
	if _, err := c.answer(bounded, kindReady); err != nil {
		return err
	}
	before := countsOf(c.Endpoint)
	out.Start(long)
	over := func() {}
	if c.Began != nil {
		over = c.Began(out)
	}
	interrupted := out.Over(ctx)
	err := out.Drain(bounded)
	over()
	if err != nil {
		return err
	}
	var mine, theirs Counts
	out.report(&mine)
	if err := tell(bounded, c.Conns[0], kindEnd, nil); err != nil {
		return err
	}
	report, err := c.answer(bounded, kindReport)
	if err != nil {
		return err
	}
	countsOf(c.Endpoint).since(before, &mine)
	decode(report.data, &theirs)
	if in != nil {
		in.report(&mine)
	}
	c.thank(bounded)
	o.Mine.add(&mine)
	o.Theirs.add(&theirs)
	return interrupted
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
				return m, ErrBusy
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

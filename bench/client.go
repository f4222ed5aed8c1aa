package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Client is the side of transactions that decides what is run.
type Client struct {
	Turns
	Endpoint *dgrdma.Endpoint
	Memory   *Memory        // the endpoint's
	Conns    []*dgrdma.Conn // to the server: one as each peer of the plan
	Local    string         // the endpoint's own string, with its options: for Raw
}

// Run runs the plan for that long. What it measured is in o, and is good even if it fails:
// then it is what was moved until nothing moved any more.
func (c *Client) Run(ctx context.Context, long time.Duration, o *Outcome) error {
	if err := c.Join(ctx); err != nil {
		return err
	}
	return c.run(ctx, c, long, o)
}

// joining is how many peers make themselves known at a time. With 10,000 at once the first of them waited for longer than a peer may be silent.
const joining = 512

// Join makes every peer known to the server. It fails if nobody is there, or something
// else than a server of measurements.
func (c *Client) Join(ctx context.Context) error {
	joined := make(chan error, len(c.Conns))
	wait := func() error {
		select {
		case err := <-joined:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w before the server answered", ErrInterrupted)
		}
	}
	for i, conn := range c.Conns {
		if i >= joining {
			if err := wait(); err != nil {
				return err
			}
		}
		err := conn.Post(&dgrdma.Transaction{
			Completion: dgrdma.Word(joinWord, uint32(i)), Done: func(_ *dgrdma.Transaction, err error) { joined <- err },
		})
		if err != nil {
			return err
		}
	}
	for range min(len(c.Conns), joining) {
		if err := wait(); err != nil {
			return err
		}
	}
	return nil
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
func (c *Client) end(ctx context.Context, mine, theirs *Counts) error {
	if err := tell(ctx, c.Conns[0], kindEnd, &finish{mine.Nanoseconds}); err != nil {
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
			if len(c.Memory.control) == 0 { // what the server said last came before that
				return control{}, c.Conns[0].Err()
			}
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

func (c *Client) giveUp() time.Duration   { return c.Endpoint.GiveUp() }
func (c *Client) counts() counts          { return countsOf(c.Endpoint) }
func (c *Client) expect(p Plan) *arrivals { return c.Memory.expect(p) }
func (c *Client) settle(*arrivals)        {} // each was looked at as it completed
func (c *Client) poster(p Plan) Poster    { return &transactions{p, c.Conns} }
func (c *Client) bytes() []byte           { return c.Memory.Bytes() }
func (c *Client) here() dgrdma.Addr       { return c.Endpoint.LocalAddr() }
func (c *Client) there() dgrdma.Addr      { return c.Conns[0].Name().Addr }
func (c *Client) wire() string            { return c.Local }

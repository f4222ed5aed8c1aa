package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// VerbsClient is the side of work requests between queue pairs that decides what is run.
type VerbsClient struct {
	Turns
	Verb     Verb
	Host     *verbs.Host
	Address  string // of the server, as in tcp:10.0.0.1:7471
	NoCRC    bool
	Strict   bool
	Revision int // of MPA; 0: as verbs has it

	introduction time.Duration // 0: Introduction

	control *controlLine
	welcome welcome
	keeper  chan struct{} // closed when nobody pings any more
	leave   context.CancelFunc

	lanes  *lanes // of the plan
	memory []byte
	in     atomic.Pointer[arrivals] // of the turn

	mu   sync.Mutex
	gone error // why the server is given up
}

const (
	// Introduction is how long a server may take to be reached, and to say what it is.
	Introduction = 2 * time.Second
	// leaveTime is how long the other side may take to close when something went wrong, or others wait. It is arbitrary.
	leaveTime = time.Second
)

// Join finds the server. It fails if nobody is there, or something else than a server of work requests.
func (c *VerbsClient) Join(ctx context.Context) error {
	buffers := controlReceives()
	within := cmp.Or(c.introduction, Introduction)
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	qp, err := c.Host.Dial(soon, c.Address, &verbs.Options{
		Private: encode(&hello{Protocol: protocol, Version: version, Kind: pairControl}), Posted: buffers, Timeout: within, Domain: c.Host.NewDomain(),
	})
	if err != nil {
		return c.notThere(ctx, err)
	}
	if !decodeIf(qp.Private(), &c.welcome) || c.welcome.Protocol != protocol {
		qp.Abort()
		return fmt.Errorf("%w: it took the connection, and does not say that it measures", ErrNoBench)
	}
	if c.welcome.Version != version {
		qp.Abort()
		return fmt.Errorf("%w: it has version %d of its records, and this is %d", ErrNoBench, c.welcome.Version, version)
	}
	c.control = newControlLine(qp, buffers, func(done uint64) {
		if in := c.in.Load(); in != nil {
			in.told.Store(done)
		}
	})
	keeping, leave := context.WithCancel(context.Background())
	c.leave, c.keeper = leave, make(chan struct{})
	go c.keep(keeping)
	return nil
}

// notThere says what a connection that did not come about means.
func (c *VerbsClient) notThere(ctx context.Context, err error) error {
	var rejected *mpa.RejectedError
	var r refusal
	var dialed *net.OpError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w before the server answered", ErrInterrupted)
	case errors.As(err, &rejected) && decodeIf(rejected.Private, &r) && r.Protocol == protocol:
		return busyWith(encode(&r.Busy))
	case rejected != nil:
		return fmt.Errorf("%w: %w", ErrNoBench, rejected)
	case errors.As(err, &dialed) && dialed.Op == "dial":
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoBench, err)
}

// ServerMemory is how much memory the server has, when the client has joined.
func (c *VerbsClient) ServerMemory() uint64 { return c.welcome.Memory }

// hereEvery is how often the two sides tell each other that they are there, and what they have done.
const hereEvery = 50 * time.Millisecond

// keep tells the server that this side is there, and ends everything if it does not answer.
func (c *VerbsClient) keep(ctx context.Context) {
	defer close(c.keeper)
	every := hereEvery
	if c.Every > 0 {
		every = max(min(every, c.Every/2), time.Millisecond)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	asked, looked := int64(0), attention{at: time.Now()}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-c.control.qp.Done():
			c.giveUpOn(c.control.qp.Err())
			return
		}
		if silent, over := c.control.fellSilent(c.giveUp(), &looked); over {
			c.giveUpOn(fmt.Errorf("%w: nothing has come from %v for %v%s", ErrServerSilent, c.control.qp.RemoteAddr(), silent.Truncate(time.Second), whySilent))
			return
		}
		if c.control.heard.Load() < asked {
			continue // it has not answered
		}
		asked = c.control.now()
		done := c.done()
		if c.control.tell(ctx, kindHere, &done) != nil && ctx.Err() != nil {
			return
		}
	}
}

// done is how many operations of the turn are.
func (c *VerbsClient) done() uint64 {
	c.mu.Lock()
	l := c.lanes
	c.mu.Unlock()
	if l == nil {
		return 0
	}
	return l.done()
}

// giveUpOn ends what is under way.
func (c *VerbsClient) giveUpOn(err error) {
	c.mu.Lock()
	c.gone = cmp.Or(c.gone, err)
	l := c.lanes
	c.mu.Unlock()
	if l != nil {
		l.abort()
	}
	c.control.qp.Abort()
}

func (c *VerbsClient) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// Run runs the plan for that long, as Run of [Client] does.
func (c *VerbsClient) Run(ctx context.Context, long time.Duration, o *Outcome) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.shut()
	err := c.run(ctx, c, long, o)
	if gone := c.lost(); gone != nil && (errors.Is(err, verbs.ErrFlushed) || errors.Is(err, net.ErrClosed)) {
		return gone // that is why
	}
	return err
}

// open opens the queue pairs of the plan.
func (c *VerbsClient) open(ctx context.Context) error {
	p := c.Plan
	err := cmp.Or(c.Verb.Check(p, c.Receive), p.Check(c.welcome.Memory))
	if err != nil {
		return err
	}
	c.memory = make([]byte, slotAlignment)
	var landing []byte
	if p.BothWays != 0 {
		c.memory = make([]byte, p.needs())
		landing = c.memory
	}
	l, err := newLanes(c.Host, p, c.Verb, landing, !c.Receive)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.lanes = l
	c.mu.Unlock()
	if err := c.openLanes(ctx, l); err != nil {
		c.shut()
		if ctx.Err() != nil {
			return fmt.Errorf("%w before it began", ErrInterrupted)
		}
		return err
	}
	return nil
}

func (c *VerbsClient) openLanes(ctx context.Context, l *lanes) error {
	wish := opening{Plan: c.Plan, Verb: c.Verb, Key: keyOf(l.region)}
	if c.Receive {
		wish.Receive = 1
	}
	if err := c.control.tell(ctx, kindOpen, &wish); err != nil {
		return err
	}
	answer, err := c.answer(ctx, kindOpen)
	if err != nil {
		return err
	}
	var has opening
	if err := decodeRecord(answer, &has); err != nil {
		return err
	}
	l.key = has.Key.key()
	// All at once would be more than a listener keeps waiting.
	var all sync.WaitGroup
	var mu sync.Mutex
	turn := make(chan struct{}, atATime)
	for i := range l.all {
		turn <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() { <-turn }()
			mu.Lock()
			failed := err
			mu.Unlock()
			if failed != nil {
				return
			}
			o := l.options(i)
			o.Private = encode(&hello{protocol, version, pairMeasured, c.welcome.Session, uint32(i)})
			o.NoCRC, o.Strict, o.Revision = c.NoCRC, c.Strict, c.Revision
			qp, dialed := c.Host.Dial(ctx, c.Address, o)
			l.opened(i, qp)
			mu.Lock()
			err = cmp.Or(err, dialed)
			mu.Unlock()
		}()
	}
	all.Wait()
	return err
}

// shut closes the queue pairs of the plan.
func (c *VerbsClient) shut() {
	c.mu.Lock()
	l := c.lanes
	c.lanes = nil
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), c.giveUp())
	defer cancel()
	if c.lost() == nil {
		l.each(func(q *verbs.QueuePair) { q.Shutdown(ctx) })
	}
	l.close()
}

// Close leaves the server.
func (c *VerbsClient) Close() {
	if c.control == nil {
		return
	}
	c.leave()
	<-c.keeper
	within := leaveTime
	if c.lost() == nil {
		within = max(within, min(c.giveUp(), VerbsGiveUp)) // to a server a reset is a client that failed
	}
	c.control.close(within)
}

// answer waits for a control record of the server.
func (c *VerbsClient) answer(ctx context.Context, kind uint32) (control, error) {
	for {
		m, err := c.control.next(ctx)
		switch {
		case err != nil:
			return m, cmp.Or(c.lost(), err)
		case m.kind == kind:
			return m, nil
		case m.kind == kindRefuse:
			return m, fmt.Errorf("the server refuses: %s", printable(m.data))
		}
	}
}

func (c *VerbsClient) begin(ctx context.Context, p Plan) (there Ready, err error) {
	if err := c.control.tell(ctx, kindBegin, &p); err != nil {
		return there, err
	}
	answered, err := c.answer(ctx, kindReady)
	if err != nil {
		return there, err
	}
	return there, decodeRecord(answered, &there)
}

func (c *VerbsClient) end(ctx context.Context, mine, theirs *Counts) error {
	if err := c.control.tell(ctx, kindEnd, &finish{mine.Nanoseconds}); err != nil {
		return err
	}
	report, err := c.answer(ctx, kindReport)
	if err != nil {
		return err
	}
	return decodeRecord(report, theirs)
}

func (c *VerbsClient) thank(context.Context) {} // TCP has brought what came

// stay has nothing to say that keep does not.
func (c *VerbsClient) stay(lost func(error)) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-c.control.qp.Done():
			lost(cmp.Or(c.lost(), c.control.qp.Err()))
		case <-ctx.Done():
		}
	}()
	return func() { cancel(); <-left }
}

func (c *VerbsClient) giveUp() time.Duration { return time.Duration(c.welcome.GiveUp) }
func (c *VerbsClient) counts() counts        { return countsHere() }
func (c *VerbsClient) settle(in *arrivals)   { c.lanes.settle(in) }
func (c *VerbsClient) bytes() []byte         { c.lanes.see(); return c.memory }
func (c *VerbsClient) here() dgrdma.Addr     { return streamAddr(c.control.qp.LocalAddr()) }
func (c *VerbsClient) there() dgrdma.Addr    { return streamAddr(c.control.qp.RemoteAddr()) }
func (c *VerbsClient) wire() string          { return "" }

func (c *VerbsClient) expect(p Plan) *arrivals {
	in := c.lanes.expect(p)
	c.in.Store(in)
	return in
}

func (c *VerbsClient) poster(p Plan) Poster { return c.lanes.operations(p) }

// streamAddr is an address of TCP as rivals know addresses.
func streamAddr(a net.Addr) dgrdma.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return dgrdma.UDPAddr(t.AddrPort())
	}
	return dgrdma.Addr{}
}

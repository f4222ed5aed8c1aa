package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/verbs"
)

// verbsServed is the server's end of a client of work requests.
type verbsServed struct {
	*VerbsServer
	request *verbs.Request
	number  uint64 // by which its queue pairs are known
	since   time.Time
	gaveWay chan struct{} // closed when another one gets the server

	mu      sync.Mutex
	control *controlLine
	lanes   *lanes
	missing int           // queue pairs that have not come
	whole   chan struct{} // closed when none is
	in      *arrivals
	gone    bool
}

// clientName is a client by its address.
type clientName string

func (n clientName) String() string { return string(n) }

func (c *verbsServed) name() fmt.Stringer { return clientName(c.request.RemoteAddr().String()) }

func (c *verbsServed) silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control == nil {
		return time.Since(c.since)
	}
	return c.control.silent()
}

// giveWay ends it. The caller has the lock of the server.
func (c *verbsServed) giveWay() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.gone = true
		close(c.gaveWay)
	}
}

// turnDown answers one that nobody attends any more.
func (c *verbsServed) turnDown() {
	c.request.TurnAway([]byte("the server ended"))
}

// attend serves all runs of the client.
func (c *verbsServed) attend(ctx context.Context) error {
	buffers := controlReceives()
	qp, err := c.request.Accept(ctx, &verbs.Options{
		Private: encode(&welcome{protocol, version, c.number, uint64(len(c.Memory)), uint64(c.giveUp())}), Posted: buffers, NoCRC: true, Domain: c.Host.NewDomain(),
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.control = newControlLine(qp, buffers, c.isHere)
	c.mu.Unlock()
	defer c.control.close(leaveTime)
	defer c.drop()
	ctx, leave := c.whileHeard(ctx)
	defer leave()
	for {
		m, err := c.next(ctx)
		switch {
		case errors.Is(err, verbs.ErrPeerClosed):
			return nil // between two runs
		case err != nil:
			return err
		case m.kind == kindOpen:
			err = c.open(ctx, m)
		case m.kind == kindBegin:
			err = c.begin(ctx, m)
		}
		if err != nil {
			return err
		}
	}
}

// isHere answers what the client says that it has done with what was done here.
func (c *verbsServed) isHere(done uint64) {
	c.mu.Lock()
	l, in := c.lanes, c.in
	c.mu.Unlock()
	mine := uint64(0)
	if l != nil {
		mine = l.done()
	}
	if in != nil {
		in.told.Store(done)
	}
	c.control.tell(context.Background(), kindHere, &mine)
}

// whileHeard returns a context that ends when the client has fallen silent, or gives way to another: whatever it is that
// the client keeps waiting.
func (c *verbsServed) whileHeard(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(c.giveUp() / 8)
		defer tick.Stop()
		looked := attention{at: time.Now()}
		for {
			select {
			case <-c.gaveWay:
				cancel(fmt.Errorf("%w, and gave way to another", ErrSilent))
			case <-tick.C:
				if silent, over := c.control.fellSilent(c.giveUp(), &looked); over {
					cancel(fmt.Errorf("%w: nothing has come from it for %v%s", ErrSilent, silent.Truncate(time.Second), whySilent))
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// next waits for a control record, as long as somebody is there.
func (c *verbsServed) next(ctx context.Context) (control, error) {
	m, err := c.control.next(ctx)
	if silent := c.control.silent(); err != nil && ctx.Err() != nil && !errors.Is(err, ErrSilent) && silent > c.patience() {
		err = fmt.Errorf("%w, and it had been silent for %v", err, silent.Round(time.Second))
	}
	return m, err
}

// open prepares what a client wants to be measured.
func (c *verbsServed) open(ctx context.Context, m control) error {
	c.drop()
	var wish opening
	err := decodeRecord(m, &wish)
	p := wish.Plan
	if err == nil {
		err = cmp.Or(wish.Verb.Check(p, wish.Receive != 0), p.Check(uint64(len(c.Memory))))
	}
	if err != nil {
		c.control.tell(ctx, kindRefuse, err.Error())
		return err
	}
	landing := c.Memory
	if wish.Receive != 0 {
		landing = nil
	}
	l, err := newLanes(c.Host, p, wish.Verb, landing, p.BothWays != 0)
	if err != nil {
		return err
	}
	l.key = wish.Key.key()
	c.mu.Lock()
	c.lanes, c.missing, c.whole = l, len(l.all), make(chan struct{})
	c.mu.Unlock()
	return c.control.tell(ctx, kindOpen, &opening{Plan: p, Verb: wish.Verb, Receive: wish.Receive, Key: keyOf(l.region)})
}

// join opens one of the queue pairs.
func (c *verbsServed) join(ctx context.Context, r *verbs.Request, i int) {
	c.mu.Lock()
	l := c.lanes
	fits := l != nil && i < len(l.all) && !l.all[i].came
	if fits {
		l.all[i].came = true
	}
	c.mu.Unlock()
	if !fits {
		r.Close()
		return
	}
	o := l.options(i)
	o.NoCRC = true // as the client likes
	qp, err := r.Accept(ctx, o)
	if err != nil {
		return // the client knows, and the run does not begin
	}
	c.mu.Lock()
	late := c.lanes != l
	if !late {
		l.opened(i, qp)
		if c.missing--; c.missing == 0 {
			close(c.whole)
		}
	}
	c.mu.Unlock()
	if late {
		qp.Abort()
	}
}

// drop lets go of the queue pairs.
func (c *verbsServed) drop() {
	c.mu.Lock()
	l := c.lanes
	c.lanes, c.in = nil, nil
	c.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// begin serves one run.
func (c *verbsServed) begin(ctx context.Context, m control) error {
	var p Plan
	if err := decodeRecord(m, &p); err != nil {
		return err
	}
	c.mu.Lock()
	l, whole := c.lanes, c.whole
	c.mu.Unlock()
	err := p.Check(uint64(len(c.Memory)))
	if q := p; err == nil && l != nil && p.Carrier == Ours {
		q.MoreRuns = l.plan.MoreRuns
		if q != l.plan {
			err = errors.New("the plan is another than that of the queue pairs")
		}
	}
	if l == nil {
		err = errors.New("no queue pairs were opened")
	}
	if err != nil {
		c.control.tell(ctx, kindRefuse, err.Error())
		return err
	}
	select {
	case <-whole:
	case <-c.control.qp.Done():
		return c.control.qp.Err()
	case <-c.gaveWay:
		return ErrSilent
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var saw Counts
	if c.Idle != 0 && p.Peers >= leastWeighed {
		if now := MemoryInUse(); now > c.Idle {
			saw.PeerMemory = (now - c.Idle) / uint64(p.Peers)
		}
	}
	return c.serve(ctx, p, c, &saw)
}

func (c *verbsServed) ready(ctx context.Context, r *Ready) error {
	return c.control.tell(ctx, kindReady, r)
}

func (c *verbsServed) ended(ctx context.Context, in *arrivals) (told finish, err error) {
	c.mu.Lock()
	c.in = in
	c.mu.Unlock()
	for {
		m, err := c.next(ctx)
		if err == nil && m.kind == kindEnd {
			decodeIf(m.data, &told) // an older one tells nothing
		}
		if err != nil || m.kind == kindEnd {
			return told, err
		}
	}
}

func (c *verbsServed) deliver(ctx context.Context, saw *Counts) error {
	return c.control.tell(ctx, kindReport, saw)
}

func (c *verbsServed) abandon()                { c.lanes.abort() }
func (c *verbsServed) counts() counts          { return countsHere() }
func (c *verbsServed) expect(p Plan) *arrivals { return c.lanes.expect(p) }
func (c *verbsServed) settle(in *arrivals)     { c.lanes.settle(in) }
func (c *verbsServed) poster(p Plan) Poster    { return c.lanes.operations(p) }
func (c *verbsServed) bytes() []byte           { c.lanes.see(); return c.Memory }
func (c *verbsServed) wire() string            { return "" }
func (c *verbsServed) here() dgrdma.Addr       { return streamAddr(c.control.qp.LocalAddr()) }
func (c *verbsServed) there() dgrdma.Addr      { return streamAddr(c.control.qp.RemoteAddr()) }

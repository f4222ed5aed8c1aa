package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

const (
	// pingTick is how exact the time is at which an answer counts as lost.
	pingTick = 50 * time.Millisecond
	// pingPolls is how often a wire is polled between two looks at the clock. Arbitrary: a
	// look takes a tenth of a poll, and a poll a millisecond where many want the processor.
	pingPolls = 16
)

// pingClient measures. The goroutine that receives tells it of answers, and sends the next
// ping at once.
type pingClient struct {
	o      *pingOptions
	wire   string    // "udp"
	stdout io.Writer // nil: answers are not shown
	stderr io.Writer
	giveUp time.Duration
	send   func(number uint32)
	resend func(number uint32) // the ping before it is lost
	dead   func() error        // why nothing can come any more, or nil
	heard  func() uint64       // frames that came from the peer
	// explain says what a user may do about an error.
	explain func(err error) error
	wake    chan struct{} // capacity 1: look
	timer   *time.Timer   // looks when the next ping is due

	op opResult // of pings over TCP

	met bool // something came from the peer: pings leave

	mu     sync.Mutex
	most   uint32 // how large pings may be
	told   bool   // by the server
	rounds *rounds
	shown  []answered // to be shown
	failed error

	unread error // why answers cannot be shown: it is no error of the peer's
}

// answered is a ping that was answered, and how long it took.
type answered struct {
	number uint32
	took   time.Duration
}

func newPingClient(o *pingOptions, wire string, stdout, stderr io.Writer) *pingClient {
	if !o.verbose && (o.json || o.interval == 0 || !isTerminal(stdout)) {
		stdout = nil
	}
	c := &pingClient{
		stdout: stdout,
		o:      o, wire: wire, stderr: stderr, wake: make(chan struct{}, 1), rounds: newRounds(o.n, o.wait, o.interval),
		heard: func() uint64 { return 0 },
	}
	c.explain = c.explained
	return c
}

// arrived takes an answer.
func (c *pingClient) arrived(number uint32) {
	now := time.Now()
	c.mu.Lock()
	ok := c.rounds.answer(number, now)
	if ok && c.stdout != nil && number > c.rounds.warmUp {
		c.shown = append(c.shown, answered{number, c.rounds.latest})
	}
	if ok {
		number, ok = c.rounds.next(now)
	}
	over := c.rounds.through()
	c.mu.Unlock()
	if ok {
		c.send(number)
	} else if over || c.o.interval > 0 {
		c.look()
	}
}

// left notes when a ping left.
func (c *pingClient) left(number uint32, at time.Time) {
	c.mu.Lock()
	c.rounds.sent(number, at)
	c.mu.Unlock()
}

// fail ends the measurement.
func (c *pingClient) fail(err error) {
	c.mu.Lock()
	if c.failed == nil {
		c.failed = err
	}
	c.mu.Unlock()
	c.look()
}

func (c *pingClient) look() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run sends all pings and waits for their answers.
func (c *pingClient) run(ctx context.Context, poll func() error) error {
	if c.stdout == nil {
		defer showProgress(c.stderr, c.line)()
	}
	c.timer = time.AfterFunc(time.Hour, c.look)
	defer c.timer.Stop()
	c.mu.Lock()
	number, _ := c.rounds.next(time.Now())
	c.mu.Unlock()
	c.send(number)
	var failed error
	err := attend(ctx, poll, c.wake, pingTick, func(now time.Time) (over bool) {
		over, failed = c.watch(now)
		return over
	})
	return cmp.Or(err, failed)
}

// line says how far it is.
func (c *pingClient) line() string {
	c.mu.Lock()
	r := c.rounds
	n, lost, latest := r.measured(), r.lost, r.latest
	c.mu.Unlock()
	return fmt.Sprintf("%d of %d, %d lost, last %.1f us, median %.1f us", n, c.o.n, lost, microseconds(latest), microseconds(r.times.Quantile(0.5)))
}

// watch gives up a ping that is overdue and sends the next one that is due. It reports whether
// all are answered or lost.
func (c *pingClient) watch(now time.Time) (over bool, err error) {
	if !c.met {
		c.met = c.heard() > 0
	}
	c.mu.Lock()
	r := c.rounds
	if !c.met {
		r.postpone(now)
	}
	lost := r.number
	var waited time.Duration
	var number uint32
	var expired, more bool
	if err = c.failed; err == nil && r.silence(now) > c.giveUp {
		err = c.silence()
	}
	if err == nil {
		waited, expired = r.expire(now)
		if !r.waiting {
			number, more = r.next(now)
		}
	}
	again := r.silent
	over = r.through()
	shown := c.shown
	c.shown = nil
	if wait, waits := r.dueIn(now); waits {
		c.timer.Reset(wait)
	}
	c.mu.Unlock()
	for _, a := range shown {
		if _, err := fmt.Fprintf(c.stdout, "%s: %.1f us\n", c.named(a.number), microseconds(a.took)); err != nil {
			c.unread = err
			return true, err
		}
	}
	if expired {
		c.sayLost(lost, waited)
	}
	switch {
	case over:
		return true, nil
	case err == nil:
		err = c.dead()
	}
	switch {
	case err != nil || !more:
	case again:
		c.resend(number)
	default:
		c.send(number)
	}
	return err != nil, err
}

func (c *pingClient) sayLost(number uint32, waited time.Duration) {
	fmt.Fprintf(c.stderr, "%s: no answer within %.1f s\n", c.named(number), waited.Seconds())
}

// named is a ping as a user counts them, who asked for those that are measured.
func (c *pingClient) named(number uint32) string {
	if number <= c.rounds.warmUp {
		return fmt.Sprintf("unmeasured ping %d", number)
	}
	return fmt.Sprintf("ping %d", number-c.rounds.warmUp)
}

// pingSilence is dgrdma.ErrPeerDown of a peer that never answered a ping.
type pingSilence string

func (s pingSilence) Error() string { return string(s) }
func (pingSilence) Unwrap() error   { return dgrdma.ErrPeerDown }

// silence says what it is that nothing was answered for so long. Guarded by mu.
func (c *pingClient) silence() error {
	switch {
	case !c.met:
		return pingSilence("the peer never answered")
	case c.rounds.answered == 0:
		return pingSilence("the peer answered no ping")
	}
	return dgrdma.ErrPeerDown
}

// attend calls look until it says that it is over: whenever wake says so, and
// every so often. poll, if not nil, drives the endpoint meanwhile.
func attend(ctx context.Context, poll func() error, wake <-chan struct{}, every time.Duration, look func(now time.Time) (over bool)) error {
	if poll != nil {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		looked := time.Now()
		for i := 1; ; i++ {
			if err := poll(); err != nil {
				return err
			}
			select {
			case <-wake:
			default:
				if i%pingPolls != 0 || time.Since(looked) < every {
					continue
				}
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if looked = time.Now(); look(looked) {
				return nil
			}
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !look(time.Now()) {
		select {
		case <-wake:
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// attendFor lets the endpoint work for so long, or until done.
func attendFor(long time.Duration, poll func() error, done <-chan struct{}) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	for poll != nil {
		select {
		case <-timer.C:
			return
		case <-done:
			return
		default:
			poll()
		}
	}
	select {
	case <-timer.C:
	case <-done:
	}
}

// report prints what was measured, however it ended, and returns what is wrong
// with it.
func (c *pingClient) report(ctx context.Context, err error, stdout io.Writer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unread != nil {
		return c.unread // nor can the rest be printed
	}
	interrupted := ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
	if interrupted {
		err = fmt.Errorf("%w after %d of %d", err, c.rounds.measured(), c.o.n)
	} else if err != nil {
		waited, lost := c.rounds.abandon(c.heard() > 0 && !errors.Is(err, dgrdma.ErrNoService), time.Now())
		switch {
		case lost && (endedTCP(err) || peerEnded(err)):
			fmt.Fprintf(c.stderr, "%s: no answer before the other side ended the connection\n", c.named(c.rounds.number))
		case lost:
			c.sayLost(c.rounds.number, waited)
		}
		err = c.explain(err)
	} else if c.rounds.lost > 0 {
		err = fmt.Errorf("%d of %d pings were not answered in time", c.rounds.lost, c.rounds.number)
	}
	r := c.o.summary(c.wire, c.rounds)
	r.opResult = c.op
	if err != nil {
		r.Error = err.Error()
	}
	if err != nil && !interrupted && !c.o.json && r.N == 0 && r.Lost == 0 {
		return err // which says all
	}
	return errors.Join(err, r.print(stdout, c.o.json))
}

// explained says what a user may do about an error. Guarded by mu.
func (c *pingClient) explained(err error) error {
	with := ""
	if c.o.link {
		with = " --link"
	}
	switch {
	case peerEnded(err) && c.rounds.answered > 0:
		return fmt.Errorf("%w: the server ended; start dgrdmacat ping%s --serve there again", err, with)
	case !errors.Is(err, dgrdma.ErrPeerDown) || saysAll(err):
		return elsewhere(err, "ping", c.o.link)
	case c.rounds.answered > 0:
		return fmt.Errorf("%w: was the server killed, or is the network down?", err)
	case c.heard() > 0:
		return fmt.Errorf("%w: it is there, but answers no pings; does dgrdmacat ping%s --serve run there, and no other command?", err, with)
	}
	return fmt.Errorf("%w: nothing was ever heard of it; does dgrdmacat ping%s --serve run there, and is this the URL it printed?", err, with)
}

// peerEnded reports whether the peer has ended the connection, or only the link: what is told of a server that ends is the one
// or the other, whichever comes first.
func peerEnded(err error) bool {
	return errors.Is(err, dgrdma.ErrPeerClosed) || errors.Is(err, link.ErrPeerClosed)
}

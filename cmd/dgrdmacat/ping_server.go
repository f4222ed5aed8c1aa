package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
)

// pinging is a client as its server knows it: answered on its own, where its
// pings arrive.
type pinging struct {
	*pingPeer
	pings atomic.Uint64 // that came

	// Only for the goroutine that looks.
	number uint32 // of the ping that was the latest at the last look
	since  time.Time

	mu      sync.Mutex
	endedAt time.Time // it said bye, or failed
	err     error
}

func newPinging(p *pingPeer) *pinging {
	c := &pinging{pingPeer: p, since: time.Now()}
	p.arrived = func(number uint32) {
		c.pings.Add(1)
		p.write(number)
	}
	p.bye = func() { c.end(nil) }
	p.failed = func(err error) {
		// In its next life it may ping again.
		if !errors.Is(err, dgrdma.ErrPeerRestarted) {
			c.end(err)
		}
	}
	return c
}

func (c *pinging) end(err error) {
	c.mu.Lock()
	if c.endedAt.IsZero() {
		c.endedAt, c.err = time.Now(), err
	}
	c.mu.Unlock()
}

// gone reports whether the client is through, and for so long that what it sends
// again was acknowledged; or whether it has been silent for too long.
func (c *pinging) gone(now time.Time, giveUp time.Duration) (bool, error) {
	c.mu.Lock()
	endedAt, err := c.endedAt, c.err
	c.mu.Unlock()
	if n := c.latest.Load(); n != c.number {
		c.number, c.since = n, now
	}
	switch {
	case !endedAt.IsZero():
		return now.Sub(endedAt) > farewell, err
	case c.number != 0:
		err = bench.ErrSilent
	}
	return now.Sub(c.since) > giveUp, err
}

// sayPinged tells of a client that is through, and why if that is an error.
func sayPinged(log *peerLog, client dgrdma.PeerName, pings uint64, bytes uint32, why error) {
	said := fmt.Sprintf("%v: ", client)
	switch {
	case pings > 0:
		said += fmt.Sprintf("%s of %s", count(pings, "ping"), count(int(bytes), "byte"))
		if why != nil {
			said += fmt.Sprintf("; then %v", why)
		}
	case why != nil:
		said += why.Error()
	default:
		return
	}
	fmt.Fprintln(log, said)
}

func pingServe(ctx context.Context, o *pingOptions, stderr io.Writer) error {
	local, err := parseServed("--serve", o.serve)
	if err != nil {
		return err
	}
	size := uint64(pingMemory)
	if o.size.given {
		size = o.size.value
	}
	memory := newPings(size, func(p *pingPeer) dgrdma.Memory { return newPinging(p) })
	e, err := openSaying(stderr, withMemory(local, memory.Size()).String(), &dgrdma.Config{Memory: memory, Service: pingService, Manual: o.busyPoll, BusyPoll: o.busyPoll, AcceptAny: true})
	if err != nil {
		return err
	}
	defer e.Close()
	o.metrics.endpoint(e)
	if err := o.urlFile.write(e.URL()); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "answering on %s\n%s%s may ping it\n", e.URL(), reach(e), anybody(local))
	log := newPeerLog(stderr)
	defer log.close()
	var served error
	err = attend(ctx, o.pollOf(e), nil, min(e.GiveUp()/8, farewell), func(now time.Time) (over bool) {
		for _, conn := range e.Conns() {
			c := conn.Memory().(*pinging)
			gone, err := c.gone(now, e.GiveUp())
			if !gone {
				continue
			}
			conn.Close()
			if o.once && c.number != 0 {
				over, served, err = true, errors.Join(served, err), nil
			}
			sayPinged(log, conn.Name(), c.pings.Load(), c.size.Load(), err)
		}
		return over
	})
	if ctx.Err() != nil && !o.once {
		return nil
	}
	return errors.Join(err, served)
}

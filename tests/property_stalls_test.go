package tests

import (
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// propertyStalls finds connections on which nothing goes on although something is
// posted.
type propertyStalls struct {
	last map[*dgrdma.Conn]propertyProgress
}

// propertyProgress is what a connection had done when it last did something.
type propertyProgress struct {
	acks, done uint64
	life       uint32
	at         time.Time
}

const propertyLook = 10 * time.Millisecond

// watch looks at all connections now and then, until the returned function is called.
func (w *propertyWorld) watch() (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	bound := w.plan.patience()
	w.stalls.last = make(map[*dgrdma.Conn]propertyProgress)
	go func() {
		defer close(ended)
		tick := time.NewTicker(propertyLook)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				w.look(bound)
			}
		}
	}()
	return func() { close(over); <-ended }
}

func (w *propertyWorld) look(bound time.Duration) {
	for i := range w.nodes {
		for j := range w.nodes {
			if c := w.conn(i, j); c != nil {
				w.lookAt(c, i, bound)
			}
		}
	}
}

func (w *propertyWorld) lookAt(c *dgrdma.Conn, node int, bound time.Duration) {
	s := c.Stats()
	now := propertyProgress{s.AcksReceived, s.TransactionsDone, s.Life, time.Now()}
	before, known := w.stalls.last[c]
	still := known && s.Queued > 0 && !s.Down && before.acks == now.acks && before.done == now.done && before.life == now.life
	if !still {
		w.stalls.last[c] = now
		return
	}
	stall := now.at.Sub(before.at)
	if bound > 0 && stall > bound && stall <= bound+propertyLook {
		w.failLocked("node %d: nothing of what is posted to %v went on for %v, want %v", node, s.Peer, stall, bound)
	}
}

// patience is how long a connection may stand still with something posted; 0: for
// as long as it takes, because peers are away. Without loss that is 100 ms beside the
// way itself, else what the timers explain.
func (p *propertyPlan) patience() time.Duration {
	if p.mayFail {
		return 0
	}
	for _, a := range p.actions {
		if a.verb != verbKick {
			return 0
		}
	}
	var trip time.Duration // both ways
	burst, lossy, reorders := 0, false, false
	for _, l := range p.links {
		trip = max(trip, l.Latency+l.Jitter+l.ReorderBy)
		if l.Rate > 0 {
			queue := max(l.Queue, simnet.DefaultQueue)
			trip += time.Duration(queue*p.mtu*8) * time.Second / time.Duration(l.Rate)
		}
		burst = max(burst, l.Burst)
		reorders = reorders || l.Reorder > 0
		lossy = lossy || p.damage() > 0 || l.Loss > 0 || l.Corrupt > 0 || l.HoldBack > 0 || l.Rate > 0
	}
	for _, n := range p.each {
		lossy = lossy || n.recvQueue > 0
	}
	calm := 100*time.Millisecond + 4*trip
	if !lossy {
		if prof := p.profile(0); reorders && prof.FreshAcks {
			// The acknowledgement on a frame that its copy overtook counts for nothing, and
			// who has no id left to say more waits for a timeout (D1-5, D1-6): four of
			// the shortest, while no round trip has been measured.
			calm += 4 * prof.MinTimeout
		}
		// Each that a script loses may be all that was sent until the next timeout, and
		// timeouts double, from four of the shortest up to a second.
		for i := range p.lost {
			calm += min(time.Second, p.profile(0).MinTimeout<<min(2+i, 8))
		}
		return calm
	}
	// Timeouts double up to a second, and each sends two frames. With 0.4 lost both
	// ways, of them and of what they are answered with, 20 in a row bring nothing once
	// in 10^7 times; a run of losses swallows two frames of each.
	return calm + time.Duration(22+burst/2)*time.Second
}

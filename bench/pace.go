package bench

import (
	"sync"
	"time"
)

// A paced load posts what came due in burst together: a timer for each operation would be
// late more often than not. What it is late by is made up for, up to mostLate.
const (
	burst    = time.Millisecond
	mostLate = 100 * time.Millisecond
)

// pacer says when operations of one size may be posted at a rate. It is told the time. The first one waits its turn like all that
// follow it: else what is moved in any time were more than the rate allows, in a short one by much.
type pacer struct {
	rate   float64 // bytes per second
	size   float64
	credit float64 // bytes that may be posted
	most   float64 // of credit
	at     time.Duration
}

func newPacer(rate uint64, size uint32) pacer {
	p := pacer{rate: float64(rate), size: float64(size)}
	p.most = p.size + p.rate*mostLate.Seconds()
	return p
}

// take lets one operation through, or says for how long it has to wait.
func (p *pacer) take(now time.Duration) (wait time.Duration, ok bool) {
	p.credit = min(p.credit+p.rate*(now-p.at).Seconds(), p.most)
	p.at = now
	if p.credit >= p.size {
		p.credit -= p.size
		return 0, true
	}
	wait = time.Duration(min((p.size-p.credit)/p.rate, maxWait.Seconds())*float64(time.Second)) + 1 // rounded up
	return max(wait, burst), false
}

// maxWait bounds waits that a time.Duration cannot hold.
const maxWait = 24 * time.Hour

// gate holds operations of a load back until they may be posted.
type gate struct {
	load *Load

	mu     sync.Mutex
	pacer  pacer
	parked []*Op
	timer  *time.Timer
}

func newGate(l *Load, rate uint64) *gate {
	return &gate{load: l, pacer: newPacer(rate, l.plan.Size), parked: make([]*Op, 0, l.plan.Active)}
}

// parks reports whether an operation waits: then it is driven later.
func (g *gate) parks(op *Op) bool {
	if op.paid {
		op.paid = false
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.load.running.Load() {
		return false
	}
	if len(g.parked) == 0 {
		wait, ok := g.pacer.take(time.Since(g.load.began))
		if ok {
			return false
		}
		g.after(wait)
	}
	g.parked = append(g.parked, op)
	return true
}

// after opens the gate later. Guarded by mu.
func (g *gate) after(wait time.Duration) {
	if g.timer == nil {
		g.timer = time.AfterFunc(wait, g.open)
	} else {
		g.timer.Reset(wait)
	}
}

// open drives those whose time has come.
func (g *gate) open() {
	g.mu.Lock()
	n := 0
	for now := time.Since(g.load.began); n < len(g.parked); n++ {
		if wait, ok := g.pacer.take(now); !ok {
			g.after(wait)
			break
		}
	}
	due := append([]*Op(nil), g.parked[:n]...)
	g.parked = append(g.parked[:0], g.parked[n:]...)
	g.mu.Unlock()
	for _, op := range due {
		op.paid = true
		g.load.drive(op)
	}
}

// passes waits until an operation may be posted, and reports whether anything is posted any
// more.
func (g *gate) passes() bool {
	for g.load.running.Load() {
		g.mu.Lock()
		wait, ok := g.pacer.take(time.Since(g.load.began))
		g.mu.Unlock()
		if ok {
			return true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-g.load.ending:
		}
		timer.Stop()
	}
	return false
}

// end lets go of all, as nothing is posted any more.
func (g *gate) end() {
	g.mu.Lock()
	all := g.parked
	g.parked = nil
	if g.timer != nil {
		g.timer.Stop()
	}
	g.mu.Unlock()
	for range all {
		g.load.retire()
	}
}

package simnet

import (
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/harm"
)

type outcome int

const (
	accepted outcome = iota
	refused          // by the sender's own system
)

func (n *Network) now() time.Duration { return time.Since(n.start) }

// enter takes a datagram through all stages of a link that is not perfect, up
// to the schedule.
func (n *Network) enter(l *link, buf []byte, ecn transport.ECN, now time.Duration) outcome {
	cfg, stats := &l.cfg, &l.stats
	stats.Sent++
	ordinal := stats.Sent
	if cfg.Down {
		stats.Down++
		n.recycle(buf)
		return accepted
	}
	chance := l.chance.draw(cfg)
	var verdict Verdict
	if cfg.Script != nil {
		verdict = cfg.Script(l.scripted, buf)
		l.scripted++
	}
	if verdict.Refuse {
		stats.Refused++
		n.recycle(buf)
		return refused
	}
	if cfg.Remark != nil {
		var ok bool
		if ecn, ok = cfg.Remark(ecn); !ok {
			stats.Lost++
			n.recycle(buf)
			return accepted
		}
	}
	p := parcel{l, buf, ecn, ordinal, now, chance, verdict}
	if cfg.Through != nil {
		cfg.Through.enter(p, now)
		return accepted
	}
	departed, ok := l.depart(len(buf), now)
	if !ok {
		stats.TailDropped++
		n.recycle(buf)
		return accepted
	}
	n.travel(p, departed)
	return accepted
}

// travel takes a datagram that has left the transmitter through the rest of its link.
func (n *Network) travel(p parcel, departed time.Duration) {
	l, buf, chance, verdict := p.link, p.buf, &p.chance, &p.verdict
	cfg, stats := &l.cfg, &l.stats
	if chance.held {
		n.hold(&p, p.sent+cfg.HoldFor)
	}
	if verdict.Hold > 0 {
		n.hold(&p, p.sent+verdict.Hold)
	}
	if chance.lost || verdict.Drop || cfg.MTU > 0 && len(buf) > cfg.MTU {
		stats.Lost++
		n.recycle(buf)
		return
	}
	if chance.corrupted || verdict.Corrupt {
		stats.Corrupted++
		if cfg.DropCorrupt {
			stats.CorruptDropped++
			n.recycle(buf)
			return
		}
		l.chance.flip(buf)
	}
	if chance.damaged {
		stats.Damaged++
		harm.Do(buf, l.chance.harm.below)
	}
	l.lastDue = max(l.lastDue, departed+cfg.Latency+chance.jitter)
	due := l.lastDue
	if chance.reordered {
		due += cfg.ReorderBy
	}
	due += max(verdict.Delay, 0)
	copies := verdict.Copies
	if chance.duplicated {
		copies++
	}
	n.schedule(l, buf, p.ecn, p.ordinal, due)
	for range copies {
		stats.Duplicated++
		n.schedule(l, n.clone(cap(buf), buf), p.ecn, 0, due)
	}
}

func (n *Network) hold(p *parcel, due time.Duration) {
	p.link.stats.Held++
	n.schedule(p.link, n.clone(cap(p.buf), p.buf), p.ecn, 0, due)
}

func (n *Network) schedule(l *link, buf []byte, ecn transport.ECN, ordinal uint64, due time.Duration) {
	l.entered++
	l.stats.InFlight++
	n.underWay.push(item{due: due, count: l.entered, ordinal: ordinal, link: l, buf: buf, ecn: ecn})
}

// deliverDue delivers all whose time has come and sets the timer for the next. What leaves
// a bottleneck comes before what arrives at the same time, since it may arrive then, too.
func (n *Network) deliverDue(now time.Duration) {
	next := time.Duration(0)
	for {
		b, leaves := n.nextBottleneck()
		switch {
		case b == nil && len(n.underWay) == 0:
			return
		case b != nil && (len(n.underWay) == 0 || leaves <= n.underWay[0].due):
			next = leaves
		default:
			b, next = nil, n.underWay[0].due
		}
		if next > now {
			break
		}
		if b != nil {
			b.leave()
			continue
		}
		it := n.underWay.pop()
		it.link.stats.InFlight--
		n.deliver(it.link, it.buf, it.ecn, it.ordinal)
	}
	if n.armed && n.fireAt <= next {
		return // if too early it sets itself again
	}
	n.armed, n.fireAt = true, next
	if n.timer == nil {
		n.timer = time.AfterFunc(next-now, n.timerFired)
	} else {
		n.timer.Reset(next - now)
	}
}

func (n *Network) timerFired() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.armed = false
	n.deliverDue(n.now())
	n.wakeReceivers()
}

package simnet

import (
	"fmt"
	"math"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// Defaults of [Link].
const (
	DefaultQueue     = 1 << 16
	DefaultReorderBy = time.Millisecond
	DefaultHoldFor   = time.Minute
)

// Link describes one direction between two addresses. The zero Link is
// perfect. Probabilities are from 0 to 1 and per datagram.
type Link struct {
	// Latency is the time from the end of transmission to the arrival, and
	// Jitter the bound of a random addition. Jitter does not reorder: a
	// datagram also waits for those before it.
	Latency, Jitter time.Duration

	// Rate is in bits per second; 0 is infinite. Datagrams wait for those
	// before them, at most Queue of them including the one in transmission
	// (0 means DefaultQueue); more are dropped at the tail.
	Rate  int64
	Queue int

	// Through is a bottleneck of the same network that the link shares with others, in place of
	// Rate and Queue. The link's other properties are those of its way after it. What is in it
	// when the link is set again goes on over the new link.
	Through *Bottleneck
	// Remark, if not nil, returns with which mark a datagram goes on, of which that is the mark when it enters the link; not ok: it is lost.
	Remark func(transport.ECN) (m transport.ECN, ok bool)

	// MTU is the largest frame that gets through; longer ones are lost without a word. 0 is
	// any.
	MTU int

	// Loss is the share of datagrams lost. They are lost in runs of Burst
	// consecutive ones, as when the wire coalesces datagrams; 0 means 1.
	Loss  float64
	Burst int

	// GilbertElliott loses datagrams in addition, in bursts of random length.
	GilbertElliott bottleneck.GilbertElliott

	// Duplicate is the probability that a datagram arrives twice.
	Duplicate float64

	// Reorder is the probability that a datagram takes ReorderBy longer (0
	// means DefaultReorderBy), so that later ones overtake it.
	Reorder   float64
	ReorderBy time.Duration

	// Corrupt is the probability that one bit of a datagram is wrong. Real
	// wires find that out by their checksums and drop the datagram: so does
	// the link if DropCorrupt is set. Otherwise the wrong frame is delivered,
	// which the protocol above need not notice; it must only survive.
	Corrupt     float64
	DropCorrupt bool

	// Damage is the probability that a datagram arrives changed as by the memory of a switch, behind
	// the checksum of the wire: a bit, a byte, a run of zeros, words that change places, or an end that
	// belongs elsewhere.
	Damage float64

	// HoldBack is the probability that a copy of a datagram, lost or not, also
	// arrives HoldFor after it was sent (0 means DefaultHoldFor). Choose it
	// long enough for the sender to use all its sequence numbers once.
	HoldBack float64
	HoldFor  time.Duration

	// Down is a blackout: nothing enters the link. What is under way arrives.
	Down bool

	// Script, if not nil, decides about the i-th datagram, from 0, since the
	// link was set; the faults above apply besides. b is the link's copy of
	// the frame: it may be changed, but not kept.
	Script func(i int, b []byte) Verdict
}

func (cfg *Link) mustBeValid() {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"Loss", cfg.Loss}, {"Duplicate", cfg.Duplicate}, {"Reorder", cfg.Reorder},
		{"Corrupt", cfg.Corrupt}, {"Damage", cfg.Damage}, {"HoldBack", cfg.HoldBack},
		{"GilbertElliott.ToBad", cfg.GilbertElliott.ToBad}, {"GilbertElliott.ToGood", cfg.GilbertElliott.ToGood},
		{"GilbertElliott.LossGood", cfg.GilbertElliott.LossGood}, {"GilbertElliott.LossBad", cfg.GilbertElliott.LossBad},
	} {
		if !(p.value >= 0 && p.value <= 1) { // also refuses NaN
			panic(fmt.Sprintf("BUG: simnet: %s is no probability: %v", p.name, p.value))
		}
	}
	if min(cfg.Latency, cfg.Jitter, cfg.ReorderBy, cfg.HoldFor) < 0 {
		panic("BUG: simnet: negative time in a link")
	}
	if cfg.Rate < 0 || cfg.Queue < 0 || cfg.Burst < 0 || cfg.MTU < 0 {
		panic("BUG: simnet: negative Rate, Queue, Burst or MTU in a link")
	}
	if cfg.Through != nil && (cfg.Rate != 0 || cfg.Queue != 0) {
		panic("BUG: simnet: a link with Rate or Queue that goes through a bottleneck")
	}
}

func (cfg *Link) isPerfect() bool {
	return cfg.MTU == 0 && cfg.Latency == 0 && cfg.Jitter == 0 && cfg.Rate == 0 && cfg.Loss == 0 &&
		cfg.Duplicate == 0 && cfg.Reorder == 0 && cfg.Corrupt == 0 && cfg.Damage == 0 && cfg.HoldBack == 0 &&
		cfg.GilbertElliott == bottleneck.GilbertElliott{} && cfg.Through == nil && cfg.Remark == nil && !cfg.Down && cfg.Script == nil
}

// link is one direction with its state. Everything is guarded by Network.mu.
type link struct {
	from, to transport.Addr
	key      uint64 // from seed and addresses; orders links at the same instant
	dst      *Conn  // nil: nobody is attached
	perfect  bool

	cfg      Link
	scripted int // datagrams the Script has seen
	chance   faults

	departures ring[time.Duration] // of the datagrams in the queue
	lastDue    time.Duration       // arrival of the last one in order

	entered uint64 // tie-break of the schedule
	newest  uint64 // highest ordinal delivered
	stats   LinkStats
}

func newLink(seed uint64, from transport.Addr, dst *Conn, to transport.Addr) *link {
	key := linkKey(seed, from, to)
	l := &link{from: from, to: to, key: key, dst: dst, chance: newFaults(key)}
	l.configure(Link{})
	return l
}

func (l *link) configure(cfg Link) {
	if cfg.Queue == 0 {
		cfg.Queue = DefaultQueue
	}
	if cfg.ReorderBy == 0 {
		cfg.ReorderBy = DefaultReorderBy
	}
	if cfg.HoldFor == 0 {
		cfg.HoldFor = DefaultHoldFor
	}
	l.cfg = cfg
	l.perfect = cfg.isPerfect()
	l.scripted = 0
	l.departures.clear()
	l.lastDue = 0
	l.chance.runLeft = 0
}

// depart returns when a datagram that is sent now has left the transmitter, or
// false if the queue is full.
func (l *link) depart(size int, now time.Duration) (time.Duration, bool) {
	if l.cfg.Rate == 0 {
		return now, true
	}
	for l.departures.len() > 0 && l.departures.front() <= now {
		l.departures.pop()
	}
	if l.departures.len() >= l.cfg.Queue {
		return 0, false
	}
	begin := now
	if l.departures.len() > 0 {
		begin = l.departures.back()
	}
	end := begin + l.transmission(size)
	l.departures.push(end)
	return end, true
}

func (l *link) transmission(size int) time.Duration {
	ns := math.Ceil(float64(size) * 8 * float64(time.Second) / float64(l.cfg.Rate))
	return time.Duration(min(ns, math.MaxInt32*float64(time.Second)))
}

// delivered counts an arrival. As in RFC 4737 a datagram is reordered if one
// sent later has arrived before it, whatever the cause; copies do not count.
func (l *link) delivered(ordinal uint64) {
	l.stats.Delivered++
	if ordinal == 0 {
		return
	}
	if ordinal < l.newest {
		l.stats.Reordered++
	} else {
		l.newest = ordinal
	}
}

package truth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// load is what a node sends to the other one.
type load struct {
	transactions int
	least, most  int           // bytes
	every        time.Duration // 0: as fast as it goes
	depth        int           // at once; 1: it waits for each
}

func (l load) String() string {
	if l.transactions == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d of %d to %d bytes every %v, %d at once", l.transactions, l.least, l.most, l.every, l.depth)
}

// plan is what a world is like, all of it drawn from the seed.
type plan struct {
	seed     uint64
	kind     worlds.Kind
	mtu      int
	window   int
	sealed   bool
	checksum bool
	links    [2]simnet.Link // from node 0, from node 1
	loads    [2]load
	still    [2]stillness
	restart  [2]time.Duration // when a node restarts; 0: never
	away     time.Duration    // for how long
	crash    bool
	down     [2]stillness // when a direction of the network carries nothing
	before   faults       // in the middle, before the point of capture
	length   time.Duration
}

// faults are what happens in the middle before the point of capture.
type faults struct{ loss, double float64 }

func drawPlan(seed uint64) plan {
	d := worlds.NewDice(seed, 1)
	p := plan{seed: seed, kind: worlds.Native, length: 20 * time.Second}
	p.mtu = d.Pick(512, 1472, 1472, 1472, 8972)
	if d.Chance(0.3) {
		p.window = d.Pick(4, 8, 16, 64)
	}
	if d.Chance(0.08) {
		p.sealed = true
	} else if d.Chance(0.15) {
		p.checksum = true
	}
	for i := range p.links {
		l := simnet.Link{Latency: d.Span(5*time.Microsecond, 5*time.Millisecond) + time.Duration(17+101*i)}
		if d.Chance(0.4) {
			l.Loss = 0.15 * d.Float64() * d.Float64()
			if d.Chance(0.3) {
				l.Burst = d.Between(2, 12)
			}
		}
		if d.Chance(0.25) {
			l.Duplicate = 0.1 * d.Float64()
		}
		if d.Chance(0.25) {
			l.Reorder, l.ReorderBy = 0.1*d.Float64(), d.Span(10*time.Microsecond, 4*time.Millisecond)
		}
		if d.Chance(0.05) {
			l.HoldBack, l.HoldFor = 0.02, d.Span(time.Millisecond, time.Second)
		}
		if d.Chance(0.4) {
			l.Jitter = d.Span(time.Microsecond, 200*time.Microsecond)
		}
		if d.Chance(0.4) {
			l.Rate, l.Queue = int64(d.Span(20e6, 10e9)), d.Pick(0, 10, 50, 200)
		}
		p.links[i] = l
	}
	if worlds.NewDice(seed, 4).Chance(0.1) {
		p.foreign(worlds.NewDice(seed, 5))
	}
	for i := range p.loads {
		if i == 1 && d.Chance(0.5) {
			continue
		}
		l := load{transactions: d.Pick(1, 3, 10, 40, 150, 400), least: 1, most: d.Pick(16, 500, 3000, 20_000), depth: d.Pick(1, 2, 16, 256)}
		if d.Chance(0.5) {
			l.least = l.most // as a benchmark sends
		}
		if d.Chance(0.4) {
			l.every = d.Span(20*time.Microsecond, 20*time.Millisecond)
			l.depth = 256
		}
		if d.Chance(0.1) {
			l.every = 600 * time.Millisecond // a peer that is mostly silent
			l.transactions = min(l.transactions, 20)
		}
		p.loads[i] = l
	}
	moment := func() time.Duration { return d.Span(time.Millisecond, 2*time.Second) + 7 }
	if d.Chance(0.2) {
		i := d.IntN(2)
		p.restart[i], p.away, p.crash = moment(), d.Span(time.Millisecond, 3*time.Second), d.Chance(0.5)
	}
	if d.Chance(0.12) {
		from := moment()
		p.still[d.IntN(2)] = stillness{from, from + d.Span(200*time.Millisecond, 4*time.Second)}
	}
	if d.Chance(0.08) {
		from := moment()
		p.down[d.IntN(2)] = stillness{from, from + d.Span(100*time.Millisecond, 3*time.Second)}
	}
	if d.Chance(0.3) {
		p.before = faults{0.05 * d.Float64(), 0}
		if d.Chance(0.3) {
			p.before.double = 0.05 * d.Float64()
		}
	}
	return p
}

// foreign makes the nodes peers of another kind, which have no keys and no checksums.
func (p *plan) foreign(d worlds.Dice) {
	p.kind = []worlds.Kind{worlds.OpenCPI, worlds.Legacy, worlds.OpenCPI2}[d.IntN(3)]
	p.window, p.sealed, p.checksum, p.mtu = 0, false, false, 1472
	for i := range p.links {
		l, may := &p.links[i], p.kind.Faults(i)
		l.HoldBack = 0
		if !may.Loss {
			l.Loss = 0
			l.Rate = 0
		}
		if !may.Reorder {
			l.Reorder = 0
		}
	}
}

func (p plan) String() string {
	s := fmt.Sprintf("%s, mtu %d, window %d", p.kind, p.mtu, p.window)
	if p.sealed {
		s += ", sealed"
	}
	if p.checksum {
		s += ", with checksums"
	}
	for i := range p.links {
		s += fmt.Sprintf("\n\t   node %d: link %s; sends %v", i, worlds.Describe(p.links[i]), p.loads[i])
		if p.still[i].to > 0 {
			s += fmt.Sprintf("; stands still from %v to %v", p.still[i].from, p.still[i].to)
		}
		if p.down[i].to > 0 {
			s += fmt.Sprintf("; link down from %v to %v", p.down[i].from, p.down[i].to)
		}
		if p.restart[i] > 0 {
			s += fmt.Sprintf("; restarts after %v for %v, crash %v", p.restart[i], p.away, p.crash)
		}
	}
	return s
}

// world is a plan that runs.
type world struct {
	plan
	truth *ledger
	net   *simnet.Network
	addrs [2]transport.Addr
	nodes [2]*node
	loads sync.WaitGroup
}

type node struct {
	mu   sync.Mutex
	life int
	e    *dgrdma.Endpoint
	c    *dgrdma.Conn
	wire *wire
}

// run carries out the plan.
func run(t *testing.T, p plan) *ledger {
	var truth *ledger
	synctest.Test(t, func(t *testing.T) {
		w := &world{plan: p, truth: newLedger(), net: simnet.New(p.seed), addrs: [2]transport.Addr{simnet.Addr(1), simnet.Addr(2)}, nodes: [2]*node{{}, {}}}
		truth = w.truth
		truth.sealed = p.sealed
		defer w.net.Close()
		dice := rand.New(rand.NewPCG(p.seed, 9))
		for i := range w.addrs {
			w.link(i, rand.New(rand.NewPCG(p.seed, uint64(60+i)))) // two endpoints send at the same time
		}
		for i := range w.nodes {
			w.start(t, i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), p.length)
		defer cancel()
		for i := range w.nodes {
			w.loads.Go(func() { w.send(ctx, i) })
			if p.restart[i] > 0 {
				w.loads.Go(func() { w.restarts(t, i) })
			}
		}
		w.loads.Wait()
		time.Sleep(time.Duration(dice.IntN(3)) * 400 * time.Millisecond)
		for i := range w.nodes {
			w.nodes[i].e.Close()
			time.Sleep(time.Duration(dice.IntN(2)) * time.Second)
		}
	})
	return truth
}

// link sets a direction, with what happens before the point of capture in the middle.
func (w *world) link(from int, dice *rand.Rand) {
	l := w.links[from]
	l.Script = func(_ int, b []byte) (v simnet.Verdict) {
		n := numberOf(b)
		if w.down[from].left(w.truth.now()) > 0 || dice.Float64() < w.before.loss {
			return simnet.Drop()
		}
		w.truth.crosses(n, b[:len(b)-tagSize])
		if dice.Float64() < w.before.double {
			w.truth.crosses(n, b[:len(b)-tagSize])
			v.Copies = 1
		}
		return v
	}
	w.net.Link(w.addrs[from], w.addrs[1-from], l)
}

func (w *world) nodeAt(a transport.Addr) int {
	if a == w.addrs[0] {
		return 0
	}
	return 1
}

func (w *world) start(t *testing.T, i int) {
	n := w.nodes[i]
	memory, err := dgrdma.NewRegion(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	wire := &wire{Conn: w.net.Attach(w.addrs[i], simnet.Config{MTU: w.mtu + tagSize, Headroom: -1}), w: w, node: i, life: n.life}
	lives := rand.New(rand.NewPCG(w.seed, uint64(20+2*n.life+i)))
	profile := w.kind.Profile(i, false)
	cfg := &dgrdma.Config{Profile: &profile, ID: frame.EndpointID(1 + i), Memory: memory, Entropy: lives.Uint32, Window: w.window, Checksum: w.checksum, GiveUp: 5 * time.Second}
	if w.sealed {
		cfg.Keys = &seal.Ring{All: &seal.Key{1, 2, 3}}
	}
	e, err := dgrdma.New(wire, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.Connect(dgrdma.Peer{ID: frame.EndpointID(2 - i), Addr: w.addrs[1-i], Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.e, n.c, n.wire = e, c, wire
	n.life++
}

// restarts ends a node and begins it again; one that crashes says nothing.
func (w *world) restarts(t *testing.T, i int) {
	n := w.nodes[i]
	time.Sleep(w.restart[i])
	if w.crash {
		n.wire.Close()
	}
	n.e.Close()
	time.Sleep(w.away)
	w.start(t, i)
}

// send posts the load of a node. What fails is not sent again.
func (w *world) send(ctx context.Context, i int) {
	l := w.plan.loads[i]
	dice := worlds.NewDice(w.seed, uint64(40+i))
	n := w.nodes[i]
	var open atomic.Int64
	room := make(chan struct{}, max(l.depth, 1))
	for k := range l.transactions {
		data := worlds.Table[:dice.Between(l.least, l.most)]
		t := &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 4096, Bytes: data}}, Completion: dgrdma.Word(8, uint32(k+1))}
		frames := (len(data) + w.mtu - 1) / w.mtu
		t.Done = func(*dgrdma.Transaction, error) {
			<-room
			open.Add(int64(-frames))
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		c := n.c
		n.mu.Unlock()
		w.truth.waited[i] = max(w.truth.waited[i], int(open.Add(int64(frames))))
		if c.Post(t) != nil {
			t.Done(t, nil)
			time.Sleep(100 * time.Millisecond)
		}
		if l.every > 0 {
			time.Sleep(l.every)
		}
	}
	for range cap(room) {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

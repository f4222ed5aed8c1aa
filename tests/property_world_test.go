package tests

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// propertyWorld is one run of a schedule.
type propertyWorld struct {
	t     *testing.T
	plan  *propertyPlan
	dice  worlds.Dice
	net   *simnet.Network
	nodes []*propertyNode
	flows []*propertyFlow
	began time.Time
	dir   string // of the recording, if there is one

	mu     sync.Mutex // guards all below, and everything reachable
	txs    []*propertyTx
	owners [][]*propertyPlace // by node and granule
	places [][]*propertyPlace
	fails  []string
	log    io.Writer
	ending bool
	stalls propertyStalls
	writer sync.WaitGroup
}

type propertyNode struct {
	index  int
	id     frame.EndpointID
	addr   transport.Addr
	wire   *simnet.Conn
	ep     *dgrdma.Endpoint
	memory *propertyMemory
	life   int
	up     bool
	over   []bool // by life: Close has returned
	conns  []*dgrdma.Conn
	size   int
	pcap   io.Writer
}

// propertyFlow is a sequence of transactions in progress.
type propertyFlow struct {
	index   int
	plan    *propertyFlowPlan
	places  []*propertyPlace
	started bool
	next    int
	last    uint32 // transaction
	pending int
	retry   *propertyTx // was refused by Post
}

func newPropertyWorld(t *testing.T, p *propertyPlan, dir string) *propertyWorld {
	w := &propertyWorld{
		t: t, plan: p, dice: worlds.NewDice(p.seed, 1), net: simnet.New(p.seed), began: time.Now(), dir: dir,
		owners: make([][]*propertyPlace, p.nodes), places: make([][]*propertyPlace, p.nodes),
	}
	if dir != "" {
		w.log = w.create("events.log")
	}
	for i := range p.nodes {
		n := &propertyNode{
			index: i, id: frame.EndpointID(10 + i), addr: simnet.Addr(uint32(1 + i)),
			life: -1, conns: make([]*dgrdma.Conn, p.nodes), size: 16,
		}
		if dir != "" {
			n.pcap = w.create(fmt.Sprintf("node%d.pcap", i))
		}
		w.nodes = append(w.nodes, n)
	}
	for i := range p.flows {
		w.layOut(&propertyFlow{index: i, plan: &p.flows[i]})
	}
	for i := range p.nodes {
		for j := range p.nodes {
			if p.joined(i, j) {
				// And last ones, of which one must succeed: the first may learn of a restart.
				w.layOut(&propertyFlow{index: len(w.flows), plan: &propertyFlowPlan{
					from: i, to: j, count: 2, depth: 1, segments: []int{33}, completion: true,
				}})
			}
		}
	}
	for route, l := range p.links {
		w.link(w.nodes[route[0]], w.nodes[route[1]], l)
	}
	return w
}

// link changes what the network is like from one node to another.
func (w *propertyWorld) link(from, to *propertyNode, l simnet.Link) {
	l.Damage = w.plan.damage()
	w.net.Link(from.addr, to.addr, l)
}

func (w *propertyWorld) create(name string) io.Writer {
	f, err := os.Create(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { f.Close() })
	return f
}

// layOut finds room for a flow in the receiver's memory.
func (w *propertyWorld) layOut(f *propertyFlow) {
	w.flows = append(w.flows, f)
	n := f.plan.count
	if f.plan.reuse {
		n = 1
	}
	to := w.nodes[f.plan.to]
	for range n {
		p := &propertyPlace{node: to.index, completion: frame.NoCompletion, lengths: f.plan.segments}
		take := func(n int) uint32 {
			at, shift := to.size, 0
			if f.plan.unaligned {
				shift = w.dice.IntN(propertyGranule)
			}
			to.size += (shift + n + 2*propertyGranule) &^ (propertyGranule - 1)
			for len(w.owners[to.index])*propertyGranule < to.size {
				w.owners[to.index] = append(w.owners[to.index], nil)
			}
			for g := at / propertyGranule; g < to.size/propertyGranule; g++ {
				w.owners[to.index][g] = p
			}
			return uint32(at + shift)
		}
		if f.plan.completion {
			p.completion = take(4)
		}
		for _, n := range p.lengths {
			p.segments = append(p.segments, take(n))
			p.total += n
		}
		w.places[to.index] = append(w.places[to.index], p)
		f.places = append(f.places, p)
	}
}

func (w *propertyWorld) failf(format string, args ...any) {
	if len(w.fails) < 20 {
		w.fails = append(w.fails, fmt.Sprintf("%v ", time.Since(w.began))+fmt.Sprintf(format, args...))
	}
	w.logf("FAILED: "+format, args...)
}

// logf writes to the event log, if there is one.
func (w *propertyWorld) logf(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%v ", time.Since(w.began))
		fmt.Fprintf(w.log, format+"\n", args...)
	}
}

func (w *propertyWorld) lockedLogf(format string, args ...any) {
	if w.log != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logf(format, args...)
	}
}

// start begins a life of a node.
func (w *propertyWorld) start(n *propertyNode) {
	np := &w.plan.each[n.index]
	r, err := dgrdma.NewRegion(n.size)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	n.life++
	n.up = true
	n.over = append(n.over, false)
	n.memory = &propertyMemory{Region: r, w: w, node: n.index, life: n.life}
	w.logf("node %d: life %d begins", n.index, n.life)
	w.mu.Unlock()
	n.wire = w.net.Attach(n.addr, simnet.Config{MTU: w.plan.mtu, Poison: np.poison, RecvQueue: np.recvQueue})
	var tc transport.Conn = n.wire
	if n.pcap != nil {
		c, err := tap.New(tc, n.pcap, tap.Options{})
		if err != nil {
			w.t.Fatal(err)
		}
		tc = c
		n.pcap = propertySecondLife{n.pcap}
	}
	prof := w.plan.profile(n.index)
	cfg := &dgrdma.Config{
		ID: n.id, Memory: n.memory, Profile: &prof, Window: np.window, MTU: np.mtu, Queue: np.queue,
		GiveUp: w.plan.giveUp, Coalesce: np.coalesce, OpenIncoming: np.open, Entropy: w.entropy(n), AcceptAny: np.accept,
	}
	cfg.Checksum = w.plan.checks(n.index)
	if w.plan.sealed() {
		cfg.Keys = &seal.Ring{All: &seal.Key{7}}
	}
	if n.life == 0 || np.repeatFirst {
		cfg.FirstFrame = np.first
	}
	if w.log != nil {
		cfg.OnEvent = func(e dgrdma.Event) {
			w.lockedLogf("node %d: event %v, %v, reason %v, transaction id %d, %v", n.index, e.Kind, e.Peer, e.Reason, e.Txn, e.Err)
		}
	}
	ep, err := dgrdma.New(tc, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	n.ep = ep
	for _, o := range w.nodes {
		if w.plan.joined(n.index, o.index) && (!np.accept || w.begun(n, o)) {
			w.connect(n, o)
		}
	}
}

// begun reports whether some flow from one node to another has started.
func (w *propertyWorld) begun(from, to *propertyNode) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.flows {
		if f.started && f.plan.from == from.index && f.plan.to == to.index {
			return true
		}
	}
	return false
}

// propertySecondLife swallows the file header of a capture that goes on.
type propertySecondLife struct{ w io.Writer }

func (s propertySecondLife) Write(b []byte) (int, error) {
	if len(b) == 24 {
		return len(b), nil
	}
	return s.w.Write(b)
}

func (w *propertyWorld) entropy(n *propertyNode) func() uint32 {
	return worlds.NewDice(w.plan.seed, uint64(100+n.index*1000+n.life)).Uint32
}

func (w *propertyWorld) connect(n, to *propertyNode) {
	c, err := n.ep.Connect(dgrdma.Peer{ID: to.id, Addr: to.addr, Size: uint64(to.size)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	n.conns[to.index] = c
	w.mu.Unlock()
}

// stop ends a life of a node.
func (w *propertyWorld) stop(n *propertyNode, crash bool) {
	w.mu.Lock()
	n.up = false
	w.logf("node %d: life %d ends, crash %v", n.index, n.life, crash)
	w.mu.Unlock()
	if crash {
		n.wire.Close()
	}
	if err := n.ep.Close(); err != nil {
		w.failLocked("node %d: Close: %v", n.index, err)
	}
	w.mu.Lock()
	n.over[n.life] = true
	w.mu.Unlock()
}

func (w *propertyWorld) failLocked(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failf(format, args...)
}

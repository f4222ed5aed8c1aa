package round

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/oracle"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/lossy"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// node is an endpoint through all its lives.
type node struct {
	w      *world
	index  int
	plan   *Node
	book   *oracle.Book
	recent recent

	mu      sync.Mutex
	up      bool
	life    int
	ended   map[int]bool // lives of which Close has returned
	gate    *gate
	ep      *dgrdma.Endpoint
	host    *link.Host
	letters *letters
	conns   map[int]known
	seen    dgrdma.Stats // what was counted of the present life
	behind  *lossy.Conn  // changes frames behind the checksum of its wire
	changed uint64       // what was counted of those
	turns   sync.WaitGroup
	stop    chan struct{}
}

// known is a connection, and a number that no earlier one has.
type known struct {
	*dgrdma.Conn
	epoch uint64
}

// linkMemory is what a node's links share.
const linkMemory = 4 << 20

func newNode(w *world, index int) *node {
	n := &node{w: w, index: index, plan: &w.plan.Nodes[index], ended: make(map[int]bool)}
	n.book = oracle.NewBook(fmt.Sprintf("node %d", index), guest, w.violate)
	return n
}

// hosts reports whether there are links or letters.
func (p *Plan) hosts() bool { return len(p.Links)+len(p.Letters) > 0 }

// start begins a life of the node.
func (n *node) start() error {
	w := n.w
	mem, err := n.book.Begin()
	if err != nil {
		return err
	}
	wire, err := w.g.attach(n.index, n.plan)
	if err != nil {
		return err
	}
	tapped, err := tap.New(wire, &n.recent, tap.Options{SnapLen: 256})
	if err != nil {
		return err
	}
	damaged := lossy.NewDamaging(tapped, w.plan.damage(), w.plan.Seed+uint64(n.index))
	g := newGate(damaged)
	n.mu.Lock()
	n.life++
	life := n.life
	n.mu.Unlock()
	ep, err := dgrdma.New(g, n.config(mem, life))
	if err != nil {
		return err
	}
	var host *link.Host
	var letters *letters
	if w.plan.hosts() {
		letters = newLetters(n)
		if _, err := ep.Serve(letters); err != nil {
			return err
		}
		if host, err = link.On(ep, linkMemory); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.gate, n.ep, n.host, n.letters, n.behind, n.changed = g, ep, host, letters, damaged, 0
	n.conns, n.seen, n.stop, n.up = make(map[int]known), dgrdma.Stats{}, make(chan struct{}), true
	if n.plan.Manual {
		n.turns.Go(func() { drive(ep, n.stop) })
	}
	n.mu.Unlock()
	for _, to := range w.nodes {
		if Joined(n.index, to.index) && !n.plan.Accept {
			n.conn(to)
		}
	}
	if host != nil {
		n.listen(host) // behind that: who is learned because of it may not write into the memory
	}
	return nil
}

func (n *node) config(mem *oracle.Memory, life int) *dgrdma.Config {
	p := n.plan
	prof := n.w.plan.profile(n.index)
	cfg := &dgrdma.Config{
		ID: idOf(n.index), Memory: mem, Profile: &prof, Window: p.Window, MTU: p.MTU, Queue: p.Queue, GiveUp: n.w.plan.GiveUp,
		Coalesce: p.Coalesce, AcceptAny: p.Accept, Manual: p.Manual, NoHelp: p.NoHelp, Entropy: entropy(n.w.plan.Seed, n.index, life),
		Keys: n.w.plan.keys(n.index), Checksum: n.w.plan.damage() > 0,
	}
	if life == 1 || p.RepeatFirst {
		cfg.FirstFrame = p.First
	}
	return cfg
}

func entropy(seed uint64, node, life int) func() uint32 {
	return worlds.NewDice(seed, uint64(rollEntropy+1000*node)<<20|uint64(life)).Uint32
}

// drive turns an endpoint that has no goroutines.
func drive(ep *dgrdma.Endpoint, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := ep.Progress(10 * time.Millisecond); err != nil {
			return
		}
	}
}

// conn returns the connection to another node, and makes it if it is missing.
func (n *node) conn(to *node) (known, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.up {
		return known{}, false
	}
	if c, ok := n.conns[to.index]; ok {
		return c, true
	}
	id, addr := idOf(to.index), n.w.g.addr(to.index)
	c, err := n.ep.Connect(dgrdma.Peer{ID: id, Addr: addr})
	if errors.Is(err, dgrdma.ErrPeerExists) { // a link was dialed
		for _, x := range n.ep.Conns() {
			if name := x.Name(); name.ID == id && name.Addr == addr {
				c, err = x, nil
			}
		}
	}
	if err != nil {
		if !errors.Is(err, dgrdma.ErrClosed) {
			n.w.violatef("node %d: connect to %d: %v", n.index, to.index, err)
		}
		return known{}, false
	}
	k := known{c, n.w.epochs.Add(1)}
	n.conns[to.index] = k
	return k, true
}

// drop closes the connection to another node.
func (n *node) drop(to *node) {
	n.mu.Lock()
	c, ok := n.conns[to.index]
	delete(n.conns, to.index)
	n.mu.Unlock()
	if ok {
		c.Close()
	}
}

// reset begins a connection anew.
func (n *node) reset(to *node) {
	if c, ok := n.conn(to); ok {
		if err := c.Reset(0); err != nil && !errors.Is(err, dgrdma.ErrClosed) {
			n.w.violatef("node %d: reset of %d: %v", n.index, to.index, err)
		}
	}
}

// finish ends a life of the node: by a crash, or with a goodbye, or without waiting for
// anything.
func (n *node) finish(crash, politely bool) {
	n.mu.Lock()
	if !n.up {
		n.mu.Unlock()
		return
	}
	n.up = false
	g, ep, host, life := n.gate, n.ep, n.host, n.life
	n.mu.Unlock()
	g.shut(false)
	if politely {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		ep.Shutdown(ctx) // what it says of what was not acknowledged in time is judged by who posted
		cancel()
	}
	if crash {
		g.Close()
	}
	if host != nil {
		host.Close()
	}
	if err := ep.Close(); err != nil {
		n.w.violatef("node %d: Close: %v", n.index, err)
	}
	close(n.stop)
	n.turns.Wait()
	n.mu.Lock()
	n.ended[life] = true
	n.mu.Unlock()
	n.counts(ep)
}

// hasEnded reports whether Close of that life has returned.
func (n *node) hasEnded(life int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended[life]
}

// lives returns which life it is.
func (n *node) lives() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life
}

// changedBehind is the fault that the checksum of a wire does not see.
const changedBehind = "changed behind the checksum"

// counts adds what the endpoint did since the last time.
func (n *node) counts(ep *dgrdma.Endpoint) {
	s := ep.Stats()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ep != ep {
		return // counted when it ended
	}
	before, c := n.seen, n.w.counts
	n.seen = s
	c.FramesSent.Add(s.FramesSent - before.FramesSent)
	c.FramesCame.Add(s.FramesReceived - before.FramesReceived)
	c.Again.Add(s.RetransmitsFast + s.RetransmitsTimed - before.RetransmitsFast - before.RetransmitsTimed)
	c.Copies.Add(s.Duplicates - before.Duplicates)
	// A socket that is closed does not tell any more.
	n.seen.Transport.KernelDrops = max(s.Transport.KernelDrops, before.Transport.KernelDrops)
	n.seen.Transport.SendDrops = max(s.Transport.SendDrops, before.Transport.SendDrops)
	c.fault("kernel drops", n.seen.Transport.KernelDrops-before.Transport.KernelDrops)
	c.fault("send drops", n.seen.Transport.SendDrops-before.Transport.SendDrops)
	changed := n.behind.Damaged()
	c.fault(changedBehind, changed-n.changed)
	n.changed = changed
}

package tests

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Our side has id and address 1, the peer 2.
var (
	rigOurs = simnet.Addr(1)
	rigPeer = simnet.Addr(2)
)

const (
	rigLatency = 50 * time.Microsecond
	rigMemory  = 1 << 20
	rigFlag    = 0x40  // completion word
	rigData    = 0x400 // where slots begin
)

// rigDouble is what the doubles have in common.
type rigDouble interface {
	Violations() []string
	Counters() peers.Counters
	Completions() []peers.Completion
	Bytes(addr, n int) []byte
	Close()
}

// rig is an endpoint of ours and one double on a network in memory, in virtual
// time.
type rig struct {
	t      *testing.T
	random func() uint32 // for our first ids
	net    *simnet.Network
	there  transport.Conn
	ep     *dgrdma.Endpoint
	conn   *dgrdma.Conn
	region *dgrdma.Region
	double rigDouble
	txns   int // posted so far

	mu     sync.Mutex
	events []dgrdma.Event
}

// rigTest runs a test in a bubble, with the seed it prints.
func rigTest(t *testing.T, seed uint64, f func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Logf("seed %d", seed)
		r := &rig{t: t, net: simnet.New(seed), random: rand.New(rand.NewPCG(seed, 1)).Uint32}
		defer r.net.Close()
		r.there = r.net.Attach(rigPeer, simnet.Config{MTU: 9000})
		r.link(simnet.Link{}, simnet.Link{})
		defer r.end(time.Now())
		f(t, r)
	})
}

func (r *rig) end(began time.Time) {
	r.t.Logf("took %v", time.Since(began))
	if r.ep != nil {
		r.ep.Close()
	}
	if r.double != nil {
		r.double.Close()
		for _, v := range r.double.Violations() {
			r.t.Errorf("violation: %s", v)
		}
	}
}

// link sets the faults of both directions.
func (r *rig) link(out, in simnet.Link) {
	out.Latency, in.Latency = rigLatency, rigLatency+time.Microsecond
	r.net.Link(rigOurs, rigPeer, out)
	r.net.Link(rigPeer, rigOurs, in)
}

func (r *rig) calm() { r.link(simnet.Link{}, simnet.Link{}) }

func (r *rig) fpga(cfg peers.FPGAConfig) *peers.FPGA {
	d := peers.NewFPGA(r.there, rigOurs, cfg)
	r.double = d
	return d
}

func (r *rig) dg1(cfg peers.DG1Config) *peers.DG1 {
	d := peers.NewDG1(r.there, rigOurs, cfg)
	r.double = d
	return d
}

func (r *rig) legacy(cfg peers.DG1Config) *peers.DG1 {
	d := peers.NewLegacy(r.there, rigOurs, cfg)
	r.double = d
	return d
}

func (r *rig) dg2(cfg peers.DG2Config) *peers.DG2 {
	d := peers.NewDG2(r.there, rigOurs, cfg)
	r.double = d
	return d
}

// dial starts our endpoint and connects it.
func (r *rig) dial(p dgrdma.Profile, cfg dgrdma.Config) {
	r.t.Helper()
	wire := simnet.Config{MTU: 1500, Poison: true}
	if cfg.MTU != 0 {
		wire.MTU = cfg.MTU
	}
	if cfg.Memory == nil {
		r.region, _ = dgrdma.NewRegion(rigMemory)
		cfg.Memory = r.region
	}
	if cfg.Entropy == nil {
		cfg.Entropy = r.random
	}
	cfg.ID = 1
	cfg.OnEvent = func(e dgrdma.Event) {
		r.mu.Lock()
		r.events = append(r.events, e)
		r.mu.Unlock()
	}
	ep, err := dgrdma.New(r.net.Attach(rigOurs, wire), &cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.ep = ep
	if r.conn, err = ep.Connect(dgrdma.Peer{ID: 2, Addr: rigPeer, Size: rigMemory, Profile: &p}); err != nil {
		r.t.Fatal(err)
	}
}

// happened counts events of a kind.
func (r *rig) happened(k dgrdma.EventKind) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// rigPattern is the data of transaction i, as in the captures.
func rigPattern(i, n int) []byte {
	b := make([]byte, n)
	for j := range b {
		b[j] = byte(31*i + 7*j + j>>8 + 1)
	}
	return b
}

// rigSlot is where slot s for data of n bytes begins.
func rigSlot(s, n int) uint32 { return uint32(rigData + s*((n+15)&^15)) }

// send posts n transactions of size bytes at once, each to a slot of its own,
// waits until all are done and compares the peer's memory.
func (r *rig) send(n, size int) {
	r.t.Helper()
	if int(rigSlot(n, size)) > rigMemory {
		r.t.Fatal("the memory is too small for this test")
	}
	results := make(chan error, n)
	began := time.Now()
	first := r.txns
	for s := range n {
		i := first + s
		tx := &dgrdma.Transaction{
			Completion: dgrdma.Word(rigFlag, uint32(i+1)),
			Done:       func(_ *dgrdma.Transaction, err error) { results <- err },
		}
		if size > 0 {
			tx.Segments = []dgrdma.Segment{{Addr: rigSlot(s, size), Bytes: rigPattern(i, size)}}
		}
		if err := r.conn.Post(tx); err != nil {
			r.t.Fatalf("post %d: %v", i, err)
		}
		r.txns++
	}
	for range n {
		select {
		case err := <-results:
			if err != nil {
				r.t.Fatalf("transaction failed after %v: %v; %+v", time.Since(began), err, r.conn.Stats())
			}
		case <-time.After(10 * time.Minute):
			r.t.Fatalf("stalled: %+v", r.conn.Stats())
		}
	}
	// The last frame may still be under way to a peer that acknowledges nothing.
	time.Sleep(10 * rigLatency)
	for s := range n {
		if got, want := r.double.Bytes(int(rigSlot(s, size)), size), rigPattern(first+s, size); !bytes.Equal(got, want) {
			r.t.Fatalf("memory of transaction %d differs", first+s)
		}
	}
}

// heard has the card acknowledge a first frame before anything can be lost:
// without that, it cannot be told from one that is stale (observation V2).
func (r *rig) heard() {
	r.t.Helper()
	r.calm()
	r.send(1, 64)
}

// completed checks that the peer completed every transaction once. inOrder:
// in the order in which they were posted.
func (r *rig) completed(inOrder bool) {
	r.t.Helper()
	seen := make(map[uint32]bool)
	list := r.double.Completions()
	for i, c := range list {
		if c.Addr != rigFlag || seen[c.Value] || c.Value == 0 || int(c.Value) > r.txns {
			r.t.Fatalf("completion %d: word %d at %#x", i, c.Value, c.Addr)
		}
		if inOrder && int(c.Value) != i+1 {
			r.t.Fatalf("completion %d has word %d", i, c.Value)
		}
		seen[c.Value] = true
	}
	if len(list) != r.txns {
		r.t.Fatalf("%d of %d transactions completed", len(list), r.txns)
	}
}

// await waits until the word at addr of our memory is value.
func (r *rig) await(addr, value uint32) {
	r.t.Helper()
	for range 100_000 {
		if r.region.Load32(addr) == value {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("word at %#x is %d, not %d: %+v", addr, r.region.Load32(addr), value, r.conn.Stats())
}

// holds checks our memory against the data of transaction i.
func (r *rig) holds(addr uint32, i, n int) {
	r.t.Helper()
	if !bytes.Equal(r.region.Bytes()[addr:int(addr)+n], rigPattern(i, n)) {
		r.t.Fatalf("our memory at %#x is not the data of transaction %d", addr, i)
	}
}

// rigLoss describes frames that are lost, of one direction.
type rigLoss struct {
	name string
	drop func(i int) bool
}

func rigLosses() []rigLoss {
	return []rigLoss{
		{"none", func(int) bool { return false }},
		{"every second", func(i int) bool { return i%2 == 1 }},
		{"every second, from the first", func(i int) bool { return i%2 == 0 }},
		{"three of four", func(i int) bool { return i%4 != 3 }},
		{"the first ten", func(i int) bool { return i < 10 }},
		{"half at random", func(i int) bool { return rand.New(rand.NewPCG(7, uint64(i))).IntN(2) == 0 }},
	}
}

func (l *rigLoss) link() simnet.Link {
	return simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
		if l.drop(i) {
			return simnet.Drop()
		}
		return simnet.Deliver()
	}}
}

// rigFrames records the headers of frames that enter a link.
type rigFrames struct {
	mu sync.Mutex
	rigSeen
}

type rigSeen struct {
	headers []frame.Header
	lengths []int
	msgs    []frame.Message
}

// seen returns what was recorded so far.
func (f *rigFrames) seen() rigSeen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return rigSeen{slices.Clone(f.headers), slices.Clone(f.lengths), slices.Clone(f.msgs)}
}

func (f *rigFrames) script(_ int, b []byte) simnet.Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := frame.Parse(b)
	if err != nil {
		panic(fmt.Sprint("a frame on the wire that does not parse: ", err))
	}
	f.headers = append(f.headers, p.Header)
	f.lengths = append(f.lengths, len(b))
	for c := p.Cursor(); c.Next(); {
		f.msgs = append(f.msgs, c.Msg)
	}
	return simnet.Deliver()
}

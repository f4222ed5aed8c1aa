package link

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Config is how a host is opened. The zero value is good.
type Config struct {
	// Memory is how many bytes all links share, for what they receive. 0 means
	// 64 MiB.
	Memory int
	// Endpoint is the endpoint's configuration. Its Memory belongs to the host,
	// and peers are learned from what they send once a port is listened on: who only
	// dials has but the peers that it dialed. OnEvent is called as usual. A queue of
	// 0 is as long as can be: links bound what they post.
	Endpoint dgrdma.Config
	// Open opens the endpoint. nil means dgrdma.Open with the host's URL.
	Open func(*dgrdma.Config) (*dgrdma.Endpoint, error)
}

const (
	defaultMemory = 64 << 20
	longestQueue  = 1 << 20
)

// Host is an endpoint whose memory is shared out to links.
type Host struct {
	ep      *dgrdma.Endpoint
	block   *block
	manual  bool
	onEvent func(dgrdma.Event)
	number  atomic.Uint32 // of the latest link
	roll    roll
	replies atomic.Int32 // letters that wait to be sent, of a kind that may be left out

	mu     sync.Mutex
	ports  map[string]*Listener
	beat   *time.Timer // looks after peers of whom nothing is heard
	closed bool
}

// hostMemory is what the endpoint sees; each peer has a view of its own.
type hostMemory struct{ h *Host }

func (m hostMemory) For(c *dgrdma.Conn) dgrdma.Memory {
	return &peer{host: m.h, conn: c, links: make(map[uint32]*Link), dialed: make(map[uint64]*Link)}
}
func (m hostMemory) Size() uint64 { return m.h.block.size() }
func (hostMemory) Admit(dgrdma.EndpointID, *dgrdma.Message) ([]byte, error) {
	return nil, errNotGranted
}
func (hostMemory) Complete(dgrdma.EndpointID, *dgrdma.Message) {}

// Open opens an endpoint, as [dgrdma.Open] does, for links.
func Open(localURL string, cfg *Config) (*Host, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Endpoint.Memory != nil {
		return nil, fmt.Errorf("link: open %s: the memory of the endpoint belongs to the host; set Config.Memory to its size", localURL)
	}
	if c.Memory == 0 {
		c.Memory = defaultMemory
	}
	b, err := newBlock(c.Memory)
	if err != nil {
		return nil, err
	}
	h := &Host{block: b, manual: c.Endpoint.Manual, onEvent: c.Endpoint.OnEvent, ports: make(map[string]*Listener)}
	var first [4]byte
	rand.Read(first[:])
	h.number.Store(binary.LittleEndian.Uint32(first[:]))
	e := c.Endpoint
	e.Memory, e.OnEvent = hostMemory{h}, h.event
	if e.Queue == 0 {
		e.Queue = longestQueue
	}
	open := c.Open
	if open == nil {
		open = func(e *dgrdma.Config) (*dgrdma.Endpoint, error) { return dgrdma.Open(localURL, e) }
	}
	// Events may come before we know the endpoint.
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ep, err = open(&e); err != nil {
		return nil, err
	}
	h.beat = time.AfterFunc(h.ep.GiveUp()/2, h.heartbeat)
	return h, nil
}

// Endpoint returns the host's endpoint.
func (h *Host) Endpoint() *dgrdma.Endpoint {
	if h.missing() {
		return nil
	}
	return h.ep
}

// URL returns the complete endpoint string that peers dial.
func (h *Host) URL() string {
	if h.missing() {
		return ""
	}
	return h.ep.URL()
}

// drive drives the endpoint of a host that was opened with Manual until something is
// there, or the context is done.
func (h *Host) drive(ctx context.Context, there func() bool, over <-chan struct{}) {
	if h.manual {
		var w dgrdma.Waiter
		w.Init()
		h.ep.Await(ctx, &w, there, over, nil)
	}
}

// event hears of peers that are gone.
func (h *Host) event(ev dgrdma.Event) {
	if ev.Conn != nil {
		p := ev.Conn.Memory().(*peer)
		switch {
		case ev.Kind == dgrdma.PeerDown:
			// Whatever of its writes is still on the way must not arrive.
			ev.Conn.Close()
			p.fail(ev.Err, everyLife)
		case ev.Kind == dgrdma.PeerRestarted && ev.Reason == 0:
			p.fail(&dgrdma.PeerError{ID: ev.Peer.ID, Addr: ev.Peer.Addr, Op: "link", Err: dgrdma.ErrPeerRestarted}, p.conn.Life())
		}
	}
	if h.onEvent != nil {
		h.onEvent(ev)
	}
}

// heartbeat posts something to every peer with links. Who only receives would
// not notice otherwise that nobody is there.
func (h *Host) heartbeat() {
	for _, c := range h.ep.Conns() {
		c.Memory().(*peer).beat()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.beat.Reset(h.ep.GiveUp() / 2)
	}
}

// Close ends all links at once, and the endpoint. What was sent and not
// acknowledged may be lost: close the links first.
func (h *Host) Close() error {
	if h.missing() {
		return ErrNil
	}
	return h.end(h.ep.Close)
}

// Shutdown waits until everything that was sent is acknowledged, or the context
// is done, and closes.
func (h *Host) Shutdown(ctx context.Context) error {
	if h.missing() {
		return ErrNil
	}
	return h.end(func() error { return h.ep.Shutdown(ctx) })
}

func (h *Host) end(how func() error) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return how()
	}
	h.closed = true
	h.beat.Stop()
	var ports []*Listener
	for _, l := range h.ports {
		ports = append(ports, l)
	}
	h.mu.Unlock()
	for _, l := range ports {
		l.Close()
	}
	conns := h.ep.Conns()
	err := how()
	for _, c := range conns {
		c.Memory().(*peer).fail(ErrClosed, everyLife)
	}
	return err
}

// peer is a connection with what links need of it, and the memory as its peer
// sees it.
type peer struct {
	host       *Host
	conn       *dgrdma.Conn
	grants     grants
	wordAsData [4]byte // where words go that come as data; of who receives
	mail       mail
	writes     atomic.Bool  // letters came from it: it is one of us
	dialing    atomic.Int32 // Dials that wait for it
	waiting    atomic.Int32 // links of its that are not accepted yet

	mu     sync.Mutex
	links  map[uint32]*Link // by our number
	dialed map[uint64]*Link // by the peer's attempt: those that it dialed
	pulse  struct {
		t    dgrdma.Transaction
		busy bool
	}
}

func (p *peer) String() string { return p.conn.Name().String() }

// newNumber returns a number for a link.
func (h *Host) newNumber() (n uint32) {
	for n == 0 {
		n = h.number.Add(1)
	}
	return n
}

// add makes a link known by its number.
func (p *peer) add(l *Link) {
	p.mu.Lock()
	p.links[l.number] = l
	if l.theirs != 0 {
		p.dialed[l.attempt] = l
	}
	p.mu.Unlock()
	p.host.roll.enter(l)
}

func (p *peer) link(number uint32) *Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links[number]
}

func (p *peer) all() []*Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Link, 0, len(p.links))
	for _, l := range p.links {
		all = append(all, l)
	}
	return all
}

// everyLife stands for no life that links could be of.
const everyLife = 0

// fail ends all links but those of one life: nothing can come from the others
// any more.
func (p *peer) fail(err error, but uint32) {
	for _, l := range p.all() {
		if l.life != but {
			l.fail(err)
			l.orphan()
		}
	}
}

func (p *peer) beat() {
	if !p.conn.Profile().Session {
		return // other kinds may take it amiss
	}
	p.mu.Lock()
	idle := len(p.links) == 0 || p.pulse.busy
	p.pulse.busy = p.pulse.busy || !idle
	p.mu.Unlock()
	if idle {
		return
	}
	p.pulse.t = dgrdma.Transaction{Done: p.beaten}
	if err := p.conn.Post(&p.pulse.t); err != nil {
		p.beaten(nil, err)
	}
}

func (p *peer) beaten(_ *dgrdma.Transaction, err error) {
	p.mu.Lock()
	p.pulse.busy = false
	p.mu.Unlock()
	// Not every end of a connection is an event: its transport may have failed.
	if err != nil && !errors.Is(err, dgrdma.ErrQueueFull) {
		p.fail(err, p.conn.Life())
	}
}

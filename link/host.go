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
	"github.com/dgrdma/dgrdma/endpoint/space"
)

// Config is how a host is opened. The zero value is good.
type Config struct {
	// Memory is how many bytes all links share, for what they receive. One link
	// takes half of it at most, unless its listener set Options.Buffers and Size: 64
	// buffers of 64 KiB, the defaults, need a little more than 8 MiB. 0 means 72 MiB.
	//
	// As much again, and at least 32 MiB, is for messages that links send: from when a buffer
	// is handed out until its message is acknowledged. It is allocated as it is needed, by the
	// length of what is sent. A peer gets no more of it than it leaves for others; a producer
	// for which there is none waits.
	Memory int
	// Endpoint is the endpoint's configuration. It has no Memory, and peers are
	// learned from what they send once a port is listened on: who only dials has but
	// the peers that it dialed.
	Endpoint dgrdma.Config
	// Open opens the endpoint. nil means dgrdma.Open with the host's URL.
	Open func(*dgrdma.Config) (*dgrdma.Endpoint, error)
}

// defaultMemory has room for two streams of package stream, so that they may follow each
// other: the memory of one is free when its receiver has ended it, which its sender does not
// wait for.
const defaultMemory = 72 << 20

// Host makes links over an endpoint, of whose addresses it has a window. It is one of the
// endpoint's services.
type Host struct {
	ep      *dgrdma.Endpoint
	own     bool   // the endpoint is the host's, and ends with it
	size    uint64 // of the window
	block   *space.Block
	manual  bool
	number  atomic.Uint32 // of the latest link
	roll    roll
	replies atomic.Int32 // letters that wait to be sent, of a kind that may be left out
	full    full
	budget  budget  // of what links send
	endings endings // of links that are over here

	mu       sync.Mutex
	ports    map[string]*Listener
	beat     *time.Timer // looks after peers of whom nothing is heard
	welcomes bool        // somebody listened: peers are learned that dial
	closed   bool
}

// ServiceName is what peers know hosts by.
const ServiceName = "link"

// service is the host as its endpoint sees it.
type service struct{ *Host }

// Name implements [dgrdma.Service].
func (service) Name() string { return ServiceName }

// Size implements [dgrdma.Service].
func (s service) Size() uint64 { return s.size }

// Meet implements [dgrdma.Service].
func (s service) Meet(ch *dgrdma.Channel) dgrdma.Handler {
	return &peer{host: s.Host, conn: ch.Conn(), channel: ch, links: make(map[uint32]*Link), dialed: make(map[uint64]*Link),
		ended: make(map[uint32]*endedLink), endedByAttempt: make(map[uint64]*endedLink)}
}

// Open opens an endpoint, as [dgrdma.Open] does, for links and nothing else.
func Open(localURL string, cfg *Config) (*Host, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Endpoint.Memory != nil {
		return nil, fmt.Errorf("link: open %s: the endpoint has no memory but that of its links; open it by dgrdma.Open, and have links on it by On", localURL)
	}
	e := c.Endpoint
	e.Memory = &dgrdma.Region{}
	open := c.Open
	if open == nil {
		open = func(e *dgrdma.Config) (*dgrdma.Endpoint, error) { return dgrdma.Open(localURL, e) }
	}
	ep, err := open(&e)
	if err != nil {
		return nil, err
	}
	h, err := On(ep, c.Memory)
	if err != nil {
		ep.Close()
		return nil, err
	}
	h.own = true
	return h, nil
}

// On makes links over an endpoint that may have memory and other services besides.
// memory is what Config.Memory is: how many bytes all links share, for what they
// receive; 0 means 72 MiB. The endpoint stays when the host is closed. Once a port is
// listened on, and until the host is closed, everybody may dial: whom the endpoint does
// not accept otherwise may not write into its memory.
func On(ep *dgrdma.Endpoint, memory int) (*Host, error) {
	if memory == 0 {
		memory = defaultMemory
	}
	if err := checkMemory(memory); err != nil {
		return nil, err
	}
	h := &Host{ep: ep, size: uint64(memory), manual: ep.Manual(), ports: make(map[string]*Listener)}
	h.budget.init(h)
	var first [4]byte
	rand.Read(first[:])
	h.number.Store(binary.LittleEndian.Uint32(first[:]))
	h.mu.Lock() // letters may come before we know where our window is
	defer h.mu.Unlock()
	base, err := ep.Serve(service{h})
	if err != nil {
		return nil, err // says "serve link"
	}
	h.block = space.NewBlock(uint64(base)+reserved, memory-reserved)
	h.beat = time.AfterFunc(ep.GiveUp()/2, h.heartbeat)
	return h, nil
}

// Endpoint returns the host's endpoint.
func (h *Host) Endpoint() *dgrdma.Endpoint {
	return h.ep
}

// String returns the endpoint string, or else where the endpoint is.
func (h *Host) String() string { return h.Endpoint().String() }

// URL returns the complete endpoint string that peers dial.
func (h *Host) URL() string {
	return h.ep.URL()
}

// drive drives the endpoint of a host that was opened with Manual until something is
// there, or the context is done.
func (h *Host) drive(ctx context.Context, there func() bool, over <-chan struct{}) {
	if h.manual {
		var w dgrdma.Waiter // which nobody rouses
		h.ep.Await(ctx, &w, there, over, nil)
	}
}

// peerOf returns what the host knows of a connection; nil: it is another endpoint's.
func (h *Host) peerOf(c *dgrdma.Conn) *peer {
	if ch := c.Channel(ServiceName); ch != nil {
		if p := ch.Handler().(*peer); p.host == h {
			return p
		}
	}
	return nil
}

// heartbeat posts something to every peer with links. Who only receives would
// not notice otherwise that nobody is there. [dgrdma.Config.KeepAlive] does not do for that: it is
// of an endpoint, which may be the program's, and asks all peers, those without links too. And what
// is posted fails also where a life has ended without an event, as when the transport fails.
func (h *Host) heartbeat() {
	for _, c := range h.ep.Conns() {
		h.peerOf(c).beat()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.beat.Reset(h.ep.GiveUp() / 2)
	}
}

// Close ends all links at once, and the endpoint if it is the host's own. What was sent
// and not acknowledged may be lost: close the links first. Then each peer is told of the end
// of one link by which nothing is under way, with an [*AbortError], if no frame is lost: of
// others it hears when it gives this host up. Likewise peers are told once that what they sent
// last has arrived: if they wait for that, as in Close of a link, Shutdown is what to end with.
func (h *Host) Close() error {
	return h.end(func() {}, func() error {
		if !h.own {
			return nil
		}
		return h.ep.Close()
	})
}

// Shutdown waits until everything that was sent is acknowledged, or the context
// is done, and closes. Peers are told of the end of links by which nothing is under way. For
// those who were told before, by Close or Finish, it waits a second at most until they have
// ended their links as well: what they say later nobody would acknowledge, and they would
// wait for that.
func (h *Host) Shutdown(ctx context.Context) error {
	return h.end(func() { h.part(ctx) }, func() error {
		if !h.own {
			return h.closeLinks(ctx)
		}
		return h.ep.Shutdown(ctx)
	})
}

// partingWait is how long Shutdown waits for peers to end links. Arbitrary: short for a person,
// long beside the time that a program takes that reads an end of file.
const partingWait = time.Second

// part waits until the peers were told of the end of links, and have ended them too.
func (h *Host) part(ctx context.Context) {
	if !h.own {
		return // the endpoint stays, and acknowledges
	}
	var told, parted []<-chan struct{}
	for _, c := range h.ep.Conns() {
		p := h.peerOf(c)
		for _, l := range p.all() {
			if l.leaving.Load() || l.ending.Load() {
				told, parted = append(told, l.told), append(parted, l.parted)
			}
		}
		for _, e := range p.allEnded() {
			told, parted = append(told, e.told), append(parted, e.parted)
		}
	}
	for _, c := range told {
		h.awaits(ctx, c)
	}
	ctx, cancel := context.WithTimeout(ctx, partingWait)
	defer cancel()
	for _, c := range parted {
		h.awaits(ctx, c)
	}
}

// awaits waits until something has happened, no longer than the context and the endpoint last.
func (h *Host) awaits(ctx context.Context, happened <-chan struct{}) {
	h.drive(ctx, func() bool { return false }, happened)
	select {
	case <-happened:
	case <-h.ep.Done():
	case <-ctx.Done():
	}
}

// closeLinks closes them all, as far as the context allows.
func (h *Host) closeLinks(ctx context.Context) error {
	var all []error
	for _, c := range h.ep.Conns() {
		for _, l := range h.peerOf(c).all() {
			all = append(all, l.CloseContext(ctx))
		}
	}
	return errors.Join(all...)
}

func (h *Host) end(part func(), how func() error) error {
	h.mu.Lock()
	h.closed = true
	if h.welcomes {
		h.welcomes = false
		h.ep.Welcome(false)
	}
	h.beat.Stop()
	var ports []*Listener
	for _, l := range h.ports {
		ports = append(ports, l)
	}
	h.mu.Unlock()
	for _, l := range ports {
		l.Close()
	}
	part()
	conns := h.ep.Conns()
	if h.own {
		for _, c := range conns {
			h.peerOf(c).sayGoodbye() // as far as letters leave before the endpoint ends
		}
	}
	err := how()
	for _, c := range conns {
		if p := h.peerOf(c); h.own {
			p.fail(ErrClosed, everyLife)
		} else {
			p.dismiss()
		}
	}
	return err
}

// open returns ErrClosed once the host was closed.
func (h *Host) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	return nil
}

// newNumber returns a number for a link.
func (h *Host) newNumber() (n uint32) {
	for n == 0 {
		n = h.number.Add(1)
	}
	return n
}

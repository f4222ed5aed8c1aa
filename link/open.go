package link

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
)

// Open opens an endpoint, as [dgrdma.Open] does, for links and nothing else.
func Open(localURL string, cfg *Config) (*Host, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Endpoint.Memory != nil {
		return nil, fmt.Errorf("link: open %s: Config.Endpoint.Memory is set: open the endpoint by dgrdma.Open, and make its links by On", localURL)
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
	h, err := on(ep, c.Memory, true)
	if err != nil {
		ep.Close()
		return nil, err
	}
	return h, nil
}

// On makes links over an endpoint that may have memory and other services as well. memory is what
// Config.Memory is: how many bytes all links share, for what they receive; 0 means 72 MiB. The
// endpoint stays when the host is closed. Once a port is listened on, and until the host is closed,
// any program may dial. A peer that the endpoint does not accept otherwise may not write into its
// memory.
func On(ep *dgrdma.Endpoint, memory int) (*Host, error) { return on(ep, memory, false) }

// on makes the host. What events of peers read is set before the endpoint serves it: they come from then on.
func on(ep *dgrdma.Endpoint, memory int, ownsEndpoint bool) (*Host, error) {
	if memory == 0 {
		memory = defaultMemory
	}
	if err := checkMemory(memory); err != nil {
		return nil, err
	}
	h := &Host{ep: ep, ownsEndpoint: ownsEndpoint, size: uint64(memory), manual: ep.Manual(), ports: make(map[string]*Listener)}
	h.budget.Init(int64(max(h.size, leastBudget)), ep.AfterBatch)
	var first [4]byte
	rand.Read(first[:])
	h.number.Store(binary.LittleEndian.Uint32(first[:]))
	h.mu.Lock() // letters may come before it is known where the window is
	defer h.mu.Unlock()
	base, err := ep.Serve(service{h})
	if err != nil {
		return nil, err // says "serve link"
	}
	h.block = space.NewBlock(uint64(base)+reserved, memory-reserved)
	h.heartbeatTimer = time.AfterFunc(ep.GiveUp()/2, h.heartbeat)
	return h, nil
}

// service is the host as its endpoint knows it.
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

// checkMemory returns an error for a size that the memory of a host cannot have.
func checkMemory(size int) error {
	if size < 2*reserved || uint64(size) > 1<<32 {
		return fmt.Errorf("link: memory of %d bytes: need %d to 4294967296, or 0 for %d", size, 2*reserved, defaultMemory)
	}
	return nil
}

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
	// Endpoint is the endpoint's configuration. It has no Memory. Peers are learned from what they send
	// once a port is listened on; a host that only dials has the peers that it dialed.
	Endpoint dgrdma.Config
	// Open opens the endpoint. nil means dgrdma.Open with the host's URL.
	Open func(*dgrdma.Config) (*dgrdma.Endpoint, error)
}

// defaultMemory has room for two streams of package stream, so that they may follow each other. The
// memory of one is free when its receiver has ended it, and its sender does not wait for that.
const defaultMemory = 72 << 20

// leastBudget is what links may send at least, so that a host that only sends needs no memory: see
// Config.Memory. Arbitrary; well above what is in flight on a fast wire.
const leastBudget = 32 << 20

// reserved is the beginning of a host's addresses that links do not use. The letter boxes are there,
// as the flags are in OpenCPI's endpoints.
const reserved = 16 << 10

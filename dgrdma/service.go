package dgrdma

import (
	"fmt"
	"slices"

	"github.com/dgrdma/dgrdma/frame"
)

// Service is an owner of some of an endpoint's addresses. Several share an endpoint:
// its plain memory, [Config.Memory], is one, and [Endpoint.Serve] adds others. A peer
// writes into each only what that admits, and is told in the handshake which there
// are; what it posts to one that is not there fails with [ErrNoService], and nothing of
// it is sent.
type Service interface {
	// Name is what peers know it by, the same at both ends: one to eight small letters,
	// digits and hyphens.
	Name() string
	// Size is how many addresses it takes. The first [MailSize] of them are its mail's.
	Size() uint64
	// Meet is called once for every connection, before anything of its peer is admitted.
	// It runs under locks: it must not call the endpoint.
	Meet(*Channel) Handler
}

// Handler is a service's side of one connection. All methods run on the goroutine that
// receives, but for Event of a peer that is down; they must not block, and may post.
type Handler interface {
	// Memory is asked about messages whose data and completion word lie in the service's
	// window, after its mail; their addresses are those of the whole endpoint, the window
	// begins at [Channel.Base]. The slice that Admit returns may be anywhere.
	Memory
	// Letter takes what the peer's service sent by [Channel.Mail]. The bytes are valid
	// during the call.
	Letter([]byte)
	// Event hears of the peer's life: [PeerUp], [PeerRestarted] and [PeerDown], in order
	// with what is admitted.
	Event(Event)
}

// MemoryService is the name of an endpoint's plain memory, unless [Config.Service] says
// otherwise.
const MemoryService = "memory"

// Serve adds a service: see [Service]; an endpoint has eight at most, its memory among
// them. It stays as long as the endpoint. Peers that are connected are told, which takes a
// round trip: what they post to it before fails with [ErrNoService], and may be posted
// again. Serve returns where the service's window begins; [Endpoint.Size] and
// [Endpoint.URL] grow by it.
func (e *Endpoint) Serve(s Service) (base uint32, err error) {
	name, err := frame.ParseServiceName(s.Name())
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, ErrClosed
	}
	least := toldMTU
	if e.mayCheck() {
		least += frame.ChecksumSize
	}
	if e.cfg.MTU < least {
		return 0, fmt.Errorf("dgrdma: serve %s: frames of %d bytes have no room to tell peers where it is, which takes %d: allow an mtu that is larger by %d", name, e.cfg.MTU, least, least-e.cfg.MTU)
	}
	x := &served{Service: s, name: name}
	if x.base, x.end, err = e.window(s.Size()); err != nil {
		return 0, fmt.Errorf("dgrdma: serve %s: %w", name, err)
	}
	entry := frame.Service{Name: name, Base: uint32(x.base)}
	if all := *e.localServices.to(false); !all.Add(entry) {
		return 0, fmt.Errorf("dgrdma: serve %s: the endpoint serves %s, each name once and %d at most", name, all.String(), frame.MostServices)
	}
	conns := e.peers.all()
	met := make([]*Channel, len(conns))
	for i, c := range conns {
		met[i] = c.meet(x)
	}
	// Nothing is changed before, for Meet may not return.
	e.services = append(slices.Clip(e.services), x)
	for i, c := range conns {
		c.channels.add(met[i])
	}
	e.localServices.add(entry)
	for _, c := range conns {
		c.tellServices()
	}
	e.sched.Work(false)
	return uint32(x.base), nil
}

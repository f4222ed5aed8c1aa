package endpoint

import (
	"fmt"
	"slices"

	"github.com/dgrdma/dgrdma/frame"
)

// Service is an owner of some of an endpoint's addresses. Several share an endpoint:
// its plain memory, [Config.Memory], is one, and [Endpoint.Serve] adds others. A peer
// writes into each only what that admits, and is told by our introduction which there
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
	// window, behind its mail; their addresses are those of the whole endpoint, the window
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

// windowUnit is what windows of the address space are multiples of. Arbitrary: a page.
const windowUnit = 4096

// served is a service and its window of the address space.
type served struct {
	Service
	name      frame.ServiceName
	base, end uint64
}

func (s *served) has(addr uint32) bool { return uint64(addr) >= s.base && uint64(addr) < s.end }

// Serve adds a service; an endpoint has eight at most, its memory among them. It stays as
// long as the endpoint. Peers that are connected are told, which takes a round trip: what
// they post to it before fails with [ErrNoService], and may be posted again. Serve returns
// where the service's window begins; [Endpoint.Size] and the endpoint's string grow by it.
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
	if all := *e.offers.to(false); !all.Add(entry) {
		return 0, fmt.Errorf("dgrdma: serve %s: the endpoint serves %s, each name once and %d at most", name, all.String(), frame.MostServices)
	}
	conns := e.peers.append(nil, nil)
	met := make([]*Channel, len(conns))
	for i, c := range conns {
		met[i] = c.meet(x)
	}
	// Nothing is changed before, for Meet may not return.
	e.services = append(slices.Clip(e.services), x)
	for i, c := range conns {
		c.channels.add(met[i])
	}
	e.offers.add(entry)
	for _, c := range conns {
		c.tellServices()
	}
	e.sched.Work(false)
	return uint32(x.base), nil
}

// window returns so many addresses that are free. Guarded by mu.
func (e *Endpoint) window(size uint64) (base, end uint64, err error) {
	if size < MailSize || size > 1<<32 {
		return 0, 0, fmt.Errorf("%d addresses, need %d to 2^32: %w", size, MailSize, ErrBounds)
	}
	if base, err = e.taken(); err != nil {
		return 0, 0, err
	}
	base = (min(base, 1<<32) + windowUnit - 1) &^ (windowUnit - 1)
	if end = base + size; end > 1<<32 {
		return 0, 0, fmt.Errorf("no %d addresses are left of 2^32: %w", size, ErrBounds)
	}
	return base, end, nil
}

// taken returns where the addresses end that the memory and the services have. Guarded by
// mu.
func (e *Endpoint) taken() (uint64, error) {
	if n := len(e.services); n > 0 {
		return e.services[n-1].end, nil
	}
	return e.ownEnd()
}

// ownEnd returns where the addresses of the plain memory end.
func (e *Endpoint) ownEnd() (uint64, error) {
	if _, none := e.memory.(noMemory); none {
		return 0, nil
	}
	m, ok := e.memory.(interface{ Size() uint64 })
	if !ok {
		return 0, fmt.Errorf("the endpoint's memory, which does not tell its size, may take all addresses: %w", ErrBounds)
	}
	return m.Size(), nil
}

// Size returns how many addresses the endpoint's memory and services take: what peers
// may write to lies below.
func (e *Endpoint) Size() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, _ := e.taken() // 0, if nobody knows
	return n
}

package bench

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Carrier is what carries the bytes of a run.
type Carrier uint32

const (
	Ours Carrier = iota // what the two ends are of: transactions, or work requests of queue pairs
	TCP                 // a stream
	TLS                 // TLS 1.3 over such a stream
	Raw                 // the wire's datagrams or frames, as large, with headers, a window and acknowledgements, and nothing that repairs what is lost
)

// Carriers are what DG/RDMA can be compared with, by name.
var Carriers = map[string]Carrier{"tcp": TCP, "tls": TLS, "raw": Raw}

func (c Carrier) String() string {
	for name, carrier := range Carriers {
		if carrier == c {
			return name
		}
	}
	return "dgrdma"
}

// Stream reports whether it is a connection of TCP, which has a congestion controller.
func (c Carrier) Stream() bool { return c == TCP || c == TLS }

// OneWay reports whether nothing but the client can write with it.
func (c Carrier) OneWay() bool { return c == Raw }

// check reports why a plan cannot be run by such a carrier.
func (c Carrier) check(p Plan) error {
	switch {
	case c > Raw:
		return fmt.Errorf("no carrier has the number %d: is the client a newer one?", uint32(c))
	case c.OneWay() && p.BothWays != 0:
		return fmt.Errorf("%v goes one way: only the client can write", c)
	}
	return nil
}

// rival is one side of a run that something else than DG/RDMA carries. What comes is
// placed in the memory that transactions of the plan would be placed in.
type rival interface {
	Poster
	// arrived returns how many bytes came so far.
	arrived() uint64
	// arriving returns for how many nanoseconds, from the first to the last; 0: the other
	// side knows when all of its bytes were there.
	arriving() uint64
	// over is closed when nothing more will come.
	over() <-chan struct{}
	Close() error
}

// acceptor is where a server awaits the other side of a rival.
type acceptor interface {
	// port is what a client has to know to find it, beside the endpoint's address.
	port() uint32
	accept(ctx context.Context, from dgrdma.Addr, memory []byte) (rival, error)
	// stop has nothing come any more that is not on its way.
	stop()
}

// await opens what a client of the endpoint is told to connect to. wire is the endpoint's
// string, with its options; controller is that of the connections, "" the machine's default.
func (c Carrier) await(at dgrdma.Addr, wire, controller string) (acceptor, error) {
	if c == Raw {
		return openBare(at, wire)
	}
	if at.Kind() != dgrdma.KindUDP {
		return nil, fmt.Errorf("there is no %v at %v", c, at)
	}
	return listenStream(at.AddrPort(), c == TLS, controller)
}

// dial connects to what the server awaits at its port.
func (c Contender) dial(ctx context.Context, from, to dgrdma.Addr, port uint32, wire string, memory []byte) (rival, error) {
	if c.Carrier == Raw {
		return dialBare(from, to, port, wire)
	}
	at := netip.AddrPortFrom(to.AddrPort().Addr(), uint16(port))
	return dialStream(ctx, from.AddrPort().Addr(), at, c.Carrier == TLS, c.Controller, memory)
}

// carrierBlock is how many bytes are posted at a time on other carriers, for which
// transactions mean nothing.
const carrierBlock = 1 << 20

// over returns the plan for a carrier: another one than DG/RDMA has the same memory in blocks, of
// which one is posted at a time, by who waits for room.
func (p Plan) over(c Carrier) Plan {
	if p.Carrier = c; c == Ours {
		return p
	}
	total := uint64(p.slots()) * p.stride()
	p.Size = uint32(min(total, carrierBlock))
	p.Depth, p.Peers, p.Active, p.Verify = uint32(total/uint64(p.Size)), 1, 1, VerifyOff
	return p
}

// memory returns where a plan's slots are in the memory that is written to.
func (p Plan) memory(all []byte) []byte {
	return all[p.dataAt():][:uint64(p.slots())*p.stride()]
}

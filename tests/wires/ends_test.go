package wires

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
	"github.com/dgrdma/dgrdma/transport/udp"
)

// wire is a way from one namespace to the other.
type wire struct {
	name      string
	local     func(side int) string // endpoint string without a port
	datagrams bool                  // UDP, with offload
	listen    func(t *testing.T, ns *netns.Namespace, side int) transport.Conn
}

var wires = []wire{
	udpWire("udp4", netns.IPv4),
	udpWire("udp6", netns.IPv6),
	udpWire("every", func(int) netip.Addr { return netip.IPv6Unspecified() }), // of both, at all addresses
	etherWire("ether", "", ether.Config{}),
	etherWire("calls", "?ring=off&xdp=off", ether.Config{NoRing: true, NoXDP: true}),
}

func etherWire(name, options string, cfg ether.Config) wire {
	cfg.Interface = netns.Device
	return wire{
		name:  name,
		local: func(int) string { return "ether:" + netns.Device + options },
		listen: func(t *testing.T, ns *netns.Namespace, _ int) transport.Conn {
			t.Helper()
			var tc *ether.Conn
			var err error
			ns.In(func() { tc, err = ether.Listen(cfg) })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tc.Close() })
			return tc
		},
	}
}

func udpWire(name string, address func(side int) netip.Addr) wire {
	return wire{
		name: name,
		local: func(side int) string {
			if a := address(side); a.Is6() {
				return "udp:[" + a.String() + "]"
			}
			return "udp:" + address(side).String()
		},
		datagrams: true,
		listen: func(t *testing.T, ns *netns.Namespace, side int) transport.Conn {
			return listenUDP(t, ns, address(side))
		},
	}
}

// reached returns the address by which the other side reaches who is there.
func reached(side int, at transport.Addr) transport.Addr {
	if ap := at.AddrPort(); ap.Addr().IsUnspecified() {
		return transport.UDPAddr(netip.AddrPortFrom(netns.IPv4(side), ap.Port()))
	}
	return at
}

func listenUDP(t *testing.T, ns *netns.Namespace, address netip.Addr) *udp.Conn {
	t.Helper()
	var tc *udp.Conn
	var err error
	ns.In(func() { tc, err = udp.Listen(udp.Config{Addr: netip.AddrPortFrom(address, 0)}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tc.Close() })
	return tc
}

// eachWire runs a test for every wire.
func eachWire(t *testing.T, f func(*testing.T, wire)) {
	netns.Require(t)
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) { f(t, w) })
	}
}

// eachWireAtOnce is eachWire for tests that wait most of the time: they do so beside each other.
func eachWireAtOnce(t *testing.T, f func(*testing.T, wire)) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w wire) {
		t.Parallel()
		f(t, w)
	})
}

// with adds options to an endpoint string.
func with(url string, options ...string) string {
	for _, o := range options {
		if o == "" {
			continue
		}
		sep := "?"
		if strings.Contains(url, "?") {
			sep = "&"
		}
		url += sep + o
	}
	return url
}

// end is an endpoint in a namespace.
type end struct {
	*dgrdma.Endpoint
	t      *testing.T
	ns     *netns.Namespace
	ledger *ledger

	mu     sync.Mutex
	events []dgrdma.Event
}

// open opens an endpoint until the test ends, with a ledger of that many slots
// for transactions of that size.
func open(t *testing.T, ns *netns.Namespace, url string, id int, slots, size int) *end {
	t.Helper()
	e := &end{t: t, ns: ns, ledger: newLedger(slots, size)}
	cfg := &dgrdma.Config{ID: frame.EndpointID(id), Memory: e.ledger, OnEvent: e.note}
	var err error
	ns.In(func() { e.Endpoint, err = dgrdma.Open(url, cfg) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func (e *end) note(event dgrdma.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
}

// happened returns how many events of a kind there were.
func (e *end) happened(kind dgrdma.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.events {
		if event.Kind == kind {
			n++
		}
	}
	return n
}

func (e *end) dial(url string) *dgrdma.Conn {
	e.t.Helper()
	var c *dgrdma.Conn
	var err error
	e.ns.In(func() { c, err = e.Dial(url) })
	if err != nil {
		e.t.Fatal(err)
	}
	return c
}

// flow makes a stream of transactions to the slots from first on.
func (e *end) flow(to *dgrdma.Conn, first, slots, size int) *flow {
	return newFlow(e.ID(), to, first, slots, size)
}

// couple opens two endpoints with the same options and connects them.
func couple(t *testing.T, pair netns.Pair, w wire, slots, size int, options ...string) (a, b *end, toB, toA *dgrdma.Conn) {
	t.Helper()
	a = open(t, pair[0], with(w.local(0), options...), 1, slots, size)
	b = open(t, pair[1], with(w.local(1), options...), 2, slots, size)
	return a, b, a.dial(b.URL()), b.dial(a.URL())
}

// verify checks that what the flows posted arrived at the end, once.
func (e *end) verify(flows ...*flow) {
	e.t.Helper()
	want := make(map[frame.EndpointID]int)
	for _, f := range flows {
		want[f.from] += f.posted()
	}
	if err := e.ledger.verify(want); err != nil {
		e.t.Fatalf("%v\n%+v", err, e.Stats())
	}
}

// counted waits until the endpoint counts n transactions each way. What is
// received is counted a little after it can be seen in memory.
func (e *end) counted(n int) {
	e.t.Helper()
	eventually(e.t, patience, "all transactions are counted", func() bool {
		s := e.Stats()
		return s.Completions >= uint64(n) && s.TransactionsDone >= uint64(n)
	})
	if s := e.Stats(); s.TransactionsDone != uint64(n) || s.TransactionsLost != 0 || s.Completions != uint64(n) {
		e.t.Errorf("counters after %d transactions each way: %+v", n, s)
	}
}

package simnet_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var (
	addrA = simnet.Addr(1)
	addrB = simnet.Addr(2)
	addrC = simnet.Addr(3)
)

// pair is a network with A and B; one link under test from A to B.
type pair struct {
	t    *testing.T
	net  *simnet.Network
	a, b *simnet.Conn
}

func newPair(t *testing.T, seed uint64, l simnet.Link) *pair {
	t.Helper()
	n := simnet.New(seed)
	t.Cleanup(func() { n.Close() })
	p := &pair{t: t, net: n}
	p.a = n.Attach(addrA, simnet.Config{})
	p.b = n.Attach(addrB, simnet.Config{RecvQueue: 1 << 20})
	n.Link(addrA, addrB, l)
	return p
}

func outgoing(c transport.Conn, to transport.Addr, frame []byte) transport.Outgoing {
	half, most := len(frame)/2, len(frame)*3/4 // the rest lies elsewhere, in two places
	return transport.Outgoing{To: new(to), Buf: append(make([]byte, c.Caps().Headroom), frame[:half]...), Rest: frame[half:most], Tail: frame[most:]}
}

func numbered(i, size int) []byte {
	return binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(i))[:size]
}

// send sends frames with the numbers from first on, one by one.
func (p *pair) send(first, count, size int) {
	p.t.Helper()
	for i := range count {
		n, err := p.a.Send([]transport.Outgoing{outgoing(p.a, addrB, numbered(first+i, size))})
		if n != 1 || err != nil {
			p.t.Errorf("Send: %d, %v", n, err) // maybe not in the test's goroutine
		}
	}
}

type arrival struct {
	number int
	after  time.Duration
}

// receive collects what B gets until count datagrams are there.
func (p *pair) receive(count int) []arrival {
	p.t.Helper()
	begin := time.Now()
	var got []arrival
	dst := make([]transport.Datagram, 16)
	for len(got) < count {
		n, err := p.b.Recv(dst, transport.Forever)
		if err != nil {
			p.t.Fatalf("Recv: %v", err)
		}
		for _, d := range dst[:n] {
			if d.From != addrA {
				p.t.Fatalf("from %v", d.From)
			}
			got = append(got, arrival{int(binary.LittleEndian.Uint32(d.Data)), time.Since(begin)})
		}
	}
	return got
}

func (p *pair) stats() simnet.LinkStats {
	p.t.Helper()
	s := p.net.LinkStats(addrA, addrB)
	if s.Sent+s.Duplicated+s.Held != s.Delivered+s.Dropped()+s.InFlight {
		p.t.Errorf("counters do not add up: %+v", s)
	}
	return s
}

func (p *pair) wantStats(want simnet.LinkStats) {
	p.t.Helper()
	if got := p.stats(); got != want {
		p.t.Errorf("link counters\n got %+v\nwant %+v", got, want)
	}
}

func (p *pair) wantArrivals(want ...arrival) {
	p.t.Helper()
	got := p.receive(len(want))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("arrivals\n got %v\nwant %v", got, want)
	}
}

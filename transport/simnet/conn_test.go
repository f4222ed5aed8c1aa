package simnet_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

func TestDefaults(t *testing.T) {
	p := newPair(t, 1, simnet.Link{})
	want := transport.Caps{MTU: 1490, Headroom: 2, Batch: 64, ECN: true}
	if got := p.a.Caps(); got != want {
		t.Errorf("Caps %+v, want %+v", got, want)
	}
	if p.a.LocalAddr() != addrA {
		t.Errorf("LocalAddr %v", p.a.LocalAddr())
	}
	bare := p.net.Attach(addrC, simnet.Config{Headroom: -1, MTU: 9000, Batch: 8})
	want = transport.Caps{MTU: 9000, Batch: 8, ECN: true}
	if got := bare.Caps(); got != want {
		t.Errorf("Caps %+v, want %+v", got, want)
	}
}

func TestPerfectLinkDeliversWithinSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		batch := make([]transport.Outgoing, 20)
		for i := range batch {
			batch[i] = outgoing(p.a, addrB, numbered(i, 8))
		}
		if n, err := p.a.Send(batch); n != 20 || err != nil {
			t.Fatalf("Send: %d, %v", n, err)
		}
		dst := make([]transport.Datagram, 12)
		for _, want := range []int{12, 8} { // all that is there, up to len(dst)
			if n, err := p.b.Recv(dst, transport.Forever); n != want || err != nil {
				t.Fatalf("Recv: %d, %v, want %d", n, err, want)
			}
		}
		p.wantStats(simnet.LinkStats{Sent: 20, Delivered: 20})
	})
}

// TestPollWaits: no longer than it was told, and no longer than until something
// comes, which is not lost if that is too late.
func TestPollWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Latency: 10 * time.Millisecond})
		dst := make([]transport.Datagram, 4)
		for _, c := range []struct {
			wait, took time.Duration
			n          int
		}{{0, 0, 0}, {3 * time.Millisecond, 3 * time.Millisecond, 0}, {time.Minute, 7 * time.Millisecond, 1}} {
			if c.wait == 0 {
				p.a.Send([]transport.Outgoing{outgoing(p.a, addrB, numbered(1, 8))})
			}
			began := time.Now()
			if n, err := p.b.Recv(dst, c.wait); n != c.n || err != nil || time.Since(began) != c.took {
				t.Errorf("Poll for %v: %d, %v after %v; want %d after %v", c.wait, n, err, time.Since(began), c.n, c.took)
			}
		}
		p.a.Send([]transport.Outgoing{outgoing(p.a, addrB, numbered(2, 8))})
		p.b.Recv(dst, time.Millisecond)
		time.Sleep(time.Second)
		if n, err := p.b.Recv(dst, transport.Forever); n != 1 || err != nil {
			t.Errorf("Recv after a Poll that was too short: %d, %v", n, err)
		}
	})
}

// TestNoRoom: who has no room gets nothing, at once, and keeps what it got before; what
// waits is not lost.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{})
		dst := make([]transport.Datagram, 1)
		for i := range 3 {
			p.a.Send([]transport.Outgoing{outgoing(p.a, addrB, numbered(i, 8))})
			if n, err := p.b.Recv(nil, transport.Forever); n != 0 || err != nil {
				t.Error(n, err)
			}
			if i > 0 && !bytes.Equal(dst[0].Data, numbered(i-1, 8)) {
				t.Errorf("datagram %d changed", i-1)
			}
			if n, err := p.b.Recv(dst, 0); n != 1 || err != nil || !bytes.Equal(dst[0].Data, numbered(i, 8)) {
				t.Errorf("datagram %d: %d, %v", i, n, err)
			}
		}
	})
}

func TestAddressesOfAllKinds(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	addrs := []transport.Addr{
		simnet.Addr(0),
		transport.EtherAddr([6]byte{2, 0, 0, 0, 0, 1}),
		transport.UDPAddr(netip.MustParseAddrPort("192.0.2.1:18077")),
		transport.UDPAddr(netip.MustParseAddrPort("[2001:db8::1]:18077")),
	}
	for i, addr := range addrs {
		to := n.Attach(addr, simnet.Config{})
		from := n.Attach(simnet.Addr(uint32(100+i)), simnet.Config{})
		if _, err := from.Send([]transport.Outgoing{outgoing(from, addr, []byte("hello"))}); err != nil {
			t.Fatal(err)
		}
		dst := make([]transport.Datagram, 1)
		if _, err := to.Recv(dst, transport.Forever); err != nil || string(dst[0].Data) != "hello" || dst[0].From != from.LocalAddr() {
			t.Errorf("to %v: %v %q, %v", addr, dst[0].From, dst[0].Data, err)
		}
	}
}

func TestSendRefusesFramesThatDoNotFit(t *testing.T) {
	p := newPair(t, 1, simnet.Link{})
	good := outgoing(p.a, addrB, make([]byte, 1490))
	for name, bad := range map[string]transport.Outgoing{
		"TooLong":    outgoing(p.a, addrB, make([]byte, 1491)),
		"NoHeadroom": {To: new(addrB), Buf: []byte{1}},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := p.a.Send([]transport.Outgoing{good, bad, good})
			if n != 1 || !errors.Is(err, simnet.ErrFrameSize) {
				t.Errorf("Send: %d, %v", n, err)
			}
		})
	}
	p.wantStats(simnet.LinkStats{Sent: 2, Delivered: 2})
}

func TestSendCopiesAndSpoilsHeadroom(t *testing.T) {
	p := newPair(t, 1, simnet.Link{})
	o := transport.Outgoing{To: new(addrB), Buf: []byte{1, 2, 3, 4, 5, 6}}
	if _, err := p.a.Send([]transport.Outgoing{o}); err != nil {
		t.Fatal(err)
	}
	if o.Buf[0] == 1 || o.Buf[1] == 2 {
		t.Error("headroom is as it was")
	}
	if !bytes.Equal(o.Buf[2:], []byte{3, 4, 5, 6}) {
		t.Errorf("frame was changed: % x", o.Buf)
	}
	clear(o.Buf)
	dst := make([]transport.Datagram, 1)
	if _, err := p.b.Recv(dst, transport.Forever); err != nil || !bytes.Equal(dst[0].Data, []byte{3, 4, 5, 6}) {
		t.Errorf("received % x, %v", dst[0].Data, err)
	}
}

func TestPoison(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	a := n.Attach(addrA, simnet.Config{})
	b := n.Attach(addrB, simnet.Config{Poison: true})
	dst := make([]transport.Datagram, 1)
	var kept []byte
	for range 2 {
		kept = dst[0].Data
		batch := []transport.Outgoing{outgoing(a, addrB, []byte("12345678"))}
		if _, err := a.Send(batch); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Recv(dst, transport.Forever); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(kept, bytes.Repeat([]byte{0xdb}, 8)) {
		t.Errorf("a view that is dead still reads % x", kept)
	}
}

func TestReceiveQueueOverflow(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	a := n.Attach(addrA, simnet.Config{MTU: 2000})
	b := n.Attach(addrB, simnet.Config{RecvQueue: 3})
	for _, size := range []int{1491, 10, 10, 10, 10, 10} {
		if _, err := a.Send([]transport.Outgoing{outgoing(a, addrB, make([]byte, size))}); err != nil {
			t.Fatal(err)
		}
	}
	want := transport.Stats{KernelDrops: 2, Truncated: 1}
	if got := b.Stats(); got != want {
		t.Errorf("Stats %+v, want %+v", got, want)
	}
	if got, err := b.Recv(make([]transport.Datagram, 8), transport.Forever); got != 3 || err != nil {
		t.Errorf("Recv: %d, %v", got, err)
	}
	if s := n.LinkStats(addrA, addrB); s.Overrun != 3 || s.Dropped() != 3 || s.Delivered != 3 {
		t.Errorf("%+v", s)
	}
}

func TestCloseUnblocksRecv(t *testing.T) {
	for name, closeIt := range map[string]func(*pair) error{
		"Conn":    func(p *pair) error { return p.b.Close() },
		"Network": func(p *pair) error { return p.net.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, 1, simnet.Link{})
				failed := make(chan error)
				go func() {
					_, err := p.b.Recv(make([]transport.Datagram, 1), transport.Forever)
					failed <- err
				}()
				synctest.Wait()
				for range 2 { // any number of times
					if err := closeIt(p); err != nil {
						t.Error(err)
					}
				}
				if err := <-failed; !errors.Is(err, net.ErrClosed) {
					t.Errorf("Recv: %v", err)
				}
				if _, err := p.b.Recv(make([]transport.Datagram, 1), transport.Forever); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Recv again: %v", err)
				}
				if n, err := p.b.Send(nil); n != 0 || !errors.Is(err, net.ErrClosed) {
					t.Errorf("Send: %d, %v", n, err)
				}
			})
		})
	}
}

func TestCloseWithDatagramsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Latency: time.Hour})
		p.send(0, 5, 8)
		p.wantStats(simnet.LinkStats{Sent: 5, InFlight: 5})
		p.net.Close()
		p.wantStats(simnet.LinkStats{Sent: 5, Unattached: 5})
		late := p.net.Attach(addrC, simnet.Config{})
		if _, err := late.Recv(make([]transport.Datagram, 1), transport.Forever); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Recv on a closed network: %v", err)
		}
	})
}

// Nothing is closed here: the bubble would not end if that left goroutines.
func TestNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		a := n.Attach(addrA, simnet.Config{})
		n.Attach(addrB, simnet.Config{})
		n.Link(addrA, addrB, simnet.Link{Latency: time.Hour})
		if _, err := a.Send([]transport.Outgoing{outgoing(a, addrB, nil)}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRestartedReceiverGetsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, simnet.Link{Latency: 10 * time.Millisecond})
		p.send(0, 1, 8) // arrives between the two lives
		time.Sleep(9 * time.Millisecond)
		p.b.Close()
		p.send(1, 1, 8)
		time.Sleep(5 * time.Millisecond)
		p.b = p.net.Attach(addrB, simnet.Config{})
		p.wantArrivals(arrival{1, 5 * time.Millisecond})
		p.wantStats(simnet.LinkStats{Sent: 2, Delivered: 1, Unattached: 1})

		p.a.Close()
		p.a = p.net.Attach(addrA, simnet.Config{})
		p.send(2, 1, 8)
		p.wantArrivals(arrival{2, 10 * time.Millisecond})
	})
}

func TestSendToUnattachedAddressIsCounted(t *testing.T) {
	p := newPair(t, 1, simnet.Link{})
	if n, err := p.a.Send([]transport.Outgoing{outgoing(p.a, addrC, nil)}); n != 1 || err != nil {
		t.Errorf("Send: %d, %v", n, err)
	}
	want := simnet.LinkStats{Sent: 1, Unattached: 1}
	if got := p.net.LinkStats(addrA, addrC); got != want {
		t.Errorf("%+v", got)
	}
	if got := p.net.TotalStats(); got != want {
		t.Errorf("total %+v", got)
	}
}

func TestProgrammingErrorsPanic(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	n.Attach(addrA, simnet.Config{})
	for name, misuse := range map[string]func(){
		"AddressInUse": func() { n.Attach(addrA, simnet.Config{}) },
		"NoAddress":    func() { n.Attach(transport.Addr{}, simnet.Config{}) },
		"Probability":  func() { n.Link(addrA, addrB, simnet.Link{Loss: 5}) },
		"NegativeTime": func() { n.Link(addrA, addrB, simnet.Link{Latency: -1}) },
		"NegativeRate": func() { n.Link(addrA, addrB, simnet.Link{Rate: -1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse()
		})
	}
}

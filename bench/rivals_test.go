package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// withRivals makes a client take turns with others, whose controller is the machine's default.
func withRivals(s *Server, c *Client, rivals ...Carrier) {
	s.Local, c.Local, c.Rivals, c.Congestion = "udp:127.0.0.1", "udp:127.0.0.1", rivals, DefaultController
}

// TestRivals: every carrier has its turns, in which as much arrives as was sent, where the
// transactions go, and then ours finds its own bytes there.
func TestRivals(t *testing.T) {
	for _, c := range []struct {
		name    string
		plan    Plan
		receive bool
		rivals  []Carrier
	}{
		{"one way", Plan{}, false, []Carrier{TCP, TLS, Raw}},
		{"both ways", Plan{BothWays: 1}, false, []Carrier{TLS, TCP}},
		{"to the client", Plan{BothWays: 1}, true, []Carrier{TCP}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fixture.NoGoroutineOfItsOwnLeft(t)
			c.plan.Size, c.plan.Peers, c.plan.Verify = 5000, 1, VerifyFull
			all := append(c.rivals, Ours)
			var sent, got map[Carrier]uint64
			var turns map[Carrier]int
			var o *Outcome
			untimed := false // all that came of packets in a turn came at once
			nothing := func(rival Carrier) bool { return got[rival] == 0 || untimed }
			// A machine that is busy may do nothing in so short a turn.
			for turn := 15 * time.Millisecond; o == nil || slices.ContainsFunc(all, nothing) && turn < 10*time.Second; turn *= 4 {
				s, client := sides(t, c.plan)
				withRivals(s, client, c.rivals...)
				client.Receive = c.receive
				sent, got, turns = make(map[Carrier]uint64), make(map[Carrier]uint64), make(map[Carrier]int)
				s.Ran = func(r Run) {
					if r.Plan.Carrier != Ours {
						sent[r.Plan.Carrier] += r.Saw.Arrived + r.Saw.Bytes
					}
				}
				served := serveOnce(t, s)
				o, untimed = NewOutcome(), false
				if err := errors.Join(client.Run(t.Context(), TurnsBeside*turn, o), <-served); err != nil {
					t.Fatal(err)
				}
				for _, turn := range o.Turns {
					got[turn.Carrier] += turn.Bytes
					turns[turn.Carrier]++
					switch {
					case turn.Took > 0 || turn.Bytes == 0:
					case turn.Carrier.OneWay():
						untimed = true
					default:
						t.Errorf("%+v", turn)
					}
				}
			}
			if untimed {
				t.Errorf("a turn took no time: %+v", o.Turns)
			}
			for _, rival := range all {
				if turns[rival] != TurnsBeside {
					t.Errorf("%v had %d turns", rival, turns[rival])
				}
			}
			for _, rival := range c.rivals {
				if got[rival] != sent[rival] || got[rival] == 0 {
					t.Errorf("%v: %d bytes counted here, %d there", rival, got[rival], sent[rival])
				}
			}
			if n := o.Mine.Bytes + o.Theirs.Bytes; n == 0 || got[Ours] != n {
				t.Errorf("turns have %d of %d bytes", got[Ours], n)
			}
			rate := o.Spread(Contender{}, Turn.PerSecond)
			if !(rate.Turns == TurnsBeside && rate.Most > 0 && rate.Least <= rate.Median && rate.Median <= rate.Most) {
				t.Errorf("%+v", rate)
			}
			if here, there := o.Machines(); here != there || here.Processors < 1 || here.Others < 0 || here.Others > 1 {
				t.Errorf("%+v, %+v", here, there)
			}
		})
	}
}

// TestRivalsUseThePlansMemory: blocks of other carriers are all of what transactions have, and
// no more than the server has.
func TestRivalsUseThePlansMemory(t *testing.T) {
	for _, p := range []Plan{
		{Size: 1 << 20, Depth: 4, Peers: 1}, {Size: 64, Depth: 1, Peers: 1}, {Size: 1, Depth: 3, Peers: 2}, {Size: 65, Depth: 4096, Peers: 5}, {Size: 100 << 20, Depth: 2, Peers: 1},
	} {
		p.Active = uint32(p.slots())
		ours := uint64(p.slots()) * p.stride()
		for _, c := range []Carrier{TCP, TLS, Raw} {
			q := p.over(c)
			theirs := uint64(q.Size) * uint64(q.Depth)
			if err := q.Check(p.needs()); err != nil || q.Carrier != c || q.Active != 1 || theirs > ours || ours-theirs >= carrierBlock || q.Size > carrierBlock {
				t.Errorf("%+v for %+v: %v; %d of %d bytes", q, p, err, theirs, ours)
			}
		}
		if p.over(Ours) != p {
			t.Error("ours is another plan")
		}
	}
}

// TestPlansThatNoCarrierRuns are refused by the server, whoever sends them.
func TestPlansThatNoCarrierRuns(t *testing.T) {
	for _, p := range []Plan{{Carrier: 4}, {Carrier: 1 << 31}, {Carrier: Raw, BothWays: 1}} {
		p.Size, p.Depth, p.Peers, p.Active = 64, 1, 1, 1
		if err := p.Check(1 << 20); err == nil {
			t.Errorf("%+v is run", p)
		}
	}
	for _, wire := range []Carrier{TCP, TLS} {
		if a, err := wire.await(dgrdma.EtherAddr([6]byte{2}), "ether:eth0", ""); err == nil {
			a.stop()
			t.Errorf("%v on bare Ethernet", wire)
		}
	}
}

// TestOlderServerComparesWithNothing: it says nothing of carriers, and is let go of as it should.
func TestOlderServerComparesWithNothing(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	c.Endpoint.Close()
	var err error
	if c.Endpoint, err = dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7, Memory: forgetful{c.Memory}}); err != nil {
		t.Fatal(err)
	}
	defer c.Endpoint.Close()
	if c.Conns[0], err = c.Endpoint.Dial(s.Endpoint.URL()); err != nil {
		t.Fatal(err)
	}
	withRivals(s, c, TCP)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, false) }()
	var rival *CarrierError
	if err := c.Run(t.Context(), 10*time.Millisecond, NewOutcome()); !errors.Is(err, ErrNoCarrier) || !errors.As(err, &rival) || rival.Carrier != TCP {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestServerCannotAwait: its client is told so, and the server's user why.
func TestServerCannotAwait(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 64, Peers: 1})
	withRivals(s, c, Raw)
	s.Local = "udp:127.0.0.1?mtu=nonsense"
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	s.Failed = func(_ dgrdma.PeerName, err error) { failed <- err }
	served := make(chan error)
	go func() { served <- s.Serve(ctx, false) }()
	if err := c.Run(t.Context(), 10*time.Millisecond, NewOutcome()); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	c.Endpoint.Close()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "comparison with raw: ") || !strings.Contains(err.Error(), "mtu") {
		t.Error(err)
	}
	cancel()
	<-served
}

// TestNowhereToAwait checks that a carrier that cannot listen returns an error and no acceptor, which a server
// would wait at: no interface of this machine has the address.
func TestNowhereToAwait(t *testing.T) {
	at := dgrdma.UDPAddr(netAddr(t, "192.0.2.1:7470"))
	for _, c := range []Carrier{TCP, TLS, Raw} {
		if a, err := c.await(at, "udp:192.0.2.1:7470", ""); err == nil || a != nil {
			t.Errorf("%v: got %v and %v, want no acceptor and an error", c, a, err)
		}
	}
}

// TestServerDiesAmidAComparison: whole turns until then are told.
func TestServerDiesAmidAComparison(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	s, c := sides(t, Plan{Size: 5000, Peers: 1})
	withRivals(s, c, TCP)
	var runs atomic.Int32
	s.Ran = func(Run) {
		if runs.Add(1) == 3 { // TCP, ours, TCP
			go s.Endpoint.Close()
		}
	}
	served := serveOnce(t, s)
	o := NewOutcome()
	if err := c.Run(t.Context(), time.Second, o); err == nil || errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	<-served
	ours, theirs := o.Spread(Contender{}, Turn.PerSecond), o.Spread(Contender{Carrier: TCP}, Turn.PerSecond)
	if ours.Turns == 0 || theirs.Turns == 0 || ours.Most <= 0 || len(o.Turns) < 2 || len(o.Turns) > 4 {
		t.Errorf("%+v", o.Turns)
	}
}

// TestInterruptedInATurnOfAnother ends at once, and both sides are through with it.
func TestInterruptedInATurnOfAnother(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	for _, rival := range []Carrier{TCP, TLS, Raw} {
		s, c := sides(t, Plan{Size: 5000, Peers: 1})
		withRivals(s, c, rival)
		ctx, cancel := context.WithCancel(t.Context())
		serves, leave := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- s.Serve(serves, false) }()
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := c.Run(ctx, time.Hour, NewOutcome()); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%v: %v", rival, err)
		}
		leave()
		if err := <-served; err != nil {
			t.Errorf("%v: server: %v", rival, err)
		}
	}
}

// TestInterruptedBeforeItBegan: whoever is interrupted while a stream comes up was interrupted, and not
// refused.
func TestInterruptedBeforeItBegan(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, rival := range []Carrier{TCP, TLS} {
		s, c := sides(t, Plan{Size: 5000, Peers: 1})
		withRivals(s, c, rival)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := c.rivalLoad(ctx, t.Context(), c, c.Plan.over(rival), Contender{Carrier: rival}, Ready{Knows: knowsAll, Port: 1}, time.Hour)
		if !errors.Is(err, ErrInterrupted) {
			t.Errorf("%v: %v", rival, err)
		}
	}
}

// TestStrangersStreamIsNobodys: only the client's own host is listened to.
func TestStrangersStreamIsNobodys(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	loopback := dgrdma.UDPAddr(netAddr(t, "127.0.0.1:0"))
	l, err := TCP.await(loopback, "", "")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan rival, 1)
	go func() {
		r, _ := l.accept(t.Context(), dgrdma.UDPAddr(netAddr(t, "127.0.0.2:9")), make([]byte, 100))
		accepted <- r
	}()
	at := l.(*streamListener).Addr().String()
	stranger, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Error("the stranger was answered")
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client, err := dialer.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	r := <-accepted
	client.Write([]byte("hello"))
	client.Close()
	<-r.over()
	if r.arrived() != 5 {
		t.Errorf("%d bytes of 5", r.arrived())
	}
	r.Close()
	l.stop()
}

// TestPlaceOfBareFrames: beside the endpoint, on the same wire with the same options, where no frame of the
// endpoint's comes.
func TestPlaceOfBareFrames(t *testing.T) {
	ip, mac := dgrdma.UDPAddr(netAddr(t, "10.0.0.1:7100")), dgrdma.EtherAddr([6]byte{2, 0, 0, 0, 0, 1})
	for _, c := range []struct {
		at         dgrdma.Addr
		wire, want string
	}{
		{ip, "udp", "udp:10.0.0.1:0"},
		{ip, "udp:7100?gso=off&mtu=1400", "udp:10.0.0.1:0?gso=off&mtu=1400"},
		{mac, "ether:eth0", "ether:eth0?ethertype=0x88b5&xdp=off"},
		{mac, "ether:eth0?ring=off&ethertype=0x88b5", "ether:eth0?ethertype=0x88b6&ring=off&xdp=off"},
		{mac, "ether:eth0?ethertype=34997", "ether:eth0?ethertype=0x88b6&xdp=off"},
		{mac, "ether:eth0?xdp=on", "ether:eth0?ethertype=0x88b5&xdp=off"},
	} {
		if got, err := beside(c.at, c.wire); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.wire, got, err, c.want)
		}
	}
	if _, err := beside(ip, "nonsense"); err == nil {
		t.Error("nonsense has a place")
	}
}

// TestCompleteStringsAreCompared: what a server was told to be in full is no hindrance.
func TestCompleteStringsAreCompared(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	s, c := sides(t, Plan{Size: 5000, Peers: 1})
	withRivals(s, c, Raw)
	s.Local = fmt.Sprintf("ocpi-udp-rdma:127.0.0.1;%d;1048576.31337.65535", fixture.FreePort(t))
	served := serveOnce(t, s)
	if err := errors.Join(c.Run(t.Context(), 100*time.Millisecond, NewOutcome()), <-served); err != nil {
		t.Error(err)
	}
}

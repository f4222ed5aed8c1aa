package admission_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/transport"
)

const giveUp = 10 * time.Second

// fakePeer is a learned peer.
type fakePeer struct {
	at       transport.Addr
	place    admission.Place
	standing admission.Standing
	asked    int // for its standing
}

func (p *fakePeer) Place() *admission.Place { return &p.place }

func (p *fakePeer) Standing() admission.Standing {
	p.asked++
	return p.standing
}

func udp(s string) transport.Addr { return transport.UDPAddr(netip.MustParseAddrPort(s)) }

func seconds(n int) ack.Instant { return ack.Instant(n) * ack.Instant(time.Second) }

// full are places that are full of peers with sessions, each of a host of its own, which last showed at these seconds that they are there.
type full struct {
	*testing.T
	admission.Places[*fakePeer]
	peers []*fakePeer
	now   ack.Instant
}

func fullOf(t *testing.T, livedAt ...int) *full {
	f := &full{T: t, now: seconds(1000)}
	f.Init(admission.Bounds{Peers: len(livedAt), Learned: len(livedAt), PerHost: len(livedAt), GiveUp: giveUp})
	for i, at := range livedAt {
		x := &fakePeer{at: udp(fmt.Sprintf("10.0.0.%d:7", i+1)), standing: admission.Standing{LivedAt: seconds(at), InSession: true}}
		f.peers = append(f.peers, x)
		f.Add(x, x.at)
	}
	return f
}

// evict asks for a place of an unknown source, which gets that of peer want of the list; -1: of none.
func (f *full) evict(want int) {
	f.Helper()
	x, s := f.Room(f.now, udp("10.0.1.1:7"), f.Learned())
	switch {
	case want < 0 && s != admission.NoPlace:
		f.Fatalf("there is a place: %v", s)
	case want >= 0 && (s != admission.AfterEviction || x != f.peers[want]):
		f.Fatalf("evicted is %v, %v, want peer %d", s, x, want)
	}
}

// TestWhichPeerMayGo checks which learned peer is evicted: one that is down, one without a session after GiveUp, and one that was silent for
// longer than six times that.
func TestWhichPeerMayGo(t *testing.T) {
	for _, x := range []struct {
		standing admission.Standing
		silent   time.Duration
		goes     bool
	}{
		{admission.Standing{InSession: true}, 6 * giveUp, false},
		{admission.Standing{InSession: true}, 6*giveUp + 1, true},
		{admission.Standing{}, giveUp, false},
		{admission.Standing{}, giveUp + 1, true},
		{admission.Standing{InSession: true, Down: true}, 0, true},
	} {
		f := fullOf(t, 0)
		x.standing.LivedAt = f.now.Add(-x.silent)
		f.peers[0].standing = x.standing
		want := -1
		if x.goes {
			want = 0
		}
		f.evict(want)
	}
}

// TestLongestSilentPeerGoes checks that of the peers that may be evicted the one silent longest is, whatever their order, and that as many
// may be as sources come.
func TestLongestSilentPeerGoes(t *testing.T) {
	f := fullOf(t, 12, 10, 13, 11)
	for _, i := range []int{1, 3, 0, 2} {
		f.evict(i)
		f.Remove(f.peers[i], f.peers[i].at)
		x := &fakePeer{at: udp(fmt.Sprintf("10.0.2.%d:7", i)), standing: admission.Standing{LivedAt: f.now, InSession: true}}
		f.Add(x, x.at)
		if f.Learned() != 4 || f.Hosts() != 4 {
			t.Errorf("%d peers of %d hosts", f.Learned(), f.Hosts())
		}
	}
	f.evict(-1)
}

// TestFoundPeerIsKept checks that a peer that was found is not searched for again while it may go, and that it is not evicted any more once
// it showed that it is there, or is gone.
func TestFoundPeerIsKept(t *testing.T) {
	for name, stays := range map[string]func(f *full){
		"spoke": func(f *full) { f.peers[0].standing.LivedAt = f.now },
		"gone": func(f *full) {
			f.Remove(f.peers[0], f.peers[0].at)
			x := &fakePeer{at: udp("10.0.2.1:7"), standing: admission.Standing{LivedAt: f.now, InSession: true}}
			f.Add(x, x.at)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fullOf(t, 10, 11)
			f.evict(0)
			asked := f.peers[1].asked
			f.peers[1].standing.LivedAt = 0 // it would be the one by now
			f.evict(0)
			if f.peers[1].asked != asked {
				t.Error("it was searched for again")
			}
			f.peers[1].standing.LivedAt = seconds(11)
			stays(f)
			f.evict(1)
		})
	}
}

// TestSearchPauses checks that after a search that found no peer none is searched for with each frame, and that one is after a while.
func TestSearchPauses(t *testing.T) {
	f := fullOf(t, 1000)
	f.evict(-1)
	f.peers[0].standing.Down = true
	asked := f.peers[0].asked
	if f.evict(-1); f.peers[0].asked != asked {
		t.Error("searched again at once")
	}
	f.now += seconds(1)
	f.evict(0)
}

// TestPlacesOfAHost checks that a host has as many learned peers as it may, whichever of them goes and comes, and that it fills its own places
// and not those of other hosts.
func TestPlacesOfAHost(t *testing.T) {
	const most = 3
	var p admission.Places[*fakePeer]
	p.Init(admission.Bounds{Peers: 40, Learned: 40, PerHost: most, GiveUp: giveUp})
	port := 1000
	var there []*fakePeer
	at := func() transport.Addr {
		port++
		return udp(fmt.Sprintf("10.0.0.1:%d", port))
	}
	fill := func() {
		t.Helper()
		for len(there) < most {
			a := at()
			if _, s := p.Room(0, a, 10); s != admission.FreePlace {
				t.Fatalf("no place beside %d of the host", len(there))
			}
			x := &fakePeer{at: a, standing: admission.Standing{InSession: true}}
			p.Add(x, a)
			there = append(there, x)
		}
		if _, s := p.Room(0, at(), 10); s != admission.NoPlace {
			t.Errorf("a place for another one of a host that has %d: %v", most, s)
		}
		if _, s := p.Room(0, udp("10.0.0.2:1"), 10); s != admission.FreePlace {
			t.Errorf("no place for another host: %v", s)
		}
	}
	fill()
	for _, gone := range [][]int{{0}, {2}, {1}, {0, 1}, {1, 2}, {2, 1}, {0, 1, 2}, {2, 1, 0}} {
		left := append([]*fakePeer(nil), there...)
		for _, i := range gone {
			p.Remove(there[i], there[i].at)
			p.Remove(there[i], there[i].at) // it is in no list any more
			left[i] = nil
		}
		there = there[:0]
		for _, x := range left {
			if x != nil {
				there = append(there, x)
			}
		}
		if p.Learned() != len(there) {
			t.Fatalf("%d peers, want %d", p.Learned(), len(there))
		}
		fill()
	}
	for _, x := range there {
		p.Remove(x, x.at)
	}
	if p.Hosts() != 0 || p.Learned() != 0 {
		t.Errorf("%d hosts and %d peers are kept", p.Hosts(), p.Learned())
	}
}

// TestPlacesAreBounded checks that there is no place beyond the bound of all peers, nor beyond that of learned ones.
func TestPlacesAreBounded(t *testing.T) {
	for _, x := range []struct {
		peers int
		want  admission.Space
	}{{3, admission.FreePlace}, {4, admission.NoPlace}} {
		var p admission.Places[*fakePeer]
		p.Init(admission.Bounds{Peers: 4, Learned: 2, PerHost: 2, GiveUp: giveUp})
		if _, s := p.Room(0, udp("10.0.0.9:1"), x.peers); s != x.want {
			t.Errorf("beside %d peers: %v, want %v", x.peers, s, x.want)
		}
		for i := range 2 {
			p.Add(&fakePeer{standing: admission.Standing{InSession: true}}, udp(fmt.Sprintf("10.0.0.%d:1", i+1)))
		}
		if _, s := p.Room(0, udp("10.0.0.9:1"), 2); s != admission.NoPlace {
			t.Errorf("beside 2 learned peers: %v", s)
		}
	}
}

// TestFullHostEvictsItsOwn checks that a source of a host that is full gets the place of a peer of that host, and not that of one of another host.
func TestFullHostEvictsItsOwn(t *testing.T) {
	var p admission.Places[*fakePeer]
	p.Init(admission.Bounds{Peers: 40, Learned: 40, PerHost: 1, GiveUp: giveUp})
	here := &fakePeer{at: udp("10.0.0.1:1"), standing: admission.Standing{InSession: true}}
	other := &fakePeer{at: udp("10.0.0.2:1"), standing: admission.Standing{Down: true}}
	p.Add(other, other.at)
	p.Add(here, here.at)
	if _, s := p.Room(0, udp("10.0.0.1:2"), 2); s != admission.NoPlace {
		t.Errorf("the peer of another host makes room: %v", s)
	}
	here.standing.Down = true
	if x, s := p.Room(seconds(1), udp("10.0.0.1:2"), 2); s != admission.AfterEviction || x != here {
		t.Errorf("evicted is %v, %v", x, s)
	}
}

package dgrdma

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/sealed"
)

// keyHolder is a wire of many peers that have the shared key. What the endpoint sends to each is kept as it is.
type keyHolder struct {
	*forgery
	here transport.Addr
	own  seal.Instance               // of all of them
	sent map[transport.Addr][][]byte // guarded by mu
}

func (w *keyHolder) LocalAddr() transport.Addr { return w.here }

func (w *keyHolder) Send(batch []transport.Outgoing) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range batch {
		w.sent[*o.To] = append(w.sent[*o.To], slices.Concat(o.Buf, o.Rest, o.Tail))
	}
	return len(batch), nil
}

func openKeyHolder(t testing.TB, here transport.Addr, cfg Config) (*Endpoint, *keyHolder) {
	t.Helper()
	w := &keyHolder{forgery: newForgery(), here: here, own: seal.NewInstance(), sent: make(map[transport.Addr][][]byte)}
	cfg.ID, cfg.AcceptAny, cfg.Keys = 2, true, ringOf(1)
	e, err := New(w, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

// ask sends to the endpoint, and returns what it answers.
func (w *keyHolder) ask(from transport.Addr, b []byte) [][]byte {
	w.give(from, b)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.sent[from]
	w.sent[from] = nil
	return answers
}

// keyed is one of those peers.
type keyed struct {
	w    *keyHolder
	from transport.Addr
	id   frame.EndpointID
	keys seal.Keys
}

// agree goes through a handshake, and returns nil if the endpoint lets it not end.
func (w *keyHolder) agree(from transport.Addr, id frame.EndpointID) *keyed {
	asking := seal.Ask(&seal.Key{1}, w.own, 0)
	between := [4]byte{2, 0, byte(id), byte(id >> 8)}
	for _, kind := range []seal.Kind{seal.Challenge, seal.Second} {
		for _, b := range w.ask(from, asking.Again(nil, between)) {
			if seal.KindOf(b) != kind {
				continue
			}
			if kind == seal.Challenge {
				asking.Take(b)
			} else if keys, ok := asking.Second(b); ok {
				return &keyed{w, from, id, keys}
			}
		}
	}
	return nil
}

// shake sends a frame of the handshake, and returns what of the answer could be opened.
func (k *keyed) shake(h frame.Handshake) (answer frame.Handshake, ok bool) {
	b := make([]byte, frame.ListedSize)
	h.Put(b, 2, k.id)
	list := servesMemory()
	list.Put(b[frame.HandshakeSize:])
	for _, b := range k.w.ask(k.from, k.keys.Sealing.Seal(make([]byte, seal.SealedSize(len(b))), b, nil, &seal.Salt{1})) {
		if plain, opened := k.keys.Opening.Open(b); opened {
			if f, err := frame.Parse(plain); err == nil && !frame.IsSession(plain) {
				answer, ok = handshakeIn(&f)
			}
		}
	}
	return answer, ok
}

// introduce reports whether the endpoint took it for a peer.
func (k *keyed) introduce(e *Endpoint) bool {
	if h, ok := k.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}); ok {
		k.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: h.Sender, Check: h.Check})
	}
	c := e.peers.find(peerKey{ids{2, k.id}, k.from})
	return c != nil && c.Stats().FramesReceived > 0
}

// keyedWires are the kinds of addresses: at returns the peer of a host with that number, for the number of a host.
var keyedWires = []struct {
	name string
	here transport.Addr
	at   func(host, peer int) transport.Addr
}{
	{"IPv4", udpAddr("10.9.9.9:7100"), func(host, peer int) transport.Addr {
		return udpAddr(fmt.Sprintf("10.0.%d.%d:%d", host>>8, host&255, 1000+peer%50_000))
	}},
	{"IPv6", udpAddr("[fd00::9]:7100"), func(host, peer int) transport.Addr {
		return udpAddr(fmt.Sprintf("[fd00:0:0:1::%x]:%d", host+16, 1000+peer%50_000))
	}},
	{"Ethernet", transport.EtherAddr([6]byte{2, 9}), func(host, _ int) transport.Addr {
		return transport.EtherAddr([6]byte{2, 1, 0, 0, byte(host >> 8), byte(host)})
	}},
}

// TestKeysByHost checks that a host which has the shared key, and agrees on keys without end, keeps no newcomer of another host
// out, and that peers keep their keys, also those of that host (F10). So if many hosts do.
func TestKeysByHost(t *testing.T) {
	const (
		most, ofHost = 24, 6
		victim       = 200
		newcomer     = 201
	)
	for _, wire := range keyedWires {
		for _, hosts := range fewer([]int{1, 3, 60}, []int{3}) { // each has hundreds of handshakes
			t.Run(fmt.Sprintf("%s/%d", wire.name, hosts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e, w := openKeyHolder(t, wire.here, Config{MaxPeers: most, PeersPerHost: ofHost})
					defer e.Close()
					var peers []*keyed
					for host, n := range map[int]int{0: ofHost - 2, victim: 3} {
						for i := range n {
							k := w.agree(wire.at(host, i), frame.EndpointID(1+i))
							if k == nil || !k.introduce(e) {
								t.Fatalf("peer %d of host %d is none", i, host)
							}
							peers = append(peers, k)
						}
					}
					n := 0
					flood := func(times int) {
						t.Helper()
						for range times {
							if n++; w.agree(wire.at(n%hosts, 100+n), frame.EndpointID(100+n)) == nil {
								t.Fatalf("handshake %d of the flood is refused", n)
							}
						}
					}
					flood(2 * most)
					for i := range 2 {
						k := w.agree(wire.at(newcomer, i), frame.EndpointID(50+i))
						if k == nil {
							t.Fatal("a newcomer gets no key")
						}
						if hosts < most { // else each of them has no more places than the newcomer, and after as many others it is the oldest
							flood(3 * most)
						} else {
							flood(most / 2)
						}
						if !k.introduce(e) {
							t.Error("a newcomer becomes no peer")
						}
					}
					for _, k := range peers {
						before := e.Stats().RefusedBy(RefusedSeal)
						if k.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}); e.Stats().RefusedBy(RefusedSeal) != before {
							t.Errorf("the peer %d at %v has lost its key", k.id, k.from)
						}
					}
					kept, _ := e.sealed.Pairs()
					s := e.Stats()
					if kept > 2*most || s.KeysEvicted != uint64(n+2+len(peers)-kept) || s.RefusedBy(RefusedNoRoom) > 0 {
						t.Errorf("keys of %d peers are kept, %d were forgotten, refused %v", kept, s.KeysEvicted, s.RefusedReasons())
					}
				})
			})
		}
	}
}

// TestKeysOfPeersThatGo checks that the keys of a peer whose connection is closed are kept only as long as there is room for
// them (F10), and that those of a peer that is connected to stay.
func TestKeysOfPeersThatGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openKeyHolder(t, udpAddr("10.9.9.9:7100"), Config{MaxPeers: 8, PeersPerHost: 2})
		defer e.Close()
		at := keyedWires[0].at
		if _, err := e.Connect(Peer{ID: 7, Addr: at(0, 7)}); err != nil {
			t.Fatal(err)
		}
		if w.agree(at(0, 7), 7) == nil {
			t.Fatal("it gets no key")
		}
		for i := range 20 {
			k := w.agree(at(0, 20+i), frame.EndpointID(20+i))
			if k == nil || !k.introduce(e) {
				t.Fatalf("peer %d is none", i)
			}
			e.peers.find(peerKey{ids{2, k.id}, k.from}).Close()
		}
		if n, gone := e.sealed.Pairs(); n != 3 || gone != 2 {
			t.Errorf("keys of %d peers are kept, %d of them of peers that are gone, want 3 and 2", n, gone)
		}
	})
}

// TestMemoryOfKeys checks that a peer that agrees on keys without end, and uses each of them, has no more kept than is said (F10).
func TestMemoryOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := fewer(64, 16)
		e, w := openKeyHolder(t, keyedWires[0].here, Config{MaxPeers: hosts, PeersPerHost: 1})
		defer e.Close()
		heap := func() uint64 {
			w.mu.Lock()
			clear(w.sent)
			w.mu.Unlock()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		for host := range hosts {
			for range 2 * seal.Indexes {
				k := w.agree(keyedWires[0].at(host, 0), 9)
				if k == nil {
					t.Fatal("it gets no key")
				}
				k.shake(frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 5, Receiver: 6}) // which is the answer to nothing
				forged := k.keys.Sealing.Seal(make([]byte, seal.SealedSize(100)), make([]byte, 100), nil, &seal.Salt{1})
				forged[6] = 0x40 // the counter is of the generation after this one
				w.ask(k.from, forged)
			}
		}
		took := (heap() - before) / uint64(hosts)
		t.Logf("%d bytes for each peer", took)
		if took > sealed.PerPeer {
			t.Errorf("%d bytes are kept for the keys of a peer, want at most %d", took, sealed.PerPeer)
		}
		if n, _ := e.sealed.Pairs(); n != hosts {
			t.Errorf("keys of %d peers are kept, want %d", n, hosts)
		}
	})
}

package endpoint

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// forgery is a wire on which anyone can send under any address, and on which all
// that the endpoint sends is kept.
type forgery struct {
	handmade
	in     chan transport.Datagram
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	sent []sentTo
}

type sentTo struct {
	to transport.Addr
	f  frame.Frame
	n  int // bytes
}

func newForgery() *forgery {
	return &forgery{in: make(chan transport.Datagram, 1<<16), closed: make(chan struct{})}
}

func (w *forgery) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	select {
	case dst[0] = <-w.in:
		n := 1
		for ; n < len(dst) && len(w.in) > 0; n++ {
			dst[n] = <-w.in
		}
		return n, nil
	case <-w.closed:
		return 0, net.ErrClosed
	case <-after(wait):
		return 0, nil
	}
}

func (w *forgery) Send(batch []transport.Outgoing) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range batch {
		f, err := frame.Parse(slices.Concat(o.Buf, o.Rest))
		if err != nil {
			panic(err)
		}
		w.sent = append(w.sent, sentTo{*o.To, f, len(o.Buf)})
	}
	return len(batch), nil
}

func (w *forgery) Close() error { w.once.Do(func() { close(w.closed) }); return nil }

// frames returns what was sent until d from now, and forgets it.
func (w *forgery) frames(d time.Duration) []sentTo {
	time.Sleep(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

// hello sends an introduction to endpoint 2 under that id and address.
func (w *forgery) hello(from transport.Addr, id frame.EndpointID, h frame.Hello) (length int) {
	m := h.Message()
	return w.message(from, id, 1, m)
}

func (w *forgery) message(from transport.Addr, id frame.EndpointID, seq frame.Seq, m frame.Message) (length int) {
	b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize)
	hdr := frame.Header{Dst: 2, Src: id, Seq: seq, Flags: frame.FlagMessages}
	hdr.Put(b)
	m.Put(b[frame.HeaderSize:])
	w.give(from, b)
	return len(b)
}

// give sends a frame under that address.
func (w *forgery) give(from transport.Addr, b []byte) {
	w.in <- transport.Datagram{From: from, Data: b}
}

// introduce goes through the whole introduction under that id and address.
func (w *forgery) introduce(t *testing.T, from transport.Addr, id frame.EndpointID, life uint32) {
	t.Helper()
	w.frames(0)
	w.hello(from, id, frame.Hello{Life: life})
	for _, s := range w.frames(time.Millisecond) {
		if h, ok := helloOf(&s.f); ok && s.to == from && h.Peer == life {
			w.hello(from, id, frame.Hello{Life: life, Peer: h.Life, Tells: true})
			w.frames(time.Millisecond)
			return
		}
	}
	t.Fatalf("endpoint %d at %v got no answer", id, from)
}

func openForgery(t testing.TB, cfg Config) (*Endpoint, *forgery) {
	t.Helper()
	mem, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	w := newForgery()
	cfg.ID, cfg.Memory, cfg.AcceptAny = 2, mem, true
	e, err := New(w, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

// TestForgedHelloIsAnsweredOnce: a stranger's frame makes the endpoint send one that
// is no longer, now or ever, and keep nothing (attacks A4 and A9, SECURITY.md).
func TestForgedHelloIsAnsweredOnce(t *testing.T) {
	data := frame.Message{Txn: 99, CompletionAddr: 0, CompletionValue: 1, Count: 0}
	for name, send := range map[string]func(w *forgery) int{
		"hello":      func(w *forgery) int { return w.hello(addrA, 1, frame.Hello{Life: 5}) },
		"helloBack":  func(w *forgery) int { return w.hello(addrA, 1, frame.Hello{Life: 5, Peer: 6}) },
		"helloTells": func(w *forgery) int { return w.hello(addrA, 1, frame.Hello{Life: 5, Peer: 6, Tells: true}) },
		"data":       func(w *forgery) int { return w.message(addrA, 1, 1, data) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{})
				defer e.Close()
				length := send(w)
				want := 1
				if name == "helloTells" {
					want = 0 // it seems to be an answer
				}
				sent := w.frames(24 * time.Hour)
				if len(sent) != want || want > 0 && (sent[0].n > length || sent[0].to != addrA) {
					t.Errorf("%d frames for one of %d bytes, want %d no longer: %+v", len(sent), length, want, sent)
				}
				if s := e.Stats(); s.Peers != 0 || s.Challenges != uint64(want) || s.Completions != 0 {
					t.Errorf("%d peers, %d challenges, %d completions", s.Peers, s.Challenges, s.Completions)
				}
			})
		})
	}
}

// TestStrangersDoNotAnswerEachOther: a frame forged between two endpoints that take
// anyone does not make them answer each other's answers (attack A9, SECURITY.md).
func TestStrangersDoNotAnswerEachOther(t *testing.T) {
	for _, h := range []frame.Hello{{Life: 5}, {Life: 5, Peer: 6}, {Life: 5, Peer: 6, Tells: true}, {}} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			for i, addr := range []transport.Addr{addrA, addrB} {
				e, err := New(n.Attach(addr, simnet.Config{}), &Config{ID: frame.EndpointID(1 + i), AcceptAny: true})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
			}
			m := h.Message()
			if h.Life == 0 {
				m = frame.Message{Txn: 9, CompletionValue: 1, Index: frame.NotHello}
			}
			b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize)
			hdr := frame.Header{Dst: 2, Src: 1, Seq: 1, Flags: frame.FlagMessages}
			hdr.Put(b)
			m.Put(b[frame.HeaderSize:])
			n.Inject(addrA, addrB, b)
			time.Sleep(time.Hour)
			if sent := n.TotalStats().Sent; sent > 2 {
				t.Errorf("%d datagrams for one that was forged, want at most an answer, and one to that", sent)
			}
		})
	}
}

// TestForgedHelloOfAPeerIsBounded: under the address of a peer that is there, a
// forged introduction makes no more than a handful of frames (attack A9, SECURITY.md).
func TestForgedHelloOfAPeerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		w.introduce(t, addrA, 1, 5)
		w.hello(addrA, 1, frame.Hello{Life: 6})
		if n := len(w.frames(24 * time.Hour)); n < 1 || n > helloTries {
			t.Errorf("%d frames, want 1 to %d", n, helloTries)
		}
		if s := e.Conns()[0].Stats(); s.Theirs != 5 || s.Restarts != 0 {
			t.Errorf("the peer was replaced: %+v", s)
		}
	})
}

// TestStrangersCostNoMore: what a stranger's hello costs does not depend on how many
// peers there are (attack A4, SECURITY.md: it was up to 0.96 ms with 4096).
func TestStrangersCostNoMore(t *testing.T) {
	const strangers = 4000
	cost := func(peers int) time.Duration {
		e, w := openForgery(t, Config{MaxPeers: 4097})
		defer e.Close()
		for i := range peers {
			if _, err := e.Connect(Peer{ID: 3, Addr: simnet.Addr(uint32(1e6 + i))}); err != nil {
				t.Fatal(err)
			}
		}
		best := time.Duration(1 << 62)
		for range 5 {
			before := e.Stats().Challenges
			began := time.Now()
			for i := range strangers {
				w.hello(simnet.Addr(uint32(i)), 1, frame.Hello{Life: 5})
			}
			for len(w.in) > 0 {
				time.Sleep(50 * time.Microsecond)
			}
			best = min(best, time.Since(began))
			if n := e.Stats().Challenges - before; n == 0 {
				t.Fatal("nobody was answered")
			}
		}
		return best / strangers
	}
	few, many := cost(1), cost(4096)
	t.Logf("%v with 1 peer, %v with 4096", few, many)
	if many > 8*few+20*time.Microsecond {
		t.Errorf("a stranger costs %v with 4096 peers, %v with one", many, few)
	}
}

// TestFloodKeepsNobodyOut: beside 20,000 forged introductions a second every newcomer
// gets in at once, and no peer is lost however long it is idle (attack A10,
// SECURITY.md).
func TestFloodKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 32, PeersPerHost: 32})
		defer e.Close()
		w.introduce(t, addrA, 1, 5)
		time.Sleep(10 * time.Minute) // far longer than six times GiveUp
		forged := uint32(1e6)
		flood := func(ms int) {
			for range ms {
				for range 20 {
					forged++
					w.hello(simnet.Addr(forged), frame.EndpointID(forged), frame.Hello{Life: forged})
				}
				time.Sleep(time.Millisecond)
			}
		}
		flood(1000)
		for i := range 20 {
			flood(2)
			w.introduce(t, simnet.Addr(uint32(100+i)), frame.EndpointID(100+i), 7)
		}
		flood(1000)
		if n := len(e.Conns()); n != 21 {
			t.Errorf("%d peers, want 21", n)
		}
		if c := e.peers.find(peerKey{ids{2, 1}, addrA}); c == nil || c.Stats().Theirs != 5 {
			t.Error("the idle peer is lost")
		}
	})
}

// TestPeersPerHostWithinMaxPeers: one host has no more places than there are.
func TestPeersPerHostWithinMaxPeers(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	e, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1, MaxPeers: 4, PeersPerHost: 5})
	if want := "PeersPerHost in the configuration is 5, and MaxPeers, the peers of all hosts, 4"; e != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestPeersPerHost: one host, however many ports and ids it has, does not take all
// places, and its peers do not drive out others (attack A10, SECURITY.md).
func TestPeersPerHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 40})
		defer e.Close()
		greedy := func(i int) transport.Addr { return udpAddr(fmt.Sprintf("10.0.0.1:%d", 1000+i)) }
		other := udpAddr("10.0.0.2:1000")
		w.introduce(t, other, 1, 5)
		time.Sleep(10 * time.Minute)
		for i := range 10 {
			w.introduce(t, greedy(i), 9, uint32(i+1))
		}
		for i := range 90 {
			w.hello(greedy(10+i), 9, frame.Hello{Life: uint32(i + 1)})
		}
		if n := len(w.frames(time.Second)); n != 0 {
			t.Errorf("%d answers, though there is no room", n)
		}
		s := e.Stats()
		if s.Peers != 11 || s.RefusedBy(RefusedNoRoom) != 90 {
			t.Errorf("%d peers and %d refused, want 10 of the greedy host, 90 refused, and the other one", s.Peers, s.RefusedBy(RefusedNoRoom))
		}
		if e.peers.find(peerKey{ids{2, 1}, other}) == nil {
			t.Error("the other host's peer is lost")
		}
		e.Conns()[5].Close() // of the greedy ones, which may have another then
		w.introduce(t, greedy(200), 9, 5)
		if n := e.Stats().Peers; n != 11 {
			t.Errorf("%d peers, want 11 again", n)
		}
	})
}

// TestFullTableMakesRoomForWhoProves: the peer that was silent longest goes, if it was
// for six times GiveUp, and only for one that has proven its address.
func TestFullTableMakesRoomForWhoProves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 4, PeersPerHost: 4})
		defer e.Close()
		for i := range 4 {
			w.introduce(t, simnet.Addr(uint32(10+i)), frame.EndpointID(10+i), 5)
			time.Sleep(time.Second)
		}
		w.hello(simnet.Addr(20), 20, frame.Hello{Life: 5})
		w.frames(time.Second)
		if e.peers.len() != 4 || e.Stats().RefusedBy(RefusedNoRoom) == 0 {
			t.Error("a peer that spoke of late was dismissed")
		}
		time.Sleep(61 * time.Second)
		w.hello(simnet.Addr(21), 21, frame.Hello{Life: 5})
		w.frames(time.Second)
		if n := e.Stats().Peers; n != 4 || e.peers.find(peerKey{ids{2, 10}, simnet.Addr(10)}) == nil {
			t.Errorf("%d peers: one was dismissed for a stranger", n)
		}
		if n := e.Stats().Dismissed; n != 0 {
			t.Errorf("%d peers are counted as dismissed, none was", n)
		}
		w.introduce(t, simnet.Addr(20), 20, 5)
		if n := e.Stats().Dismissed; n != 1 {
			t.Errorf("%d peers are counted as dismissed, want 1", n)
		}
		if e.peers.find(peerKey{ids{2, 20}, simnet.Addr(20)}) == nil || e.peers.find(peerKey{ids{2, 10}, simnet.Addr(10)}) != nil {
			t.Error("the one that was silent longest did not make room")
		}
	})
}

// TestLateIntroductionMakesNoPeer: a copy of a whole conversation, held back by the
// network or kept by someone, does not apply anything twice after the peer was closed.
func TestLateIntroductionMakesNoPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		mem, _ := NewRegion(4096)
		e, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s := newStranger(t, n, addrA, 1, 2, addrB)
		theirs := s.greet(life)
		word := data(life, 0, frame.NotHello, 0, nil)
		again := func() {
			s.send(1, msg{Message: frame.Hello{Life: life, Peer: theirs, Tells: true}.Message()})
			s.send(2, word)
			s.recv(10 * time.Millisecond)
		}
		again()
		if e.Stats().Completions != 1 {
			t.Fatalf("%d completions, want 1", e.Stats().Completions)
		}
		for range 3 {
			for _, c := range e.Conns() {
				c.Close()
			}
			again()
			if st := e.Stats(); st.Peers != 0 || st.Completions != 1 {
				t.Errorf("%d peers and %d completions after a replay, want 0 and 1", st.Peers, st.Completions)
			}
		}
		// The same peer in another life is welcome.
		s.greet(life + 1)
		s.send(2, data(life+1, 0, frame.NotHello, 0, nil))
		s.recv(10 * time.Millisecond)
		if st := e.Stats(); st.Peers != 1 || st.Completions != 2 {
			t.Errorf("%d peers and %d completions in a new life, want 1 and 2", st.Peers, st.Completions)
		}
	})
}

// TestForgottenPeerComesBack: an endpoint that forgot a peer, which did not hear of it, is
// as good as one that restarted: what was posted before fails, the next write works.
func TestForgottenPeerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		mem := p.region(4096)
		server := p.open(simnet.Addr(3), &Config{ID: 3, Memory: mem, AcceptAny: true})
		defer server.Close()
		c := p.connect(p.a, Peer{ID: 3, Addr: simnet.Addr(3)})
		for i := range 20 {
			err := c.Write(context.Background(), write(64, pattern(i, 8), 0, uint32(i+1)))
			if forgotten := i%2 == 1; forgotten != (err != nil) {
				t.Fatalf("write %d: %v", i, err)
			}
			if i%2 == 0 {
				server.Conns()[0].end()
			}
		}
	})
}

// TestLostIntroductions: whatever is lost while strangers introduce themselves, what
// they post meanwhile arrives and does not fail, once.
func TestLostIntroductions(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(seed)
			defer n.Close()
			mem, _ := NewRegion(1 << 16)
			server, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			var wg sync.WaitGroup
			for i := range 8 {
				addr := simnet.Addr(uint32(10 + i))
				for _, way := range [][2]transport.Addr{{addr, addrB}, {addrB, addr}} {
					n.Link(way[0], way[1], simnet.Link{Latency: 300 * time.Microsecond, Loss: 0.3, Reorder: 0.2, ReorderBy: 3 * time.Millisecond, Duplicate: 0.1})
				}
				e, err := New(n.Attach(addr, simnet.Config{}), &Config{ID: frame.EndpointID(10 + i)})
				if err != nil {
					t.Fatal(err)
				}
				c, err := e.Connect(Peer{ID: 2, Addr: addrB})
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					defer e.Close()
					for k := range 3 {
						if err := c.Write(context.Background(), write(uint32(4096*i+1024), pattern(i, 3000), uint32(4096*i), uint32(k+1))); err != nil {
							t.Errorf("seed %d, peer %d, write %d: %v", seed, i, k, err)
						}
					}
				})
			}
			wg.Wait()
			if s := server.Stats(); s.Completions != 24 || s.Restarts != 0 {
				t.Errorf("seed %d: %d completions and %d restarts, want 24 and 0", seed, s.Completions, s.Restarts)
			}
		})
	}
}

package dgrdma

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// forgery is a wire on which a sender can take any address, and on which all that the endpoint
// sends is kept.
type forgery struct {
	handmade
	in       chan transport.Datagram
	closed   chan struct{}
	once     sync.Once
	sessions map[peerKey][2]uint32 // epochs: the peer's, the endpoint's

	mu   sync.Mutex
	sent []sentTo
}

type sentTo struct {
	to      transport.Addr
	f       frame.Frame
	session frame.SessionFrame // if it is one
	n       int                // bytes
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
		b := slices.Concat(o.Buf, o.Rest)
		s := sentTo{to: *o.To, n: len(b)}
		var err error
		if frame.IsSession(b) {
			s.session, err = frame.ParseSession(b)
		} else {
			s.f, err = frame.Parse(b)
		}
		if err != nil {
			panic(err)
		}
		w.sent = append(w.sent, s)
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

// shake sends a frame of the handshake to endpoint 2 under that id and address.
func (w *forgery) shake(from transport.Addr, id frame.EndpointID, h frame.Handshake) (length int) {
	b := make([]byte, frame.ListedSize)
	h.Put(b, 2, id)
	list := servesMemory()
	list.Put(b[frame.HandshakeSize:])
	w.give(from, b)
	return len(b)
}

// message sends a frame with a message, of the session if there is one, whose ids are counted from the epoch.
func (w *forgery) message(from transport.Addr, id frame.EndpointID, seq frame.Seq, m frame.Message) (length int) {
	if of, ok := w.sessions[peerKey{ids{2, id}, from}]; ok {
		b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize)
		h := frame.SessionHeader{Dst: 2, Src: id, ID: of[0] + uint32(seq), Tag: session.Tag(session.Epoch(of[1]), session.Epoch(of[0])), Ack: of[1]}
		h.Put(b)
		m.Put(b[frame.SessionHeaderSize:])
		w.give(from, b)
		return len(b)
	}
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

// introduce begins a session under that id and address.
func (w *forgery) introduce(t *testing.T, from transport.Addr, id frame.EndpointID, epoch uint32) {
	t.Helper()
	w.frames(0)
	w.shake(from, id, frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch})
	for _, s := range w.frames(time.Millisecond) {
		if h, ok := handshakeIn(&s.f); ok && s.to == from && h.Receiver == epoch {
			if w.sessions == nil {
				w.sessions = map[peerKey][2]uint32{}
			}
			w.sessions[peerKey{ids{2, id}, from}] = [2]uint32{epoch, h.Sender}
			w.shake(from, id, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: epoch, Receiver: h.Sender, Check: h.Check})
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

// welcomed reports whether one of the frames is a WELCOME to that address.
func welcomed(sent []sentTo, at transport.Addr) bool {
	return slices.ContainsFunc(sent, func(s sentTo) bool {
		h, ok := handshakeIn(&s.f)
		return ok && h.Kind == frame.HandshakeWelcome && s.to == at
	})
}

// manyAtOnce is a wire that moves many datagrams at once.
type manyAtOnce struct{ *forgery }

func (manyAtOnce) Caps() transport.Caps { return transport.Caps{MTU: 1490, Batch: 1024} }

// hello sends a HELLO.
func (w *forgery) hello(from transport.Addr, id frame.EndpointID, epoch uint32) (length int) {
	return w.shake(from, id, frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch})
}

// TestForgedHelloIsAnsweredOnce checks that the frame of an unknown source makes the endpoint send one that is no longer, now or ever,
// and keep nothing (attacks A4 and A9, SECURITY.md).
func TestForgedHelloIsAnsweredOnce(t *testing.T) {
	for _, q := range questions() {
		t.Run(q.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{})
				defer e.Close()
				w.give(addrA, q.frame)
				want := 0
				if q.reset || q.found != session.NoFrame {
					want = 1
				}
				sent := w.frames(24 * time.Hour)
				if len(sent) != want || want > 0 && (sent[0].n > len(q.frame) || sent[0].to != addrA) {
					t.Errorf("%d frames for one of %d bytes, want %d no longer: %+v", len(sent), len(q.frame), want, sent)
				}
				if s := e.Stats(); s.Peers != 0 || s.Challenges != uint64(want) || s.Completions != 0 {
					t.Errorf("%d peers, %d challenges, %d completions", s.Peers, s.Challenges, s.Completions)
				}
			})
		})
	}
}

// TestUnknownSourcesDoNotAnswerEachOther checks that a frame forged between two endpoints that take any peer does not make them answer each
// other's answers (attack A9, SECURITY.md).
func TestUnknownSourcesDoNotAnswerEachOther(t *testing.T) {
	for _, q := range questions() {
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
			for _, way := range [][2]transport.Addr{{addrA, addrB}, {addrB, addrA}} {
				n.Link(way[0], way[1], simnet.Link{Latency: time.Millisecond}) // or it would never be seen that they do
			}
			n.Inject(addrA, addrB, q.frame)
			time.Sleep(10 * time.Second)
			if sent := n.TotalStats().Sent; sent > 2 {
				t.Errorf("%s: %d datagrams with the one that was forged, want at most an answer", q.name, sent)
			}
		})
	}
}

// TestForgedHelloOfAPeerIsNotAmplified checks that under the address of a peer that is there a forged frame of the handshake makes at
// most one frame, no longer than it, and ends nothing (attack A9, SECURITY.md).
func TestForgedHelloOfAPeerIsNotAmplified(t *testing.T) {
	for _, checked := range []bool{false, true} {
		for _, q := range questions() {
			for _, behind := range []int{0, 1, 12, frame.ListedSize - frame.HandshakeSize - 1, frame.ListedSize - frame.HandshakeSize, 300} {
				synctest.Test(t, func(t *testing.T) { forgedOfAPeer(t, q, behind, checked) })
			}
		}
	}
}

func forgedOfAPeer(t *testing.T, q question, behind int, checked bool) {
	e, w := openForgery(t, Config{Checksum: checked})
	defer e.Close()
	w.introduce(t, addrA, 1, 5)
	w.frames(time.Hour)
	b := append(make([]byte, 0, 512), q.frame...)
	b = append(b, make([]byte, behind)...)
	if checked {
		b = frame.AddChecksum(b)
	}
	w.give(addrA, b)
	sent := w.frames(24 * time.Hour)
	want := 0
	if q.reset || q.found != session.NoFrame {
		want = 1
	}
	if q.name == "HELLO" { // of the epoch of the session, which is up
		want = 0
	}
	if len(sent) != want || want > 0 && sent[0].n > len(b) {
		t.Errorf("%s of %d bytes: %d frames, want %d: %+v", q.name, len(b), len(sent), want, sent)
	}
	if s := e.Conns()[0].Stats(); s.Theirs != 5 || s.Restarts != 0 {
		t.Errorf("%s: the peer was replaced: %+v", q.name, s)
	}
}

// TestForgedHelloOfAPeerIsBounded checks that a HELLO of another epoch under the address of a peer that is there is answered once, and
// with a list of services if it is as long (attack A9, SECURITY.md).
func TestForgedHelloOfAPeerIsBounded(t *testing.T) {
	for _, length := range []int{frame.HandshakeSize, frame.ListedSize - 1, frame.ListedSize, frame.ListedSize + 1} {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{})
			defer e.Close()
			w.introduce(t, addrA, 1, 5)
			w.frames(time.Hour)
			b := make([]byte, length)
			h := frame.Handshake{Kind: frame.HandshakeHello, Sender: 6}
			h.Put(b, 2, 1)
			w.give(addrA, b)
			sent := w.frames(24 * time.Hour)
			if len(sent) != 1 {
				t.Fatalf("%d frames, want 1", len(sent))
			}
			got, _ := handshakeIn(&sent[0].f)
			if _, told := sent[0].f.Services(); got.Kind != frame.HandshakeWelcome || got.Receiver != 6 || told != (length >= frame.ListedSize) || sent[0].n > length {
				t.Errorf("asked with %d bytes: %+v, told %v in %d", length, got, told, sent[0].n)
			}
			if s := e.Conns()[0].Stats(); s.Theirs != 5 || s.Restarts != 0 {
				t.Errorf("the peer was replaced: %+v", s)
			}
		})
	}
}

// TestUnknownSourcesCostNoMore checks that what the HELLO of an unknown source costs does not depend on how many peers there are (attack A4,
// SECURITY.md: it was up to 0.96 ms with 4096).
func TestUnknownSourcesCostNoMore(t *testing.T) {
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
				w.hello(simnet.Addr(uint32(i)), 1, 5)
			}
			for len(w.in) > 0 {
				time.Sleep(50 * time.Microsecond)
			}
			best = min(best, time.Since(began))
			if n := e.Stats().Challenges - before; n == 0 {
				t.Fatal("no HELLO was answered")
			}
		}
		return best / strangers
	}
	few, many := cost(1), cost(4096)
	t.Logf("%v with 1 peer, %v with 4096", few, many)
	if many > 8*few+20*time.Microsecond {
		t.Errorf("an unknown source costs %v with 4096 peers, %v with one", many, few)
	}
}

// TestFloodKeepsNoPeerOut checks that during 20,000 forged frames a second of any kind every newcomer gets in at once, and no peer is
// lost however long it is idle; and that what is kept of the forged ones is nothing (attack A10, SECURITY.md).
func TestFloodKeepsNoPeerOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 32, PeersPerHost: 32})
		defer e.Close()
		w.introduce(t, addrA, 1, 5)
		time.Sleep(10 * time.Minute) // far longer than six times GiveUp
		forged := uint32(1e6)
		flood := func(ms int) {
			for range ms {
				for range 5 {
					forged++
					id := frame.EndpointID(forged | 1)
					w.hello(simnet.Addr(forged), id, forged)
					w.shake(simnet.Addr(forged), id, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: forged, Receiver: forged + 1, Check: forged + 2})
					w.hello(addrA, 1, forged) // in the peer's name
					w.shake(addrA, 1, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: forged, Receiver: forged + 1, Check: forged + 2})
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

// TestPeersPerHostWithinMaxPeers checks that one host has no more places than there are.
func TestPeersPerHostWithinMaxPeers(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	e, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1, MaxPeers: 4, PeersPerHost: 5})
	if want := "PeersPerHost in the configuration is 5, and MaxPeers, the peers of all hosts, 4"; e != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestPeersPerHost checks that one host, however many ports and ids it has, does not take all places, and its peers do not drive out
// others; and that a source that asks when there is no room is told so (attack A10, SECURITY.md).
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
			w.hello(greedy(10+i), 9, uint32(i+1))
			w.frames(0)
			for _, s := range w.frames(time.Millisecond) {
				h, _ := handshakeIn(&s.f)
				if r, ok := frame.RefusalOf(&s.f); !ok || h.Kind != frame.HandshakeRefused || r.Why != uint8(session.NoRoom) {
					t.Errorf("answered with %+v, %+v, though there is no room", h, r)
				}
			}
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

// TestFullTableMakesRoomForProof checks that the peer that was silent longest goes, if it was for six times GiveUp, and only for
// one that has proven its address (attack A10, SECURITY.md).
func TestFullTableMakesRoomForProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 4, PeersPerHost: 4})
		defer e.Close()
		for i := range 4 {
			w.introduce(t, simnet.Addr(uint32(10+i)), frame.EndpointID(10+i), 5)
			time.Sleep(time.Second)
		}
		w.hello(simnet.Addr(20), 20, 5)
		w.frames(time.Second)
		if e.peers.len() != 4 || e.Stats().RefusedBy(RefusedNoRoom) == 0 {
			t.Error("a peer that spoke of late was dismissed")
		}
		time.Sleep(61 * time.Second)
		w.hello(simnet.Addr(21), 21, 5)
		w.frames(time.Second)
		if n := e.Stats().Peers; n != 4 || e.peers.find(peerKey{ids{2, 10}, simnet.Addr(10)}) == nil {
			t.Errorf("%d peers: one was dismissed for an unknown source", n)
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

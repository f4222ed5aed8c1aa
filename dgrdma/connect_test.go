package dgrdma

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// selecting is a wire that notes for which ids it is to pass frames on, and may have no
// address of its own.
type selecting struct {
	*forgery
	ids  []uint16
	err  error
	here transport.Addr
}

func (s *selecting) Select(id uint16) error    { s.ids = append(s.ids, id); return s.err }
func (s *selecting) LocalAddr() transport.Addr { return s.here }

func openSelecting(t *testing.T, cfg Config) (*Endpoint, *selecting) {
	t.Helper()
	w := &selecting{forgery: newForgery(), here: addrB}
	cfg.ID = 2
	e, err := New(w, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

// TestConnectAs checks that the wire passes on what is for the ids that peers know us by, of which
// it knows the endpoint's, and that a peer that cannot be heard is not connected to.
func TestConnectAs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openSelecting(t, Config{})
		defer e.Close()
		for _, as := range []frame.EndpointID{0, 9, 2} {
			if _, err := e.Connect(Peer{ID: 5, Addr: simnet.Addr(uint32(10 + as)), As: as}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(w.ids, []uint16{9}) {
			t.Errorf("the wire passes on %d, too, want 9", w.ids)
		}
		w.err = errors.New("no filter")
		w.frames(time.Second)
		if c, err := e.Connect(Peer{ID: 5, Addr: simnet.Addr(5), As: 10}); c != nil || !errors.Is(err, w.err) || len(e.Conns()) != 3 {
			t.Errorf("connected to who is not heard: %v, %d peers", err, len(e.Conns()))
		}
	})
}

// TestConnectRefuses checks that Connect says what cannot be connected to, and why, and that it
// sends nothing there.
func TestConnectRefuses(t *testing.T) {
	native, driver, broken := Native(), OpenCPI2(), Native()
	broken.Window = -1
	good := Peer{ID: 5, Addr: simnet.Addr(5)}
	with := func(change func(p *Peer)) Peer { p := good; change(&p); return p }
	for _, c := range []struct {
		name string
		peer Peer
		cfg  Config
		is   error  // what it is
		says string // or says
		ends func(t *testing.T, e *Endpoint, w *selecting)
	}{
		{name: "anyone", peer: good},
		{name: "the least id", peer: with(func(p *Peer) { p.ID = 1 })},
		{name: "all memory that there can be", peer: with(func(p *Peer) { p.Size = 1 << 32 })},
		{name: "from no address", peer: Peer{ID: 5, Addr: udpAddr("10.0.0.1:7100")}, ends: func(_ *testing.T, _ *Endpoint, w *selecting) { w.here = transport.Addr{} }},
		{name: "the last one", peer: good, cfg: Config{MaxPeers: 2}, ends: func(t *testing.T, e *Endpoint, _ *selecting) { connectTo(t, e, 6) }},
		{name: "no id", peer: with(func(p *Peer) { p.ID = 0 }), says: "peer id is 0"},
		{name: "no address", peer: Peer{ID: 5}, says: "no address"},
		{name: "memory behind all addresses", peer: with(func(p *Peer) { p.Size = 1<<32 + 1 }), is: ErrBounds},
		{name: "another wire", peer: with(func(p *Peer) { p.Addr = udpAddr("10.0.0.1:7100") }), says: "an address of another kind"},
		{name: "IPv6 from IPv4", peer: with(func(p *Peer) { p.Addr = udpAddr("[::1]:7100") }), says: "an address of another kind", ends: func(_ *testing.T, _ *Endpoint, w *selecting) { w.here = udpAddr("127.0.0.1:7100") }},
		{name: "a profile that cannot be", peer: with(func(p *Peer) { p.Profile = &broken }), says: "indow"},
		{name: "twice", peer: good, is: ErrPeerExists, ends: func(t *testing.T, e *Endpoint, _ *selecting) { connectTo(t, e, 5) }},
		{name: "one too many", peer: good, is: ErrTooManyPeers, cfg: Config{MaxPeers: 2}, ends: func(t *testing.T, e *Endpoint, _ *selecting) {
			connectTo(t, e, 6)
			connectTo(t, e, 7)
		}},
		{name: "of another kind, as which it is learned", peer: with(func(p *Peer) { p.Profile = &driver }), is: ErrPeerExists, cfg: Config{AcceptAny: true}, ends: learned},
		{name: "of the kind as which it is learned", peer: with(func(p *Peer) { p.Profile = &native }), cfg: Config{AcceptAny: true}, ends: learned},
		{name: "learned, and down", peer: good, cfg: Config{AcceptAny: true}, ends: func(t *testing.T, e *Endpoint, w *selecting) {
			learned(t, e, w)
			if err := e.Conns()[0].Post(write(0, nil, 0, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if e.Conns()[0].Err() == nil {
				t.Fatal("not down")
			}
		}},
		{name: "when it ends", peer: good, is: ErrClosed, ends: func(_ *testing.T, e *Endpoint, _ *selecting) { e.draining.Store(true) }},
		{name: "when it is closed", peer: good, is: ErrClosed, ends: func(_ *testing.T, e *Endpoint, _ *selecting) { e.Close() }},
		{name: "when it has failed", peer: good, is: errPanic, ends: func(_ *testing.T, e *Endpoint, _ *selecting) { e.sched.Break(errPanic) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openSelecting(t, c.cfg)
				defer e.Close()
				if c.ends != nil {
					c.ends(t, e, w)
				}
				w.frames(30 * time.Second)
				before := len(e.Conns())
				conn, err := e.Connect(c.peer)
				if c.is == nil && c.says == "" {
					if err != nil || conn == nil || len(e.Conns()) != max(1, before) && len(e.Conns()) != before+1 {
						t.Errorf("%v, %d peers", err, len(e.Conns()))
					}
					return
				}
				if conn != nil || err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %v%s", err, c.is, c.says)
				}
				for _, s := range w.frames(time.Millisecond) {
					if s.to == c.peer.Addr {
						t.Errorf("%v is sent to, who was refused", s.to)
					}
				}
				if n := len(e.Conns()); n != before {
					t.Errorf("%d peers, and %d before", n, before)
				}
			})
		})
	}
}

func connectTo(t *testing.T, e *Endpoint, id frame.EndpointID) *Conn {
	t.Helper()
	c, err := e.Connect(Peer{ID: id, Addr: simnet.Addr(uint32(id))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// learned has the endpoint learn peer 5.
func learned(t *testing.T, e *Endpoint, w *selecting) { w.introduce(t, simnet.Addr(5), 5, 50) }

// TestWireThatIsStuck checks that a goroutine that connects, serves or accepts does not wait for a
// wire that is stuck, and keeps no other goroutine waiting.
func TestWireThatIsStuck(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, e *Endpoint){
		"connect": func(t *testing.T, e *Endpoint) { connectTo(t, e, 7) },
		"serve":   func(t *testing.T, e *Endpoint) { serve(t, e, newShelf("post", 1<<16)) },
		"accept":  func(_ *testing.T, e *Endpoint) { e.AcceptAny(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				h, e, c := openHooked(t, n, Native(), Config{})
				defer e.Close()
				s := newStranger(t, n, addrA, 1, 2, addrB)
				s.greet(life)
				s.recv(time.Minute)
				c.guest.Store(true)
				stuck, free := make(chan bool), make(chan bool)
				h.after = func() {
					select {
					case <-stuck:
					default:
						close(stuck)
					}
					<-free
				}
				called := time.Now()
				time.AfterFunc(time.Second, func() { close(free) })
				call(t, e)
				<-stuck
				e.Size()
				if time.Since(called) != 0 {
					t.Errorf("waited for the wire for %v", time.Since(called))
				}
			})
		})
	}
}

// TestAcceptTellsLearnedPeers checks that a peer that may write into the memory from now on is told so
// and no other peer is told anything, and that an endpoint that stops to accept admits no peer.
func TestAcceptTellsLearnedPeers(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.recv(time.Minute)
		for _, x := range []struct {
			guest, accept bool
			told          bool
		}{{false, true, false}, {true, false, false}, {true, true, true}, {false, false, false}} {
			c.guest.Store(x.guest)
			e.AcceptAny(x.accept)
			told := false
			for _, f := range s.recv(10 * time.Millisecond) {
				if m := f.Cursor(); m.Next() && m.Msg.Type == frame.TypeServices {
					told = true
					s.acks(f.Seq)
				}
			}
			s.recv(time.Minute)
			if told != x.told || c.guest.Load() != (x.guest && !x.accept) {
				t.Errorf("guest %v, accept %v: told %v, guest %v", x.guest, x.accept, told, c.guest.Load())
			}
		}
	})
}

// TestClosedWireIsLeftAlone checks that a change after the end does not reach the wire.
func TestClosedWireIsLeftAlone(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	f := &focusing{Conn: n.Attach(addrB, simnet.Config{})}
	e, err := New(f, &Config{ID: 2, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	connectTo(t, e, 7)
	e.Close()
	before := f.on
	if e.AcceptAny(true); f.on != before {
		t.Errorf("listens to %v when it is closed, and before to %v", f.on, before)
	}
}

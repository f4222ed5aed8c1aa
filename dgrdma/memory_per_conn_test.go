package dgrdma

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// eachItsOwn gives every peer a Region of its own.
type eachItsOwn struct {
	noMemory
	mu   sync.Mutex
	made map[frame.EndpointID]*Region
}

func (m *eachItsOwn) For(c *Conn) Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := NewRegion(4096)
	if err != nil {
		panic(err)
	}
	if m.made[c.Peer().ID] != nil {
		panic("asked twice for one connection")
	}
	m.made[c.Peer().ID] = r
	return r
}

// TestPerConn checks that the same address is another place for every peer, also for those that are
// learned.
func TestPerConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &eachItsOwn{made: make(map[frame.EndpointID]*Region)}
		p := newPair(t, pairConfig{b: Config{Memory: memory, AcceptAny: true}})
		defer p.close()
		// Whether it was learned or connected before: it stays one connection.
		synctest.Wait()
		if c, err := p.b.Connect(Peer{ID: 1, Addr: addrA}); err == nil && c != p.toA {
			t.Error("a second connection to one peer")
		}
		other, err := New(p.net.Attach(simnet.Addr(3), simnet.Config{}), &Config{ID: 3})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		fromOther, err := other.Connect(Peer{ID: 2, Addr: addrB})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.toB.Write(context.Background(), write(64, []byte("to one"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		if err := fromOther.Write(context.Background(), write(64, []byte("to two"), 0, 2)); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[frame.EndpointID]string{1: "to one", 3: "to two"} {
			r := memory.made[id]
			if got := string(r.Bytes()[64:70]); got != want || r.Load32(0) != uint32(id+1)/2 {
				t.Errorf("peer %d wrote %q and completed with %d", id, got, r.Load32(0))
			}
		}
		if got := p.b.Conns(); len(got) != 2 || got[0].Memory() == got[1].Memory() {
			t.Errorf("%d connections", len(got))
		}
	})
}

// noneFor gives one peer no memory.
type noneFor struct {
	Region
	peer frame.EndpointID
}

func (n *noneFor) For(c *Conn) Memory {
	if c.Peer().ID == n.peer {
		return nil
	}
	return &n.Region
}

// TestPerConnOfNothing checks that a peer that has no memory here is refused what it writes.
func TestPerConnOfNothing(t *testing.T) {
	memory := &noneFor{peer: 1}
	withFakePeer(t, Config{Memory: memory}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		s.send(2, data(life, 1, 1, 0, pattern(1, 8)))
		s.recv(time.Millisecond)
		if got := c.Stats().Refused[RefusedBounds]; got != 1 {
			t.Errorf("%d frames refused, want 1", got)
		}
	})
}

// revoked is a memory that is taken away while a peer writes into it.
type revoked struct {
	Region
	gone  bool
	admit func()
}

func (w *revoked) Admit(src frame.EndpointID, m *frame.Message) ([]byte, error) {
	if w.gone {
		return nil, Swallow(errors.New("gone"))
	}
	if m.Len > 0 && w.admit != nil {
		w.admit()
	}
	return w.Region.Admit(src, m)
}

// TestAfterBatch checks that memory that is taken away while a frame is being applied is free after
// that, and at once while nothing is.
func TestAfterBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := NewRegion(4096)
		w := &revoked{Region: Region{mem: r.mem}}
		p := newPair(t, pairConfig{b: Config{Memory: w}})
		defer p.close()
		time.Sleep(time.Second)
		free := make(chan byte, 2)
		w.admit = func() {
			w.admit, w.gone = nil, true
			p.b.AfterBatch(func() { free <- w.mem[100] })
			if len(free) > 0 {
				t.Error("free before it was written to")
			}
		}
		if err := p.toB.Write(context.Background(), write(100, []byte{7}, 0, 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(free) != 1 || <-free != 7 {
			t.Error("not free, or before it was written to")
		}
		p.b.AfterBatch(func() { free <- 0 })
		if len(free) != 1 {
			t.Error("not free at once")
		}
	})
}

// TestPostToLife checks that what is meant for one life of a peer does not reach the next.
func TestPostToLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		life := p.toB.Life()
		post := func(life, value uint32) error {
			done := make(chan error, 1)
			err := p.toB.PostTo(life, &Transaction{Completion: Word(8, value), Done: func(_ *Transaction, err error) { done <- err }})
			if err != nil {
				return err
			}
			return <-done
		}
		if err := post(life, 1); err != nil {
			t.Fatal(err)
		}
		if err := post(0, 4); !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("posted to no life: %v", err)
		}
		p.b.Close()
		memory := p.region(4096)
		b := p.open(addrB, &Config{ID: 2, Memory: memory})
		defer b.Close()
		p.connect(b, Peer{ID: 1, Addr: addrA})
		time.Sleep(5 * time.Second)
		if err := post(life, 2); !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("posted to a life that is over: %v", err)
		}
		if now := p.toB.Life(); now == life {
			t.Error("the life is the same")
		} else if err := post(now, 3); err != nil || memory.Load32(8) != 3 {
			t.Errorf("posted to the new one: %v, memory holds %d", err, memory.Load32(8))
		}
	})
}

// closing is a memory that has another goroutine close the endpoint the moment a transaction
// completes.
type closing struct {
	Region
	close func()
}

func (c *closing) Complete(src frame.EndpointID, m *frame.Message) {
	c.Region.Complete(src, m)
	go c.close()
	time.Sleep(time.Millisecond) // as if others had the processor
}

// TestCloseAcknowledges checks that what was completed is acknowledged, whichever side closes the
// endpoint and when. Found by a program that ended with the last message.
func TestCloseAcknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := NewRegion(4096)
		memory := &closing{Region: Region{mem: r.mem}}
		p := newPair(t, pairConfig{b: Config{Memory: memory}})
		defer p.close()
		time.Sleep(time.Second)
		memory.close = func() { p.b.Stop() }
		if err := p.toB.Write(context.Background(), write(64, []byte("last"), 0, 1)); err != nil {
			t.Error(err)
		}
	})
}

// perConnMemory gives each peer a memory of its own.
type perConnMemory map[*Conn]Memory

func (perConnMemory) Admit(EndpointID, *Message) ([]byte, error) { return nil, ErrBounds }
func (perConnMemory) Complete(EndpointID, *Message)              {}

// For implements [PerConn].
func (p perConnMemory) For(c *Conn) Memory {
	if p[c] == nil {
		r, _ := NewRegion(4096)
		p[c] = r
	}
	return p[c]
}

// TestMemoriesAreTheProgramsOwn checks that a program gets back the memory that it gave, and that a
// connection is the same one wherever it is met.
func TestMemoriesAreTheProgramsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		each := make(perConnMemory)
		events := make(chan *Conn, 10)
		b, err := New(n.Attach(simnet.Addr(2), simnet.Config{}), &Config{
			ID: 2, Memory: each, OnEvent: func(e Event) {
				if e.Kind == PeerUp {
					events <- e.Conn
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, ok := b.Memory().(perConnMemory); !ok {
			t.Errorf("the endpoint's memory is a %T", b.Memory())
		}
		toA, err := b.Connect(Peer{ID: 1, Addr: simnet.Addr(1)})
		if err != nil {
			t.Fatal(err)
		}
		region, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(n.Attach(simnet.Addr(1), simnet.Config{}), &Config{ID: 1, Memory: region})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		toB, err := a.Connect(Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		if err := toB.Write(t.Context(), &Transaction{Completion: Word(8, 5)}); err != nil {
			t.Fatal(err)
		}
		if a.Memory() != Memory(region) || toB.Memory() != Memory(region) {
			t.Errorf("a Region is given back as %T and %T", a.Memory(), toB.Memory())
		}
		if len(each) != 1 || each[toA] == nil || toA.Memory() != each[toA] || each[toA].(*Region).Load32(8) != 5 {
			t.Errorf("memories %v, of the connection %v", each, toA.Memory())
		}
		if c := <-events; c != toA || len(b.Conns()) != 1 || b.Conns()[0] != toA {
			t.Errorf("connection %p is told as %p, listed as %p", toA, c, b.Conns())
		}
	})
}

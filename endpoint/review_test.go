package endpoint

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestOverCountedWaitsForOvertakenFrames: a younger transaction that arrives
// first says nothing about frames between it and the older one (quirk F19).
func TestOverCountedWaitsForOvertakenFrames(t *testing.T) {
	withStranger(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		mem := e.memory.(*Region)
		part := pattern(1, 16)
		s.send(8, data(2, 1, 1, 256, part))
		s.send(5, data(1, 3, 1, 64, part))
		s.send(6, data(1, 3, 2, 80, part))
		s.recv(10 * time.Millisecond)
		if got := c.Stats().Completions; got != 1 {
			t.Fatalf("%d completions before the last message came, want 1", got)
		}
		s.send(7, data(1, 3, 3, 96, part))
		s.recv(10 * time.Millisecond)
		if st := c.Stats(); st.Completions != 2 || st.Open != 0 || mem.Load32(0) != 2 {
			t.Errorf("%d completions, %d open, word %d", st.Completions, st.Open, mem.Load32(0))
		}
	})
}

// TestInterleavedTransactionsOfOneFrame: messages of one transaction that are
// apart in their frame may contradict each other too.
func TestInterleavedTransactionsOfOneFrame(t *testing.T) {
	eight := []byte("12345678")
	cases := []struct {
		name  string
		third msg
	}{
		{"countGrows", data(life, 200, 150, 72, eight)},
		{"sameIndex", data(life, 2, 1, 72, eight)},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				s.send(2, data(life, 2, 1, 64, eight), data(life+1, 1, 1, 128, eight), x.third)
				if acked(s.recv(10*time.Millisecond), 2) {
					t.Error("was acknowledged")
				}
				if st := c.Stats(); st.RefusedBy(RefusedInconsistent) != 1 || st.Completions != 0 || st.Open != 0 {
					t.Errorf("refused %v, %d completions, %d open", st.Refused, st.Completions, st.Open)
				}
			})
		})
	}
}

// hooked is a wire that calls a function after each Send that has frames.
type hooked struct {
	*simnet.Conn
	after func()
}

func (h *hooked) Send(b []transport.Outgoing) (int, error) {
	n, err := h.Conn.Send(b)
	if h.after != nil {
		h.after()
	}
	return n, err
}

func openHooked(t *testing.T, n *simnet.Network, prof Profile, cfg Config) (*hooked, *Endpoint, *Conn) {
	t.Helper()
	h := &hooked{Conn: n.Attach(addrB, simnet.Config{Poison: true})}
	cfg.ID = 2
	e, err := New(h, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
	if err != nil {
		t.Fatal(err)
	}
	return h, e, c
}

// TestUnacknowledgedPeerDuringSend: what is settled by being sent may have been
// settled otherwise while it was.
func TestUnacknowledgedPeerDuringSend(t *testing.T) {
	cases := []struct {
		name   string
		during func(s *stranger, c *Conn)
		want   error
	}{
		{"acknowledged", func(s *stranger, c *Conn) {
			b := s.encode(1)
			frame.PutAck(b, 1, 1)
			s.raw(b)
			for c.Stats().InFlight > 0 {
				runtime.Gosched()
			}
		}, nil},
		{"reset", func(_ *stranger, c *Conn) { c.Reset(0) }, ErrReset},
		{"overdue", func(_ *stranger, c *Conn) {
			var fin finished
			c.expire(c.ep.now().Add(time.Second), &fin)
		}, nil},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				h, e, c := openHooked(t, n, OpenCPI2(), Config{FirstFrame: 1})
				defer e.Close()
				s := newStranger(t, n, addrA, 1, 2, addrB)
				h.after = func() {
					h.after = nil
					x.during(s, c)
				}
				if err := c.Write(context.Background(), write(0, pattern(1, 8), 0, 1)); !errors.Is(err, x.want) {
					t.Fatal(err)
				}
				for i := range 48 {
					if err := c.Write(context.Background(), write(0, pattern(i, 8), 0, 1)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(5 * time.Second)
				if st := c.Stats(); st.InFlight != 0 || st.Down {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// pacing lets one frame go per gap.
type pacing struct {
	ack.FixedWindow
	gap  time.Duration
	next ack.Instant
}

func (p *pacing) OnSent(now ack.Instant, _ int)               { p.next = now.Add(p.gap) }
func (p *pacing) NextSend(now ack.Instant, _ int) ack.Instant { return max(now, p.next) }

// TestPacedRetransmission: a lost frame that the controller holds back leaves
// when it may, although nothing else is queued.
func TestPacedRetransmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{NewController: func(int) ack.Controller {
			return &pacing{gap: 50 * time.Millisecond}
		}}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p.net.Link(addrA, addrB, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
			return simnet.Verdict{Drop: i == 0}
		}})
		begin := time.Now()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 2)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// TestCloseOfBothAtOnce: a connection and its endpoint are closed at the same
// time; every Post is answered all the same.
func TestCloseOfBothAtOnce(t *testing.T) {
	for _, x := range []struct {
		name string
		call func(c *Conn)
	}{
		{"close", func(c *Conn) { c.Close() }},
		{"reset", func(c *Conn) { c.Reset(0) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			for range 300 {
				n := simnet.New(1)
				_, e, c := openHooked(t, n, Native(), Config{})
				var answers atomic.Int32
				for range 100 {
					tx := write(0, nil, 0, 1)
					tx.Done = func(*Transaction, error) { answers.Add(1) }
					if err := c.Post(tx); err != nil {
						t.Fatal(err)
					}
				}
				called := make(chan struct{})
				go func() {
					x.call(c)
					close(called)
				}()
				e.Close()
				<-called
				if got := answers.Load(); got != 100 {
					t.Fatalf("%d answers to 100 posts", got)
				}
				n.Close()
			}
		})
	}
}

// TestRoomWakesAllWriters: when the queue empties at once, all who wait for it
// get in.
func TestRoomWakesAllWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		_, e, c := openHooked(t, n, OpenCPI(false), Config{Queue: 4, FirstFrame: 1})
		defer e.Close()
		s := newStranger(t, n, addrA, 1, 2, addrB)
		for range 8 {
			go c.Write(context.Background(), write(0, pattern(1, 8), 0, 1))
		}
		sent := s.recv(10 * time.Millisecond)
		b := s.encode(1)
		frame.PutAck(b, 1, uint8(len(sent)))
		s.raw(b)
		s.recv(10 * time.Millisecond)
		if got := c.Stats().Queued; got != 4 {
			t.Errorf("%d queued, room for 4", got)
		}
	})
}

// TestControllerStartsWithTheLife: frames that were in flight to a peer's old
// life do not count in the new one.
func TestControllerStartsWithTheLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		p := newPair(t, pairConfig{a: Config{NewController: func(int) ack.Controller {
			made++
			return &ack.FixedWindow{}
		}}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		before := made
		p.restartB(Config{})
		time.Sleep(time.Second)
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if made == before {
			t.Error("the controller of the old life was kept")
		}
	})
}

// resetting resets its connection when a transaction completes.
type resetting struct {
	*Region
	complete func()
}

func (r *resetting) Complete(src frame.EndpointID, m *frame.Message) {
	r.Region.Complete(src, m)
	if r.complete != nil {
		r.complete()
	}
}

// TestResetInsideBatch: what a batch acknowledged before Reset does not count
// for the frames that were sent after it.
func TestResetInsideBatch(t *testing.T) {
	mem, _ := NewRegion(4096)
	hook := &resetting{Region: mem}
	withStranger(t, Config{Memory: hook}, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		answers := make(chan error, 2)
		post := func() {
			tx := write(0, pattern(1, 8), 0, 1)
			tx.Done = func(_ *Transaction, err error) { answers <- err }
			if err := c.Post(tx); err != nil {
				t.Error(err)
			}
		}
		post()
		s.recv(time.Millisecond)
		hook.complete = func() {
			c.Reset(0)
			post()
		}
		b := s.encode(1, data(1, 1, 1, 64, pattern(1, 8)))
		frame.PutAck(b, 1, 1)
		s.raw(b)
		got := s.recv(50 * time.Millisecond)
		if err := <-answers; !errors.Is(err, ErrReset) {
			t.Errorf("first: %v, want ErrReset", err)
		}
		select {
		case err := <-answers:
			t.Errorf("second was answered with %v before it was acknowledged", err)
		default:
		}
		if acked(got, 1) {
			t.Error("acknowledged a frame of before Reset")
		}
	})
}

// TestResetAfterClose: an endpoint that is closed stays so.
func TestResetAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		p.close()
		if err := p.toB.Reset(0); !errors.Is(err, ErrClosed) {
			t.Errorf("Reset: %v", err)
		}
		select {
		case <-p.toB.Done():
		default:
			t.Error("not done")
		}
	})
}

// TestProfileWithoutRoom: frames too short for one message are an error of
// Connect, not a panic of Post.
func TestProfileWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		e, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for _, size := range []int{1, 20, 40} {
			prof := OpenCPI(false)
			prof.MaxFrame = size
			c, err := e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
			if err == nil {
				t.Errorf("frames of %d bytes were accepted", size)
				c.Close()
			}
		}
	})
}

// TestConnectAdoptsLearnedPeer: a peer spoke before it was connected to. Its
// connection is kept, with what arrived, and learns how large the peer is.
func TestConnectAdoptsLearnedPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		ends := make([]*Endpoint, 2)
		for i, addr := range []transport.Addr{addrA, addrB} {
			mem, err := NewRegion(4096)
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(n.Attach(addr, simnet.Config{}), &Config{ID: frame.EndpointID(1 + i), Memory: mem, AcceptAny: true})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ends[i] = e
		}
		a, b := ends[0], ends[1]
		toB, err := a.Connect(Peer{ID: 2, Addr: addrB, Size: 4096})
		if err != nil {
			t.Fatal(err)
		}
		if err := toB.Write(context.Background(), write(64, pattern(1, 100), 0, 1)); err != nil {
			t.Fatal(err)
		}
		toA, err := b.Connect(Peer{ID: 1, Addr: addrA, Size: 4096})
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Conns()) != 1 || b.Conns()[0] != toA || toA.Stats().Completions != 1 || toA.Peer().Size != 4096 {
			t.Errorf("%d connections, %d completions, size %d", len(b.Conns()), toA.Stats().Completions, toA.Peer().Size)
		}
		if err := toA.Post(write(4000, pattern(1, 100), 0, 1)); !errors.Is(err, ErrBounds) {
			t.Errorf("beyond the peer's memory: %v", err)
		}
		if err := toA.Write(context.Background(), write(64, pattern(2, 100), 0, 2)); err != nil {
			t.Error(err)
		}
		if err := toB.Write(context.Background(), write(64, pattern(3, 100), 0, 3)); err != nil {
			t.Error(err)
		}
		if _, err := b.Connect(Peer{ID: 1, Addr: addrA}); !errors.Is(err, ErrPeerExists) {
			t.Errorf("connected again: %v", err)
		}
	})
}

package dgrdma

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

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

// TestUnacknowledgedPeerDuringSend checks that what is completed by being sent may have been
// completed otherwise while it was.
func TestUnacknowledgedPeerDuringSend(t *testing.T) {
	cases := []struct {
		name   string
		during func(s *fakePeer, c *Conn)
		want   error
	}{
		{"acknowledged", func(s *fakePeer, c *Conn) {
			b := s.encode(1)
			frame.PutAck(b, 1, 1)
			s.raw(b)
			for c.Stats().InFlight > 0 {
				runtime.Gosched()
			}
		}, nil},
		{"reset", func(_ *fakePeer, c *Conn) { c.Reset(0) }, ErrReset},
		{"overdue", func(_ *fakePeer, c *Conn) {
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

// TestOnlyWhatIsWaitedForIsAcknowledged checks that a peer that need not wait for acknowledgements
// and shows by a copy that it does gets the one for that copy, and none of those before.
func TestOnlyWhatIsWaitedForIsAcknowledged(t *testing.T) {
	withFakePeer(t, Config{}, OpenCPI2(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		one := func(id frame.Seq) { s.send(id, data(uint32(id), 1, 1, 64, pattern(1, 8))) }
		for id := range frame.Seq(5) {
			one(id + 1)
		}
		s.recv(2 * copyDelay)
		one(5)
		got := s.recv(copyDelay)
		if len(got) != 1 || got[0].AckStart != 5 || got[0].AckCount != 1 {
			t.Errorf("acknowledged by %+v", got)
		}
	})
}

// TestMemoryIsKeptWhereNothingIsAcknowledged checks that the memory for frames in flight stays for
// restAfter, here too, when all was sent.
func TestMemoryIsKeptWhereNothingIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		_, e, c := openHooked(t, n, OpenCPI2(), Config{})
		defer e.Close()
		time.Sleep(10 * restAfter)
		if err := c.Write(t.Context(), write(64, pattern(1, 8), 0, 1)); err != nil {
			t.Fatal(err)
		}
		kept := func(d time.Duration) int {
			time.Sleep(d)
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.tx.inFlight.Places()
		}
		if kept(restAfter-1) == 0 || kept(1) != 0 {
			t.Errorf("memory for %d frames is kept after %v", c.tx.inFlight.Places(), restAfter)
		}
	})
}

// TestAcksAreRepeated checks that an acknowledgement repeats those before it, so that one may be
// lost, but for peers that count each.
func TestAcksAreRepeated(t *testing.T) {
	for _, x := range []struct {
		prof Profile
		run  ack.Range
	}{{OpenCPI(false), ack.Range{Start: 1, Count: 2}}, {Legacy(false), ack.Range{Start: 2, Count: 1}}} {
		withFakePeer(t, Config{}, x.prof, func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			for id := range frame.Seq(2) {
				s.send(id+1, data(uint32(id+1), 1, 1, 64, pattern(1, 8)))
				got := s.recv(copyDelay)
				if len(got) != 1 || id == 1 && (ack.Range{Start: got[0].AckStart, Count: got[0].AckCount}) != x.run {
					t.Errorf("%s: frame %d is acknowledged by %+v, want %v", x.prof.Name, id+1, got, x.run)
				}
			}
		})
	}
}

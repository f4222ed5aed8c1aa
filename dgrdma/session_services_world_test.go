package dgrdma

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestServicesAreKnownInTheEnd checks that, whatever is lost, late or forged while services are added at both ends and sessions end and
// begin, in the end each end knows all that the other one serves, and no more is said of it.
func TestServicesAreKnownInTheEnd(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+uint64(fewer(300, 30)); seed++ {
		synctest.Test(t, func(t *testing.T) {
			if servicesWorld(t, seed); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

func servicesWorld(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := newCouple(t, sessionWays()[rnd.IntN(8)], Config{}, Config{})
	defer p.close()
	way := func() simnet.Link {
		l := simnet.Link{Latency: time.Duration(rnd.Int64N(int64(30 * time.Millisecond))), Loss: 0.4 * rnd.Float64()}
		if rnd.IntN(2) == 0 {
			l.Duplicate = 0.2
			l.Reorder, l.ReorderBy = 0.3, time.Duration(rnd.Int64N(int64(100*time.Millisecond)))
		}
		return l
	}
	forge := func(from int) {
		b := make([]byte, []int{frame.HandshakeSize, frame.RefusedSize, frame.ListedSize}[rnd.IntN(3)])
		h := frame.Handshake{Kind: frame.HandshakeHello, Sender: 1 + rnd.Uint32N(5)}
		h.Put(b, frame.EndpointID(2-from), frame.EndpointID(1+from))
		p.net.Inject(p.at[from], p.at[1-from], b)
	}
	ends := []*Endpoint{p.a, p.b}
	for step := range 20 {
		if rnd.IntN(5) == 0 {
			p.link(way(), way())
		}
		e := ends[rnd.IntN(2)]
		switch rnd.IntN(6) {
		case 0, 1, 2:
			e.Serve(newShelf(fmt.Sprintf("s%d", step), 1<<16)) // the ninth is refused
		case 3:
			forge(0)
		case 4:
			forge(1)
		default:
			for _, c := range e.Conns() {
				if rnd.IntN(3) == 0 {
					c.Reset(0)
				} else {
					c.Post(write(64, pattern(step, 8), 0, 1))
				}
			}
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Duration(1+rnd.IntN(100)) * time.Millisecond))))
	}
	p.link(simnet.Link{}, simnet.Link{})
	p.toB.Post(write(64, pattern(1, 8), 0, 1))
	time.Sleep(20 * time.Second)
	sent := p.net.TotalStats().Sent
	time.Sleep(time.Hour)
	if n := p.net.TotalStats().Sent - sent; n > 0 {
		t.Errorf("%d frames in an hour at rest", n)
	}
	for i, e := range ends {
		all := e.Conns()
		if len(all) != 1 {
			t.Errorf("%d has %d connections", e.ID(), len(all))
		}
		for _, c := range all {
			c.mu.Lock()
			known, err := c.session.tx.list, c.session.tx.err
			c.mu.Unlock()
			if want := ends[1-i].localServices.to(false); err != nil || !slices.Equal(known.All(), want.All()) {
				t.Errorf("%v: %d knows of %v, the other end serves %v (%v)", p.way, e.ID(), known.String(), want.String(), err)
			}
		}
	}
}

// TestServiceAfterAWelcome checks that a peer which begins a session by a WELCOME that is older than a service hears of that service,
// although the endpoint asks under the epoch of that WELCOME when the session ends in which it told of it.
func TestServiceAfterAWelcome(t *testing.T) {
	for _, added := range []bool{true, false} {
		withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 70})
			shakes, _ := s.sessionFrames(time.Millisecond)
			if len(shakes) != 1 || shakes[0].Kind != frame.HandshakeWelcome {
				t.Fatalf("%+v", shakes)
			}
			next := shakes[0].Sender
			if added {
				serve(t, e, newShelf("late", 1<<16))
			} else if err := c.Post(write(64, nil, 0, 1)); err != nil {
				t.Fatal(err)
			}
			_, sent := s.sessionFrames(time.Millisecond)
			if len(sent) == 0 {
				t.Fatal("nothing was sent in the session")
			}
			s.resets(&sent[0])
			if asked := s.asked(); asked != next {
				t.Fatalf("asks under %#x, and told %#x", asked, next)
			}
			s.welcome(70, next, serviceAt("memory", 0))
			s.acks(0)
			if lists := s.told(time.Millisecond, true); added != (len(lists) == 1) || added && lists[0] != "memory, late" {
				t.Errorf("added %v: told of %q", added, lists)
			}
		})
	}
}

// TestServicesStay checks that no service goes in a session: a list that has fewer, or others, counts for nothing.
func TestServicesStay(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		post := newShelf("post", 1<<16)
		serve(t, e, post)
		for i, list := range [][]frame.Service{
			{serviceAt("memory", 0), serviceAt("post", 1<<20)},
			{serviceAt("memory", 0)},
			{serviceAt("memory", 0), serviceAt("other", 1<<20)},
			{serviceAt("memory", 0), serviceAt("post", 1<<21)},
			{},
		} {
			s.send(frame.Seq(1+i), servicesMessage(list...))
			s.recv(time.Millisecond)
			if err := post.channel(0).Flow().Post(&Transaction{Completion: Word(1<<20+MailSize, uint32(i))}); err != nil {
				t.Errorf("after %v: %v", list, err)
			}
			for _, b := range s.messagesSent() {
				if b.CompletionAddr != 1<<20+MailSize {
					t.Errorf("after %v: sent to %#x", list, b.CompletionAddr)
				}
			}
		}
	})
}

// messagesSent returns the messages that came until a moment from now.
func (s *fakePeer) messagesSent() (all []frame.Message) {
	s.t.Helper()
	_, sent := s.sessionFrames(time.Millisecond)
	for i := range sent {
		for c := sent[i].Cursor(); c.Next(); {
			if c.Msg.Type != frame.TypeServices {
				all = append(all, c.Msg)
			}
		}
	}
	return all
}

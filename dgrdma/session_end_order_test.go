package dgrdma

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// header returns that of a frame of the session of peer 1.
func (f *feed) header(id uint32) frame.SessionHeader {
	of := f.sessions[1]
	return frame.SessionHeader{Dst: 2, Src: 1, ID: id, Tag: session.Tag(session.Epoch(of[1]), session.Epoch(of[0])), Ack: of[1]}
}

// acks returns an ACK of peer 1 for the first frames of the session.
func (f *feed) acks(n uint32) []byte {
	b := make([]byte, 64)
	h := f.header(f.sessions[1][1] + n)
	h.Ack = h.ID
	return b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, nil)]
}

// bye returns the BYE of peer 1.
func (f *feed) bye() []byte {
	b := make([]byte, 64)
	h := f.header(0)
	return b[:frame.PutBye(b, &h, frame.Bye{Sender: f.sessions[1][0], Receiver: f.sessions[1][1]})]
}

// TestDoneBeforeBye checks that what a peer acknowledged before it sent BYE is done before the program hears that the
// peer is gone, also where both come in one batch; the rest fails after that.
func TestDoneBeforeBye(t *testing.T) {
	var heard []string
	var c *Conn
	hear := func(what string) {
		select {
		case <-c.Done():
			what += ", it is gone"
		default:
		}
		heard = append(heard, what)
	}
	f := newFeed(t, Config{OnEvent: func(ev Event) {
		if ev.Kind == PeerDown {
			hear("down")
		}
	}})
	c = f.native()
	post := func(name string) {
		x := write(64, pattern(1, 8), 0, 1)
		x.Done = func(_ *Transaction, err error) {
			if err != nil && !errors.Is(err, ErrPeerClosed) {
				t.Errorf("%s: %v", name, err)
			}
			hear(fmt.Sprintf("%s done: %v", name, err == nil))
		}
		if err := c.Post(x); err != nil {
			t.Error(err)
		}
		f.give(nil)
	}
	post("first")
	post("second")
	if n := c.nextID.Load() - f.sessions[1][1]; n != 3 {
		t.Fatalf("%d frames were sent", n-1)
	}
	f.more = [][]byte{f.bye()}
	f.give(f.acks(1))
	if want := []string{"first done: true", "down, it is gone", "second done: false, it is gone"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

// TestAckAfterBye checks that an acknowledgement which comes after the BYE, in the same batch or later, is of a session that is over: what
// it names was told to have failed.
func TestAckAfterBye(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	var answers []error
	x := write(64, pattern(1, 8), 0, 1)
	x.Done = func(_ *Transaction, err error) { answers = append(answers, err) }
	if err := c.Post(x); err != nil {
		t.Fatal(err)
	}
	f.give(nil)
	f.more = [][]byte{f.acks(1)}
	f.give(f.bye())
	f.give(f.acks(1))
	if len(answers) != 1 || !errors.Is(answers[0], ErrPeerClosed) {
		t.Errorf("answers %v", answers)
	}
}

// TestByeAfterReset checks that a callback which is told that a transaction is done may reset the connection: the BYE that came with the
// acknowledgement is of the session before.
func TestByeAfterReset(t *testing.T) {
	downs := 0
	f := newFeed(t, Config{OnEvent: func(ev Event) {
		if ev.Kind == PeerDown {
			downs++
		}
	}})
	c := f.native()
	x := write(64, pattern(1, 8), 0, 1)
	x.Done = func(_ *Transaction, err error) {
		if err := errors.Join(err, c.Reset(0)); err != nil {
			t.Error(err)
		}
	}
	if err := c.Post(x); err != nil {
		t.Fatal(err)
	}
	f.give(nil)
	mine := c.Stats().Mine
	f.more = [][]byte{f.bye()}
	f.give(f.acks(1))
	if st := c.Stats(); st.Down || downs != 0 || st.Mine == mine {
		t.Errorf("down: %v, told so %d times; epoch %#x was %#x", st.Down, downs, st.Mine, mine)
	}
}

// TestAcknowledgedBeforeBye checks that a pending acknowledgement leaves before the BYE, also where that is sent by a turn that began, and
// looked at the clock, before the connection was closed.
func TestAcknowledgedBeforeBye(t *testing.T) {
	for _, hole := range []bool{false, true} {
		p := Native()
		p.AckDelay, p.AckEvery = time.Second, 100
		r := newHalfRig(t, 1, p, Config{MTU: 600, NewController: func(int) ack.Controller { return &ack.FixedWindow{} }})
		r.come(1 << 20)
		rx := &r.c.session.rx
		last := uint32(r.c.session.tx.m.Remote) + 1
		if hole {
			last++
		}
		rx.arrives(r.now, last)
		r.batch()
		turn := r.now
		r.now = turn.Add(time.Millisecond)
		r.c.Close()
		if r.c.build(&r.e.batch, turn) {
			t.Fatal("there is more to send, of two frames")
		}
		var acked, byes int
		for _, o := range r.e.batch.Frames() {
			f, err := frame.ParseSession(o.Buf[r.e.batch.Headroom():])
			if err != nil {
				t.Fatal(err)
			}
			switch a, ok := f.SessionAck(); {
			case ok && byes == 0 && (!hole && f.Ack == last || hole && a.Ranges.Len() == 1 && a.Ranges.At(0) == (frame.Range{First: last, Count: 1})):
				acked++
			case f.Control == frame.ControlBye:
				byes++
			}
		}
		if _, owing := r.c.tx.wire.ackAt(); byes != 1 || acked != 1 || owing {
			t.Errorf("hole %v: %d BYEs after %d acknowledgements; more is owed: %v", hole, byes, acked, owing)
		}
	}
}

// TestByeAfterTheLastAcknowledgement checks that a callback may stop the endpoint, or close the connection, by which the transaction comes that it was called for:
// that one is done.
func TestByeAfterTheLastAcknowledgement(t *testing.T) {
	for name, end := range map[string]func(p *couple){
		"endpoint":   func(p *couple) { p.b.Stop() },
		"connection": func(p *couple) { p.b.Conns()[0].Close() },
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range sessionWays() {
				synctest.Test(t, func(t *testing.T) {
					m := &endsAt{value: 7}
					m.Region, _ = NewRegion(1 << 20)
					p := newCouple(t, w, Config{}, Config{Memory: m})
					defer p.close()
					m.end = func() { end(p) }
					if err := p.toB.Write(t.Context(), write(64, pattern(1, 5000), 0, 7)); err != nil {
						t.Errorf("%v: the last transaction: %v", w, err)
					}
					time.Sleep(time.Second)
					if err := p.toB.Write(t.Context(), write(64, nil, 0, 8)); !errors.Is(err, ErrPeerClosed) {
						t.Errorf("%v: after it: %v", w, err)
					}
				})
			}
		})
	}
}

// endsAt is memory that calls end when a completion word has that value.
type endsAt struct {
	*Region
	value uint32
	end   func()
}

func (m *endsAt) Complete(src frame.EndpointID, msg *frame.Message) {
	m.Region.Complete(src, msg)
	if msg.CompletionValue == m.value {
		m.end()
	}
}

// TestByeThatIsHeldBack checks that a BYE of which the network delivers a copy in the next session between the same endpoints ends
// nothing.
func TestByeThatIsHeldBack(t *testing.T) {
	inEachWay(t, Config{}, Config{}, func(t *testing.T, p *couple) {
		toA := p.meet()
		p.link(simnet.Link{Latency: coupleLatency}, simnet.Link{Latency: coupleLatency, HoldBack: 1, HoldFor: time.Second})
		toA.Close()
		<-p.toB.Done()
		p.link(simnet.Link{Latency: coupleLatency}, simnet.Link{Latency: coupleLatency})
		p.b.AcceptAny(true)
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		p.meet()
		time.Sleep(time.Minute)
		if st := p.toB.Stats(); st.Down || !st.Ready() {
			t.Errorf("%v", p.toB.Err())
		}
	})
}

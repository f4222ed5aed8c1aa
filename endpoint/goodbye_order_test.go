package endpoint

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestDoneBeforeGoodbye: what a peer acknowledged before it said goodbye is done before anybody
// hears that the peer is gone, also where both come in one batch; the rest fails behind that.
func TestDoneBeforeGoodbye(t *testing.T) {
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprintf("acknowledged behind it: %v", behind), func(t *testing.T) {
			var f *feed
			var c *Conn
			var heard []string
			hear := func(what string) {
				gone := ""
				select {
				case <-c.Done():
					gone = ", it is gone"
				default:
				}
				heard = append(heard, what+gone)
			}
			f = newFeed(t, Config{OnEvent: func(ev Event) {
				if ev.Kind == PeerDown {
					hear("goodbye")
				}
			}})
			c = f.native()
			f.answers(aloneFrom(stamp(c.Stats().Mine, 2, 0), 0)) // it believes us
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
			}
			post("first")
			f.give(nil)
			first := ack.Wide(c.nextID.Load()) - 1
			post("second")
			f.give(nil)
			if at := ack.Wide(c.nextID.Load()) - 1; at != first+1 {
				t.Fatalf("sent as frames %d and %d", first, at)
			}
			hello := frame.Hello{Life: life, Peer: c.Stats().Mine, Leaves: true}
			acks, bye := aloneFrom(stamp(c.Stats().Mine, 3, first), 1), encode(1, 4, hello.Message())
			if behind {
				acks, bye = bye, acks
			}
			f.more = [][]byte{bye}
			f.give(acks)
			want := []string{"first done: true", "goodbye, it is gone", "second done: false, it is gone"}
			if !slices.Equal(heard, want) {
				t.Errorf("heard %q, want %q", heard, want)
			}
		})
	}
}

// TestGoodbyeToALifeThatIsOver: who is told that a transaction is done may begin another life,
// which a goodbye that came with the acknowledgement does not end.
func TestGoodbyeToALifeThatIsOver(t *testing.T) {
	var downs int
	f := newFeed(t, Config{OnEvent: func(ev Event) {
		if ev.Kind == PeerDown {
			downs++
		}
	}})
	c := f.native()
	f.answers(aloneFrom(stamp(c.Stats().Mine, 2, 0), 0))
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
	hello := frame.Hello{Life: life, Peer: mine, Leaves: true}
	f.more = [][]byte{encode(1, 4, hello.Message())}
	f.give(aloneFrom(stamp(mine, 3, ack.Wide(c.nextID.Load())-1), 1))
	if st := c.Stats(); st.Down || downs != 0 || st.Mine == mine {
		t.Errorf("down: %v, told so %d times; life %d was %d", st.Down, downs, st.Mine, mine)
	}
}

// TestAcknowledgedBeforeGoodbye: what is owed is acknowledged before a goodbye, also where that
// is sent by a turn that began, and looked at the clock, before somebody closed the connection. Peers
// that have no id for it left do not hold that up.
func TestAcknowledgedBeforeGoodbye(t *testing.T) {
	for _, x := range []struct {
		name  string
		ids   int // in flight, of those that the peer takes; 0: none
		owing bool
	}{{name: "ids left"}, {"none left", 8, true}} {
		t.Run(x.name, func(t *testing.T) {
			p := Native()
			p.AckDelay, p.AckEvery = time.Second, 100
			if x.ids > 0 {
				p.Window, p.Span, p.FreshAlone = x.ids, x.ids, true
			}
			r := newHalfRig(t, 1, p, Config{MTU: 600, NewController: func(int) ack.Controller { return &ack.FixedWindow{} }})
			r.come(1 << 20)
			r.heard++
			r.c.rx.recv.Accept(r.heard, 0)
			r.batch()
			if x.owing {
				r.posts(slices.Repeat([]int{400}, 2*x.ids)...)
				r.heard++
				r.c.rx.recv.Accept(r.heard, 0)
				r.batch()
			}
			turn := r.now
			r.now = turn.Add(time.Millisecond)
			r.c.tx.leave()
			if r.c.pack(&r.e.batch, turn) {
				t.Fatal("there is more to send, of two frames")
			}
			var last ack.Range
			byes := 0
			for _, o := range r.e.batch.frames {
				var f frame.Frame
				if err := f.Decode(o.Buf[r.e.batch.headroom:]); err != nil {
					t.Fatal(err)
				}
				if h, ok := helloOf(&f); ok && h.Leaves {
					byes++
				} else if f.AckCount > 0 && byes == 0 {
					last = ack.Range{Start: f.AckStart, Count: f.AckCount}
				}
			}
			_, owing := r.c.tx.due.Deadline()
			if acked := last.Count > 0 && last.Start.Diff(r.heard)+int(last.Count) > 0; byes != 1 || acked == x.owing || owing != x.owing {
				t.Errorf("%d goodbyes, behind an acknowledgement: %v; still owed: %v", byes, acked, owing)
			}
		})
	}
}

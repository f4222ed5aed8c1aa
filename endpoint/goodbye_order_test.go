package endpoint

import (
	"errors"
	"fmt"
	"slices"
	"testing"

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

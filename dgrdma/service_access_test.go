package dgrdma

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// gate is a service that takes all that it is asked about, and counts that.
type gate struct {
	*shelf
	asked int
	bytes [64]byte
}

func (g *gate) Meet(ch *Channel) Handler { return &keeper{board{g.shelf, ch}, g} }

type keeper struct {
	board
	gate *gate
}

func (k *keeper) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	k.gate.asked++
	return k.gate.bytes[:m.Len], nil
}

// TestServiceIsAskedOfItsWindow checks that a service is asked of its window, after its mail,
// alone, up to both edges: the peer is told of data and words that are not all in the window, what
// touches its mail vanishes, and of a letter the box takes what fits.
func TestServiceIsAskedOfItsWindow(t *testing.T) {
	f := newFeed(t, Config{})
	g := &gate{shelf: newShelf("gate", 4*windowUnit)}
	base := uint64(serve(t, f.e, g))
	end, mail, box := base+g.size, base+MailSize, base+mailBox
	c := f.native()
	within := func(at, n, from, to uint64) bool { return n == 0 || at >= from && at+n <= to }
	near := func(edges ...uint64) (all []uint64) {
		for _, edge := range edges {
			for d := range uint64(18) {
				all = append(all, edge+d-9)
			}
		}
		return all
	}
	words := append(near(base, base+mailBells, base+mailBells+4*mailUnits, mail, end), frame.NoCompletion)
	for _, data := range append(near(base, box, box+mailUnit, box+MaxLetter, box+mailLength, mail, end), 0) {
		for _, n := range []uint64{0, 1, 8} {
			for _, word := range words {
				m := frame.Message{Addr: uint32(data), Len: uint16(n), CompletionAddr: uint32(word), CompletionValue: 5}
				length := uint64(4) // of the word
				if word == frame.NoCompletion {
					m.CompletionValue, length = frame.NoCompletion, 0
				}
				owns := data
				if length > 0 {
					owns = word
				}
				g.asked = 0
				dst, err := c.rx.ownerOf(&m).Admit(1, &m)
				vanishes := errors.As(err, new(discarded))
				off := word - base - mailBells
				place := box + off/4*mailUnit
				switch letter := off < 4*mailUnits && off%4 == 0; {
				case !within(owns, 1, base, end):
					if g.asked != 0 {
						t.Fatalf("asked of %d bytes at %#x, word at %#x, of others", n, data, word)
					}
				case !within(data, n, base, end) || !within(word, length, base, end):
					if g.asked != 0 || !errors.Is(err, ErrBounds) || vanishes {
						t.Fatalf("%d bytes at %#x, word at %#x: asked %d times, %v, want %v", n, data, word, g.asked, err, ErrBounds)
					}
				case letter && within(data, n, place, place+MaxLetter):
					if g.asked != 0 || err != nil || len(dst) != int(n) {
						t.Fatalf("%d bytes of a letter at %#x: asked %d times, %v", n, data, g.asked, err)
					}
				case letter || n > 0 && data < mail || length > 0 && word < mail:
					if g.asked != 0 || !vanishes {
						t.Fatalf("%d bytes at %#x, word at %#x: asked %d times, %v, want that it vanishes", n, data, word, g.asked, err)
					}
				case g.asked != 1 || err != nil:
					t.Fatalf("%d bytes at %#x, word at %#x: asked %d times, %v", n, data, word, g.asked, err)
				}
			}
		}
	}
}

// TestChannelOfEach checks that a connection has a channel of each service, by its name.
func TestChannelOfEach(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	for _, name := range []string{"upper", "lower"} {
		s := newShelf(name, 4*windowUnit)
		base := serve(t, f.e, s)
		ch := c.Channel(name)
		if ch != s.channel(0) || ch.Conn() != c || ch.Base() != base || ch.Flow().Conn() != c {
			t.Errorf("%s: %+v", name, ch)
		}
		if b, ok := ch.Handler().(*board); !ok || b.shelf != s {
			t.Errorf("%s: the handler is %+v", name, ch.Handler())
		}
	}
	if ch := c.Channel("middle"); ch != nil {
		t.Errorf("a channel of a service that is not there: %+v", ch)
	}
}

// TestLearnedPeerWithoutServices checks that a peer that is learned and may not write into the memory may
// not where there is no service either.
func TestLearnedPeerWithoutServices(t *testing.T) {
	for _, open := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{})
			defer e.Close()
			e.Welcome(true)
			e.AcceptAny(open)
			w.introduce(t, addrA, 1, 5)
			w.message(addrA, 1, 2, frame.Message{Txn: 5, CompletionAddr: 8, CompletionValue: 1, Index: frame.NotHandshake})
			w.frames(time.Second)
			if n := e.memory.(*Region).Load32(8); (n != 0) != open {
				t.Errorf("anyone may write: %v; %d was written", open, n)
			}
		})
	}
}

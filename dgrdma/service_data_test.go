package dgrdma

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// curious is a service that wants to know of data before its transaction is complete.
type curious struct {
	*shelf
	placed []uint32 // how many bytes, and where after its mail
}

func (s *curious) Meet(ch *Channel) Handler { return &watching{s.shelf.Meet(ch).(*board), s} }

type watching struct {
	*board
	tells *curious
}

func (w *watching) Placed(_ frame.EndpointID, m *frame.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tells.placed = append(w.tells.placed, uint32(m.Len), m.Addr-w.ch.Base()-MailSize)
}

// TestServicesHearOfData checks that a service that asks for it is told of each message whose data
// is in its window, and not of its letters, which are read when they are whole.
func TestServicesHearOfData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		here, there := newShelf("post", 1<<16), &curious{shelf: newShelf("post", 1<<16)}
		serve(t, p.a, here)
		base := serve(t, p.b, there) + MailSize
		time.Sleep(time.Second)
		x := &Transaction{Completion: Word(base, 1), Segments: []Segment{{base + 64, pattern(1, 40)}, {base + 512, pattern(2, 8)}}}
		if err := settle(t, here.channel(0).Flow(), x); err != nil {
			t.Fatal(err)
		}
		here.channel(0).Mail(Letter{Life: p.toB.Life(), Bytes: []byte("letter")})
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []uint32{40, 64, 8, 512}; !slices.Equal(there.placed, want) || len(there.came()) != 1 || len(there.words) != 1 {
			t.Errorf("told of %v, want %v; %d letters, words %v", there.placed, want, len(there.came()), there.words)
		}
	})
}

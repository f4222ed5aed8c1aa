package endpoint

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
)

// TestPostCountsMessages: what is posted has no more messages than can be stated, wherever
// its segments share frames and are cut for that, and what has no more is posted.
func TestPostCountsMessages(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, profile := range []Profile{Native(), OpenCPI(false), OpenCPI(true), Legacy(false)} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Profile: &profile}, b: Config{Profile: &profile}})
			defer p.close()
			p.toB.size.Store(0)
			l := p.toB.tx.layout()
			data := make([]byte, 4*l.full)
			for range 25 {
				size := 1 + r.IntN([]int{4, 100, l.full, len(data)}[r.IntN(4)])
				x := write(0, nil, 0, 1)
				x.Segments = make([]Segment, frame.MaxMessages/(1+size/l.full)*(7+r.IntN(6))/10)
				for i := range x.Segments {
					x.Segments[i].Bytes = data[:size]
				}
				count := l.messages(x, l.full)
				if err := p.toB.validate(x, true); errors.Is(err, ErrTooLarge) != (count > frame.MaxMessages) {
					t.Errorf("seed %d: %d segments of %d bytes are %d messages: %v", seed, len(x.Segments), size, count, err)
				}
			}
		})
	}
}

// TestMessagesAreCountedAsTheyAreCut: a transaction is said to have as many messages as it is
// cut into, one by one, wherever in a frame it begins.
func TestMessagesAreCountedAsTheyAreCut(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 20_000 {
		l := layout{chunk: 1 << r.IntN(6), final: 1 << r.IntN(5), noLength4: i%2 == 0}
		l.full = roundUp(max(l.chunk, l.final)+r.IntN(300), 8)
		x := &Transaction{Segments: make([]Segment, 1+r.IntN(4))}
		for i := range x.Segments {
			x.Segments[i].Bytes = make([]byte, r.IntN(5*l.full))
		}
		first := min(8*r.IntN(l.full/8+4)-frame.MessageHeaderSize, l.full)
		room, count := first, 0
		for i := range x.Segments {
			for n := len(x.Segments[i].Bytes); n > 0; {
				take := l.cut(n, room)
				if take == 0 {
					room = l.full
					continue
				}
				count++
				n -= take
				room -= roundUp(roundUp(take, l.final), 8) + frame.MessageHeaderSize
			}
		}
		if got := l.messages(x, first); got != count {
			t.Fatalf("seed %d: %+v, %d bytes left in the first frame: %d messages, want %d", seed, l, first, got, count)
		}
	}
}

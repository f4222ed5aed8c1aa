package dgrdma

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
)

// TestPostCountsMessages checks that what is posted has no more messages than can be stated,
// wherever its segments share frames and are cut for that, and that what has no more is posted.
func TestPostCountsMessages(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, profile := range []Profile{Native(), OpenCPI(false), OpenCPI(true), Legacy(false)} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Profile: &profile}, b: Config{Profile: &profile}})
			defer p.close()
			p.toB.size.Store(0)
			p.toB.mu.Lock()
			l := p.toB.tx.layout()
			p.toB.mu.Unlock()
			data := make([]byte, 4*l.Full)
			for range 25 {
				size := 1 + r.IntN([]int{4, 100, l.Full, len(data)}[r.IntN(4)])
				x := write(0, nil, 0, 1)
				x.Segments = make([]Segment, frame.MaxMessages/(1+size/l.Full)*(7+r.IntN(6))/10)
				for i := range x.Segments {
					x.Segments[i].Bytes = data[:size]
				}
				count := x.messages(&l, l.Full)
				if err := p.toB.validate(x, true); errors.Is(err, ErrTooLarge) != (count > frame.MaxMessages) {
					t.Errorf("seed %d: %d segments of %d bytes are %d messages: %v", seed, len(x.Segments), size, count, err)
				}
			}
		})
	}
}

package session

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestRejectedBothWays checks that two endpoints which ask, and of which each has rejected the pair of both epochs, come to a session: a frame of
// the handshake that was changed on its way is rejected as if it named no session, and without this both would ask with that pair for ever.
func TestRejectedBothWays(t *testing.T) {
	for try := range 20 {
		var all [2]Generations
		var m [2]Machine
		now := ack.Instant(time.Minute)
		at := func() At { return At{Now: now, Posted: true, Takes: true} }
		epochs := func(i int) Epochs { return all[i].Of([]byte{byte(i)}, now) }
		for i := range m {
			m[i].Connect(at(), epochs(i))
		}
		m[0].rejected.add(m[1].Local)
		m[1].rejected.add(m[0].Local)
		for range 100 {
			now = now.Add(20 * time.Millisecond)
			for i := range m {
				from, o := i, m[i].Retry(at(), false)
				for o.Reply.Kind != NoFrame && o.Reply.Kind != Ack {
					f := o.Reply
					from = 1 - from
					if o = m[from].Receive(at(), epochs(from), &f); o.Ended != NotEnded {
						t.Fatalf("%v ended something: %v", f.Kind, o.Ended)
					}
				}
			}
		}
		if m[0].State != Up && m[1].State != Up || m[0].Local != m[1].Remote || m[1].Local != m[0].Remote {
			t.Fatalf("try %d: %+v and %+v", try, m[0], m[1])
		}
	}
}

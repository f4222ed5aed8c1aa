package dgrdma

import (
	"bytes"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestLostFramesAreTheSameAgain checks that a lost frame leaves again with the same messages under
// its old id (DGRDMA-026), be it kept or made again, from segments of any length; and that what
// Copied gave back to its owner is in none.
func TestLostFramesAreTheSameAgain(t *testing.T) {
	for _, copied := range []bool{false, true} {
		withFakePeer(t, Config{MTU: 150, Congestion: CongestionAdaptive}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
			source := pattern(7, 3800)
			x := &Transaction{Completion: Word(0, 9)}
			for at, i := 0, 0; at < len(source); i++ {
				n := min([]int{1000, 90, 0, 151, 400, 3}[i%6], len(source)-at)
				x.Segments = append(x.Segments, Segment{Addr: uint32(64 + at), Bytes: source[at : at+n]})
				at += n
			}
			gone := false
			if copied {
				x.Copied = func(*Transaction) {
					gone = true
					clear(source)
				}
			}
			var why error
			x.Done = func(_ *Transaction, err error) { why = err }
			if err := c.Post(x); err != nil {
				t.Fatal(err)
			}
			mem := make([]byte, 4096)
			first := map[frame.Seq][]byte{}
			parts := 0
			for _, f := range s.recv(time.Millisecond) {
				first[f.Seq] = f.Body()
				for m := f.Cursor(); m.Next(); {
					copy(mem[m.Msg.Addr:], m.Data)
				}
			}
			if want := pattern(7, 3800); !bytes.Equal(mem[64:64+3800], want) || copied != gone {
				t.Fatalf("%d frames came, not all of them; copied %v", len(first), gone)
			}
			c.mu.Lock()
			last := frame.Seq(c.session.tx.sent.Next() - 1 - s.theirs)
			for q := range first {
				if o := c.tx.inFlight.At(s.theirs + uint32(q)); !o.IsKept() {
					parts++
				}
			}
			c.mu.Unlock()
			if copied != (parts == 0) || !copied && parts < 10 {
				t.Errorf("%d of %d frames are not kept; copied %v", parts, len(first), copied)
			}
			again := map[frame.Seq]bool{}
			for range 100 {
				s.acksOnly(last, 1) // as if all before were lost
				for _, f := range s.recv(10 * time.Millisecond) {
					if f.HasMessages() && !bytes.Equal(f.Body(), first[f.Seq]) {
						t.Fatalf("frame %d was %x and is %x", f.Seq, first[f.Seq], f.Body())
					}
					again[f.Seq] = true
				}
			}
			if len(again) != len(first)-1 {
				t.Errorf("%d of %d frames came again", len(again), len(first))
			}
			s.acks(last)
			if s.recv(time.Second); why != nil || c.Stats().InFlight != 0 {
				t.Errorf("done with %v, %d in flight", why, c.Stats().InFlight)
			}
		})
	}
}

// TestFewFramesAreKept checks that what is made again if it is lost takes no memory when it was sent, however much is in flight.
func TestFewFramesAreKept(t *testing.T) {
	withFakePeer(t, Config{MTU: 150, Congestion: CongestionAdaptive}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		for range 20 {
			if err := c.Post(write(0, pattern(1, 4000), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		frames := len(s.recv(time.Millisecond))
		c.mu.Lock()
		defer c.mu.Unlock()
		kept := 0
		for id := c.tx.unacked.Oldest(); id != c.tx.unacked.Next(); id++ {
			if c.tx.inFlight.At(id).IsKept() {
				kept++
			}
		}
		if frames < 50 || kept > 5 {
			t.Errorf("of %d frames in flight %d are kept", frames, kept)
		}
	})
}

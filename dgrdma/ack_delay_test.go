package dgrdma

import (
	"testing"
	"time"
)

// TestAcknowledgementsFindCompany checks that an acknowledgement does not wait for company where
// there was none the last time, until there is again: until one rides on what is sent, or one that
// left by itself would have, had it waited.
func TestAcknowledgementsFindCompany(t *testing.T) {
	const later = time.Second
	for _, x := range []struct {
		name  string
		sends func(r *halfRig)
		waits bool
	}{
		{"nothing is sent", func(*halfRig) {}, false},
		{"something is sent much later", func(r *halfRig) {
			r.now = r.now.Add(later)
			r.posts(8)
		}, false},
		{"something is sent soon", func(r *halfRig) {
			r.now = r.now.Add(r.c.profile.AckDelay / 2)
			r.posts(8)
		}, true},
		{"one rides", func(r *halfRig) {
			r.now = r.now.Add(later)
			r.enqueues(8)
			r.comes(1)
		}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newHalfRig(t, 1, Native(), Config{})
			r.come(1 << 20)
			r.comes(2)
			x.sends(r)
			if n := r.c.tx.counters.AcksAlone; n != 1 {
				t.Fatalf("%d left by themselves", n)
			}
			r.now = r.now.Add(later)
			r.comes(1)
			if waits := r.c.tx.counters.AcksAlone == 1; waits != x.waits {
				t.Errorf("the next one waits for company: %v", waits)
			}
		})
	}
}

// TestFrameSentAgainAcknowledges checks that a frame that is sent again says what came since it was
// sent first, and that nothing else says it.
func TestFrameSentAgainAcknowledges(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		for range 5 {
			if err := c.Post(write(64, pattern(1, 1200), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		sent := s.recv(time.Millisecond)
		if len(sent) < 5 {
			t.Fatalf("%d frames", len(sent))
		}
		s.acksOnly(sent[1].Seq, 4) // but not the first
		s.send(1, data(life, 1, 1, 64, pattern(1, 16)))
		got := s.recv(0)
		if len(got) != 1 || got[0].Seq != sent[0].Seq || got[0].AckStart != 1 || got[0].AckCount != 1 {
			t.Errorf("%d frames, want one, %d, that acknowledges 1: %+v", len(got), sent[0].Seq, got)
		}
	})
}

package endpoint

import (
	"testing"
	"time"
)

// TestAcknowledgementsFindCompany: an acknowledgement does not wait for company where there
// was none the last time, until there is again: until one rides on what is sent, or one that
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

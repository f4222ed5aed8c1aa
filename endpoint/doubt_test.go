package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestDoubt: a frame that was refused is believed when it comes again as our kind sends
// it again, once; not if it comes too soon or too late, or is another one (attack A12,
// SECURITY.md).
func TestDoubt(t *testing.T) {
	sender := sending{terms: &terms{cfg: &Config{GiveUp: time.Hour}, profile: Native()}}
	least, most := ack.Instant(sender.profile.MinTimeout), ack.Instant(sender.mostTimeout())
	type try struct {
		after ack.Instant // the first one
		seq   frame.Seq
		tag   uint16
		want  bool
	}
	for name, tries := range map[string][]try{
		"at once":                {{0, 7, 1, false}},
		"too soon":               {{doubtLeast - 1, 7, 1, false}},
		"too soon, then in time": {{doubtLeast - 1, 7, 1, false}, {doubtLeast, 7, 1, true}},
		"after the least wait":   {{least, 7, 1, true}},
		"after the longest wait": {{most, 7, 1, true}},
		"at the last moment":     {{doubtMost, 7, 1, true}},
		"too late":               {{doubtMost + 1, 7, 1, false}, {doubtMost + 1 + doubtLeast, 7, 1, true}},
		"once":                   {{least, 7, 1, true}, {2 * least, 7, 1, false}, {3 * least, 7, 1, true}},
		"with another id":        {{least, 8, 1, false}, {2 * least, 7, 1, true}},
		"with another content":   {{least, 7, 2, false}, {2 * least, 7, 1, true}},
		"another one at the end": {{doubtMost, 8, 1, false}, {doubtMost + doubtLeast, 8, 1, false}, {doubtMost + 2*doubtLeast, 8, 1, true}},
	} {
		const first = ack.Instant(time.Hour)
		var d doubt
		if d.believes(first, 7, 1) {
			t.Fatal("a frame is believed at once")
		}
		for i, x := range tries {
			if got := d.believes(first+x.after, x.seq, x.tag); got != x.want {
				t.Errorf("%s: try %d is believed: %v, want %v", name, i+1, got, x.want)
			}
		}
	}
	var d doubt
	if d.believes(0, 0, 0) {
		t.Error("the first frame of all is believed")
	}
}

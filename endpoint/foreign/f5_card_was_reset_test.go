package foreign

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestLife checks what is believed of acknowledgements that include others (quirk F5): each line is a frame after those
// before it.
func TestLife(t *testing.T) {
	type told struct {
		newest, id, start, end frame.Seq
		want                   bool
	}
	for name, list := range map[string][]told{
		"in order":            {{0, 1, 1, 9, true}, {1, 2, 9, 17, true}, {2, 3, 17, 18, true}},
		"across both wraps":   {{65534, 65535, 65530, 2, true}, {65535, 0, 2, 10, true}, {0, 1, 10, 11, true}},
		"data, as the newest": {{1, 1, 1, 9, true}, {2, 2, 9, 17, true}},
		"overtaken":           {{0, 2, 9, 17, true}, {2, 1, 1, 9, true}, {2, 3, 17, 20, true}},
		"a copy":              {{0, 1, 1, 9, true}, {1, 1, 1, 9, true}},
		"a new life":          {{6000, 6001, 65500, 65515, true}, {6001, 1, 1, 2, false}, {6001, 2, 2, 3, false}, {6001, 5, 6, 9, false}},
		"whose ids pass": {
			{4, 5, 65500, 65515, true}, {5, 1, 1, 2, false}, {5, 4, 5, 9, false}, {5, 6, 9, 12, false}, {5, 7, 20, 22, false},
		},
		"one that was forged": {{4, 5, 10, 20, true}, {5, 1, 20, 30, false}, {5, 6, 20, 25, true}, {6, 7, 30, 35, true}},
		"and one lost":        {{100, 101, 10, 20, true}, {101, 1, 20, 22, false}, {101, 103, 24, 30, true}, {103, 104, 30, 31, true}},
		"forged far ahead":    {{4, 5, 10, 20, true}, {5, 9000, 20, 30, true}, {5, 6, 20, 25, true}, {6, 7, 25, 28, true}},
	} {
		s := life{known: true, latest: list[0].newest, upTo: list[0].start}
		for i, f := range list {
			if got := s.goesOn(ack.Instant(time.Hour), f.newest, f.id, f.start, f.end); got != f.want {
				t.Errorf("%s: frame %d, %+v: %v", name, i, f, got)
				break
			}
		}
	}
}

// TestLifeBeginsWithAnOldFrame checks that after a reset of ours frames of before may come first. What the new life says is believed all the
// same, also when its ids have yet to pass theirs.
func TestLifeBeginsWithAnOldFrame(t *testing.T) {
	var s life
	at := ack.Instant(time.Hour)
	for i, f := range []struct {
		after   time.Duration
		id, end frame.Seq
	}{{0, 9, 5}, {time.Millisecond, 1, 7}, {2 * time.Second, 2, 15}, {3 * time.Second, 3, 20}} {
		if !s.goesOn(at.Add(f.after), 9, f.id, f.end-1, f.end) {
			t.Errorf("frame %d is not believed", i)
		}
	}
	if s.goesOn(at.Add(4*time.Second), 9, 1, 20, 21) {
		t.Error("one of yet another life is")
	}
}

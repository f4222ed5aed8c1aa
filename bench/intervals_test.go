package bench

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestIntervals: they follow each other without a gap, end where they should or at the next
// look, and have all that was moved.
func TestIntervals(t *testing.T) {
	const s = time.Second
	v := intervals{every: s}
	var got []Interval
	for _, look := range []struct {
		at   time.Duration
		done uint64
	}{{s / 2, 1}, {s, 3}, {s + s/2, 4}, {3*s + s/10, 10}, {4 * s, 10}} {
		if i, over := v.at(look.at, Moved{Bytes: 100 * look.done, Transactions: look.done, Resent: 2 * look.done}); over {
			got = append(got, i)
		}
	}
	if v.moved != 3*s+s/10 {
		t.Errorf("something last moved at %v", v.moved)
	}
	if i, any := v.rest(4*s+s/20, Moved{Transactions: 10}); any {
		t.Errorf("%+v is too short", i)
	}
	if i, any := v.rest(4*s+s/4, Moved{Bytes: 1100, Transactions: 11, Resent: 22}); any {
		got = append(got, i)
	}
	want := []Interval{
		{0, s, Moved{300, 3, 6}}, {s, 3*s + s/10, Moved{700, 7, 14}}, {3*s + s/10, 4 * s, Moved{}}, {4 * s, 4*s + s/4, Moved{100, 1, 2}},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSample: the shell looks at the end of each interval, and at the end of all.
func TestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, done := time.Now(), uint64(0)
		var got []Interval
		stop := Sample(250*time.Millisecond, func() Moved {
			if took := time.Since(began); took < 600*time.Millisecond {
				done = uint64(took / time.Millisecond)
			}
			return Moved{Transactions: done}
		}, func(i Interval) { got = append(got, i) })
		time.Sleep(900*time.Millisecond - 1)
		if until := stop(); until != 500*time.Millisecond {
			t.Errorf("moved until %v, to the nearest look", until)
		}
		const ms = time.Millisecond
		want := []Interval{
			{0, 250 * ms, Moved{Transactions: 250}}, {250 * ms, 500 * ms, Moved{Transactions: 250}},
			{500 * ms, 750 * ms, Moved{}}, {750 * ms, 900*ms - 1, Moved{}},
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

package page

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/inspect"
)

// TestHistogramOfNoTime: what took no time that the clock can tell stands first, and the axis
// begins where there is something to see, not at a nanosecond.
func TestHistogramOfNoTime(t *testing.T) {
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, zero := range []bool{false, true} {
		h := inspect.Histogram{Count: 30, Buckets: []inspect.Bucket{{From: us(20), To: us(24), Count: 10}, {From: us(400), To: us(448), Count: 20}}}
		if zero {
			h.Buckets = append([]inspect.Bucket{{From: 0, To: 1, Count: 5}}, h.Buckets...)
			h.Count += 5
		}
		c := drawHistogram([]inspect.Histogram{h}, []string{"data"}, "frames")
		if len(c.X) == 0 || c.X[0].Text == "1 ns" || len(c.Columns) != len(h.Buckets) {
			t.Fatalf("zero %v: axis %+v, columns %+v", zero, c.X, c.Columns)
		}
		at := -1
		for _, column := range c.Columns {
			if column.Width <= 0 || column.X < at {
				t.Errorf("zero %v: columns %+v", zero, c.Columns)
			}
			at = column.X + column.Width
		}
		// Both that took some time are spread over the most of it.
		if last := c.Columns[len(c.Columns)-1]; last.X-c.Columns[len(c.Columns)-2].X < full/2 {
			t.Errorf("zero %v: columns %+v", zero, c.Columns)
		}
	}
	for from := range time.Duration(12) {
		for to := from + 1; to < 40; to++ { // ends, whatever there is
			drawHistogram([]inspect.Histogram{{Count: 1, Buckets: []inspect.Bucket{{From: from, To: to, Count: 1}}}}, []string{"data"}, "frames")
		}
	}
}

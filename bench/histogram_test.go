package bench

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for i := range 100_000 {
		h.Add(time.Duration(i))
	}
	h.Add(1 << 62)
	for q, want := range map[float64]float64{0.001: 100, 0.5: 50_000, 0.99: 99_000} {
		if got := float64(h.Quantile(q)); got < want*0.97 || got > want*1.03 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

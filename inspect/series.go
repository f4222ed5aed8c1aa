package inspect

import "time"

// maxBins bounds a series; half of them are in use at least, once time passes.
const maxBins = 512

// firstWidth is where bins start. Captures may be over after microseconds.
const firstWidth = time.Microsecond

// Bin is what a flow did in one piece of time.
type Bin struct {
	Frames     int   `json:"frames"` // with messages, seen for the first time
	Resent     int   `json:"resent"`
	Duplicates int   `json:"duplicates"`
	Data       int64 `json:"data_bytes"` // of messages, seen for the first time
	ResentData int64 `json:"resent_bytes"`
	InFlight   int   `json:"in_flight"` // most frames that waited for acknowledgement

	last    int // in flight at the end
	touched bool
}

func (b *Bin) merge(o *Bin) {
	b.Frames += o.Frames
	b.Resent += o.Resent
	b.Duplicates += o.Duplicates
	b.Data += o.Data
	b.ResentData += o.ResentData
	b.InFlight = max(b.InFlight, o.InFlight)
	if o.touched {
		b.last, b.touched = o.last, true
	}
}

// series is a flow over time, in bins that merge in pairs when there would be
// too many.
type series struct {
	from  time.Duration
	width time.Duration
	bins  []Bin
}

func (s *series) at(t time.Duration) *Bin {
	t = max(t-s.from, 0)
	for t/s.width >= maxBins {
		s.halve()
	}
	i := int(t / s.width)
	for len(s.bins) <= i {
		s.bins = append(s.bins, Bin{})
	}
	return &s.bins[i]
}

func (s *series) halve() {
	s.width *= 2
	n := (len(s.bins) + 1) / 2
	for i := range n {
		b := s.bins[2*i]
		if 2*i+1 < len(s.bins) {
			b.merge(&s.bins[2*i+1])
		}
		s.bins[i] = b
	}
	s.bins = s.bins[:n]
}

// inFlight notes how many frames are under way from t on.
func (s *series) inFlight(t time.Duration, n int) {
	b := s.at(t)
	b.InFlight = max(b.InFlight, n)
	b.last, b.touched = n, true
}

// all returns the bins. Where nothing happened, what was in flight before still is.
func (s *series) all() []Bin {
	out := make([]Bin, len(s.bins))
	carried := 0
	for i, b := range s.bins {
		b.InFlight = max(b.InFlight, carried)
		if b.touched {
			carried = b.last
		}
		out[i] = b
	}
	return out
}

// thinned keeps an even choice of what is added: when there are too many, every
// second one goes, and only every second one is taken from then on.
type thinned[T any] struct {
	all          []T
	limit        int
	stride, seen int
}

func (k *thinned[T]) add(v T) {
	if k.stride == 0 {
		k.stride = 1
	}
	k.seen++
	if (k.seen-1)%k.stride != 0 {
		return
	}
	if len(k.all) == k.limit {
		for i := range k.limit / 2 {
			k.all[i] = k.all[2*i]
		}
		k.all = k.all[:k.limit/2]
		k.stride *= 2
		if (k.seen-1)%k.stride != 0 {
			return
		}
	}
	k.all = append(k.all, v)
}

// top keeps the n largest of what is added, in no order.
type top[T any] struct {
	all  []T
	n    int
	less func(a, b *T) bool
}

func (k *top[T]) add(v T) {
	if len(k.all) < k.n {
		k.all = append(k.all, v)
		return
	}
	least := &k.all[0]
	for i := range k.all {
		if k.less(&k.all[i], least) {
			least = &k.all[i]
		}
	}
	if k.less(least, &v) {
		*least = v
	}
}

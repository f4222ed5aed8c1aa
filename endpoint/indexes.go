package endpoint

import (
	"math"
	"sort"
)

// run is a run of message indexes, both ends included.
type run struct{ from, to uint16 }

// indexSet is which messages of a transaction came: as runs of indexes, for
// messages come in order but for what the network lost or reordered. Too many runs
// become a bitmap.
type indexSet struct {
	low  run   // the lowest; from 0: none
	more *runs // those above it
}

// runs are two or more runs, in one of two forms.
type runs struct {
	list []run    // in order, with gaps between them
	bits []uint64 // all that came, those in low included; nil: see list
	paid int      // how many gaps it was taken for
}

const (
	// mostRuns is when runs become a bitmap. What each gap is taken for has paid for
	// the largest one then, and to insert a run moves no more than 1 KiB.
	mostRuns = 256
	fewRuns  = 8
)

// find returns the place of the first run that begins behind i.
func (r *runs) find(i uint16) int {
	if n := len(r.list); n == 0 || r.list[n-1].from <= i {
		return n // mostly
	}
	return sort.Search(len(r.list), func(k int) bool { return r.list[k].from > i })
}

// look reports whether message i came, and whether there is room for it without a
// further run.
func (s *indexSet) look(i uint16) (seen, free bool) {
	switch {
	case s.low.from == 0:
		return false, true
	case s.low.from <= i && i <= s.low.to:
		return true, true
	case s.more != nil && s.more.bits != nil:
		return s.more.bits[i/64]&(1<<(i%64)) != 0, true
	case s.low.to+1 == i || i+1 == s.low.from:
		return false, true
	case s.more == nil:
		return false, false
	}
	list, k := s.more.list, s.more.find(i)
	if k > 0 && i <= list[k-1].to {
		return true, true
	}
	return false, k > 0 && list[k-1].to+1 == i || k < len(list) && i+1 == list[k].from
}

// ahead returns how many messages behind i, which came, did not, and how many of them may
// come in order without another run of theirs becoming one with the next. 0: that would take
// longer to say.
func (s *indexSet) ahead(i uint16) int {
	more := s.more
	switch {
	case more != nil && more.bits != nil:
		return 0
	case more == nil && i == s.low.to:
		return math.MaxUint16
	case more == nil:
		return 0
	}
	k := 0
	if i != s.low.to {
		if k = more.find(i); k == 0 || more.list[k-1].to != i {
			return 0
		}
	}
	if k == len(more.list) {
		return math.MaxUint16
	}
	return int(more.list[k].from-i) - 2
}

// addRun puts in the n messages behind i, for which there is room ahead.
func (s *indexSet) addRun(i uint16, n int) {
	if i == s.low.to {
		s.low.to += uint16(n)
		return
	}
	s.more.list[s.more.find(i)-1].to += uint16(n)
}

// add puts in message i, of count, which did not come yet.
func (s *indexSet) add(i, count uint16, held *holding) {
	switch more := s.more; {
	case s.low.from == 0:
		s.low = run{i, i}
	case more != nil && more.bits != nil:
		more.bits[i/64] |= 1 << (i % 64)
	case i == s.low.to+1:
		s.low.to = i
		if more != nil && more.list[0].from == i+1 {
			s.low.to = more.list[0].to
			more.remove(0)
			if len(more.list) == 0 {
				s.free(held)
			}
		}
	case i+1 == s.low.from:
		s.low.from = i
	default:
		if more == nil {
			s.more = held.newRuns()
		}
		if i < s.low.from {
			s.more.insert(0, s.low, held)
			s.low = run{i, i}
		} else {
			s.more.add(i, held)
		}
		if len(s.more.list) >= min(mostRuns, max(fewRuns, int(count)/32)) {
			s.toBits(count)
		}
	}
}

func (r *runs) add(i uint16, held *holding) {
	k := r.find(i)
	follows := k > 0 && r.list[k-1].to+1 == i
	leads := k < len(r.list) && i+1 == r.list[k].from
	switch {
	case follows && leads:
		r.list[k-1].to = r.list[k].to
		r.remove(k)
	case follows:
		r.list[k-1].to = i
	case leads:
		r.list[k].from = i
	default:
		r.insert(k, run{i, i}, held)
	}
}

func (r *runs) insert(k int, x run, held *holding) {
	r.list = append(r.list, run{})
	copy(r.list[k+1:], r.list[k:])
	r.list[k] = x
	if len(r.list) > r.paid {
		r.paid++
		held.take(gapSize)
	}
}

func (r *runs) remove(k int) { r.list = append(r.list[:k], r.list[k+1:]...) }

// toBits gives up the runs for a bitmap.
func (s *indexSet) toBits(count uint16) {
	more := s.more
	more.bits = make([]uint64, int(count)/64+1)
	for _, x := range append(more.list, s.low) {
		for i := int(x.from); i <= int(x.to); i++ {
			more.bits[i/64] |= 1 << (i % 64)
		}
	}
	more.list = nil
}

// free gives back what the set holds.
func (s *indexSet) free(held *holding) {
	if s.more != nil {
		held.freeRuns(s.more)
		s.more = nil
	}
}

package endpoint

import (
	"math/rand/v2"
	"testing"
)

// TestClosedSet compares it with a map, with transactions that never end among
// the others.
func TestClosedSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, first := range []uint32{1, 1<<32 - 3000} {
		s := closedSet{held: &holding{pool: new(pool)}}
		s.begin(first)
		over := make(map[uint32]bool)
		top := first - 1
		for range 300_000 {
			txn := top + 1 - uint32(rnd.IntN(40))
			if rnd.IntN(500) == 0 {
				txn = top + uint32(rnd.IntN(3000))
			}
			if rnd.IntN(20_000) == 0 {
				txn = top + closedTransactions/2 - uint32(rnd.IntN(3000))
			}
			behind := int32(top - txn)
			want := ageOpen
			if int32(txn-first) < 0 || behind >= closedTransactions || over[txn] {
				want = ageClosed
			}
			if got := s.age(txn); got != want {
				t.Fatalf("transaction %d, %d behind, is %v, want %v", txn, behind, got, want)
			}
			if want == ageClosed {
				continue
			}
			s.see(txn)
			if int32(txn-top) > 0 {
				top = txn
			}
			if txn%977 != 0 { // those never end
				s.close(txn)
				over[txn] = true
			}
		}
		for txn := top; int32(txn-first) >= 0 && top-txn < closedTransactions-100; txn-- {
			if got := s.age(txn) == ageClosed; got != over[txn] {
				t.Fatalf("transaction %d, %d behind: over is %v, want %v", txn, top-txn, got, over[txn])
			}
		}
		if s.age(top-closedTransactions) != ageClosed {
			t.Error("what is far behind is not over")
		}
		for txn := s.low; txn != s.top+1; txn++ {
			if s.age(txn) == ageOpen {
				s.close(txn)
			}
		}
		if s.low != s.top || s.held.bytes != 0 || s.pages != [closedPages]*closedPage{} {
			t.Errorf("all are over, and %d bytes are kept, low %d of %d", s.held.bytes, s.low, s.top)
		}
	}
}

// TestWhatALifeMayBeginWith: as many transactions as our kind has open, from the first of
// the life on; what is before is over, what is behind is not of this life.
func TestWhatALifeMayBeginWith(t *testing.T) {
	for _, first := range []uint32{1, 1000, 1<<31 - 1, 1<<32 - 1} {
		var s closedSet
		s.begin(first)
		last := first + uint32(Native().OpenTransactions) - 1
		for txn, want := range map[uint32]age{first - 1: ageClosed, first: ageOpen, last: ageOpen, last + 1: ageForeign} {
			if got := s.age(txn); got != want {
				t.Errorf("transaction %d of a life from %d on is %v, want %v", txn, first, got, want)
			}
		}
	}
}

// TestClosedAtTheEdgesOfAPage: what ended leaves nothing behind that a transaction with
// the same place in the table, a lap later, is taken for over by; and what is too far
// behind for this life is not taken for over.
func TestClosedAtTheEdgesOfAPage(t *testing.T) {
	for _, ended := range []uint32{pageIDs - 1, pageIDs, pageIDs + 1, 2 * pageIDs} {
		s := closedSet{held: &holding{pool: new(pool)}}
		s.begin(1)
		s.see(ended)
		s.close(ended)
		s.see(ended + closedTransactions)
		if s.age(ended+closedTransactions) != ageOpen || s.held.bytes != 0 {
			t.Errorf("transaction %d is over, as %d was, and %d bytes are kept", ended+closedTransactions, ended, s.held.bytes)
		}
		if s.age(s.top-1<<30) != ageClosed || s.age(s.top-1<<30-1) != ageForeign {
			t.Error("what is far behind does not end where it should")
		}
	}
}

// TestClosedBehindWhatNeverEnds: when a transaction that never ended falls behind, what is
// over above it takes nothing any more.
func TestClosedBehindWhatNeverEnds(t *testing.T) {
	s := closedSet{held: &holding{pool: new(pool)}}
	s.begin(1)
	for txn := uint32(1); txn <= 100; txn++ {
		if s.see(txn); txn > 1 {
			s.close(txn)
		}
	}
	if s.low != 0 || s.held.bytes != pageSize {
		t.Fatalf("all up to %d are over, %d bytes are kept; want 0 and %d", s.low, s.held.bytes, pageSize)
	}
	s.see(1 + closedTransactions)
	if s.low != 100 || s.held.bytes != 0 {
		t.Errorf("all up to %d are over, %d bytes are kept; want 100 and 0", s.low, s.held.bytes)
	}
}

// TestClosedInALifeBefore: what was over in a life that ended is open in the next one, which
// takes the same pages.
func TestClosedInALifeBefore(t *testing.T) {
	s := closedSet{held: &holding{pool: new(pool)}}
	s.begin(1)
	s.see(100)
	for txn := uint32(2); txn <= 100; txn += 2 {
		s.close(txn)
	}
	if s.reset(); s.held.bytes != 0 {
		t.Errorf("%d bytes are kept", s.held.bytes)
	}
	s.begin(1)
	s.see(100)
	s.close(51)
	for txn := uint32(1); txn <= 100; txn++ {
		if over := s.age(txn) == ageClosed; over != (txn == 51) {
			t.Errorf("transaction %d is over: %v", txn, over)
		}
	}
}

// TestIndexSet compares it with a map, in several orders, and holds it to what its
// gaps were taken for.
func TestIndexSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	orders := map[string]func(count int) []int{
		"forward":  func(count int) []int { return rangeOf(0, count, 1) },
		"backward": func(count int) []int { return rangeOf(count-1, count, -1) },
		"random":   func(count int) []int { return rnd.Perm(count) },
		"every second, then the others": func(count int) []int {
			return append(rangeOf(0, (count+1)/2, 2), rangeOf(1, count/2, 2)...)
		},
		"every second backward": func(count int) []int { return rangeOf((count-1)&^1, (count+1)/2, -2) },
		"swapped in pairs": func(count int) []int {
			list := rangeOf(0, count, 1)
			for i := 1; i < count; i += 2 {
				list[i-1], list[i] = list[i], list[i-1]
			}
			return list
		},
		"a window of 40 shuffled": func(count int) []int {
			list := rangeOf(0, count, 1)
			for i := range list {
				j := min(i+rnd.IntN(40), count-1)
				list[i], list[j] = list[j], list[i]
			}
			return list
		},
	}
	held := &holding{pool: new(pool)} // what one set gives back, the next one takes
	for name, order := range orders {
		for _, count := range []int{1, 2, 3, 17, 100, 300, 5000, 65535} {
			var s indexSet
			came := make([]bool, count+2)
			most := 0 // gaps at a time
			for n, i := range order(count) {
				i++ // indexes begin at 1
				for _, k := range []int{i, 1 + rnd.IntN(count)} {
					if seen, free := s.look(uint16(k)); seen != came[k] || n == 0 && !free {
						t.Fatalf("%s of %d: message %d came %v, want %v", name, count, k, seen, came[k])
					}
				}
				_, free := s.look(uint16(i))
				if !free && (came[i-1] || came[i+1] || s.more != nil && s.more.bits != nil) {
					t.Fatalf("%s of %d: there is no room for message %d", name, count, i)
				}
				before := held.bytes
				s.add(uint16(i), uint16(count), held)
				came[i] = true
				if grew := held.bytes - before; grew > gapSize || free && grew > 0 {
					t.Fatalf("%s of %d: message %d was taken for %d bytes, free %v", name, count, i, grew, free)
				}
				if s.more != nil {
					runs := len(s.more.list)
					most = max(most, runs)
					if size := 4 * runs; size > 1<<10 || size > max(8*(count/64+1), 4*fewRuns) {
						t.Fatalf("%s of %d: %d runs are no bitmap", name, count, runs)
					}
				}
				if m := s.more; m != nil && m.bits == nil && held.bytes > gapSize*most {
					t.Fatalf("%s of %d: %d bytes for at most %d gaps", name, count, held.bytes, most)
				}
				if m := s.more; m != nil && 8*cap(m.bits)+4*len(m.list) > held.bytes {
					t.Fatalf("%s of %d: %d words and %d runs for %d bytes", name, count, len(m.bits), len(m.list), held.bytes)
				}
			}
			for i := 1; i <= count; i++ {
				if seen, _ := s.look(uint16(i)); seen != came[i] {
					t.Fatalf("%s of %d: in the end message %d came %v", name, count, i, seen)
				}
			}
			if s.free(held); held.bytes != 0 {
				t.Errorf("%s of %d: %d bytes are left", name, count, held.bytes)
			}
		}
	}
}

// rangeOf returns n numbers from the first on.
func rangeOf(first, n, step int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = first + i*step
	}
	return list
}

// TestPartsAreUsedAgain: while transactions come and go, what was given back is taken next.
func TestPartsAreUsedAgain(t *testing.T) {
	h := &holding{pool: new(pool)}
	in, r, page := h.newEntry(), h.newRuns(), h.newPage()
	h.freeRuns(r)
	h.freeEntry(in)
	h.freePage(page)
	if h.newEntry() != in || h.newRuns() != r || h.newPage() != page {
		t.Error("a part was made though one was kept")
	}
}

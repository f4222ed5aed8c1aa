package memory

import (
	"errors"
	"testing"
	"unsafe"
)

// TestIndexesRest: an index that was invalidated is given to nobody for a while, and then it
// is free again.
func TestIndexesRest(t *testing.T) {
	table := NewTable()
	index := func(i int) uint32 { return uint32(i+1) << shardBits } // all of one shard
	s := &table.shards[0]
	free := func(i int) bool { return s.insert(new(Grant), index(i)<<keyBits) }
	for i := range resting {
		if !free(i) || free(i) {
			t.Fatalf("index %d: not free at first, or free when it is taken", i)
		}
		table.remove(index(i) << keyBits)
	}
	for i := range 2 * resting {
		if free(i) {
			t.Fatalf("index %d is free though %d were invalidated since", i, resting-1)
		}
		next := resting + i
		free(next)
		table.remove(index(next) << keyBits)
		if !free(i) {
			t.Fatalf("index %d is not free though %d were invalidated since", i, resting)
		}
	}
	if len(s.rests) != resting || len(s.ring) != resting {
		t.Errorf("%d and %d rest", len(s.rests), len(s.ring))
	}
}

// TestTableStaysSmall: what was removed leaves no room behind, and does not slow down searches.
func TestTableStaysSmall(t *testing.T) {
	domain := NewTable().NewDomain()
	var kept []*Region
	for i := range 100_000 {
		r, err := domain.Register(nil, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			kept = append(kept, r)
		} else {
			r.Invalidate()
		}
	}
	slots := 0
	for i := range domain.shared.table.shards {
		slots += len(*domain.shared.table.shards[i].slots.Load())
	}
	if slots > 64*len(kept) {
		t.Errorf("%d slots for %d regions", slots, len(kept))
	}
	for _, r := range kept {
		if domain.shared.table.lookup(r.STag()) != r.Grant {
			t.Errorf("%#x is lost", r.STag())
		}
	}
}

// TestTableGrowsSeldom: to register takes as long in a large table as in a small one.
func TestTableGrowsSeldom(t *testing.T) {
	const n = 50_000
	domain := NewTable().NewDomain()
	s := &domain.shared.table.shards[0]
	grown, slots := 0, s.slots.Load()
	for range n {
		if _, err := domain.Register(nil, 0, nil); err != nil {
			t.Fatal(err)
		}
		if now := s.slots.Load(); now != slots {
			grown, slots = grown+1, now
		}
	}
	if grown > 12 { // 2^12 slots for the shard's 780
		t.Errorf("%d STags made a shard grow %d times", n, grown)
	}
}

func TestTableIsFull(t *testing.T) {
	table := NewTable()
	for i := range table.shards {
		table.shards[i].live = maxLive
	}
	if r, err := table.NewDomain().Register(nil, 0, nil); !errors.Is(err, ErrTooMany) || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// TestGrantIsALineOfTheCache: see [Grant].
func TestGrantIsALineOfTheCache(t *testing.T) {
	if size := unsafe.Sizeof(Grant{}); size > 64 {
		t.Errorf("a grant has %d bytes", size)
	}
}

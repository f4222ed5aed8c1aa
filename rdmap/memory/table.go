package memory

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
)

const (
	keyBits   = 8
	indexBits = 24

	// Indexes are divided among shards by their lowest bits, so that a table that grows holds up
	// few of those who register meanwhile.
	shardBits = 6
	shards    = 1 << shardBits

	// maxLive keeps STags sparse, and the search for a free index short: half of a shard's.
	maxLive = 1 << (indexBits - shardBits - 1)
	// resting is how many indexes of a shard must be invalidated before one of them is used
	// again: with an old STag nobody reaches what somebody else registered a moment later.
	resting = 1024
)

// Table has all memory of a host that is registered. It may be used by many goroutines.
type Table struct {
	shards [shards]shard
}

// shard is a hash table by index, which is random by itself. Readers take no lock: slots only ever
// change from nil to a grant, and from there to gone and back, or to nil where the next is nil, so that whoever
// searches finds every grant that was there when it began.
type shard struct {
	slots atomic.Pointer[[]slot] // a power of two, at most half of them not nil

	mu   sync.Mutex
	live int
	used int // slots that are not nil
	// Indexes that were invalidated, oldest at next once there are resting of them.
	rests map[uint32]struct{}
	ring  []uint32
	next  int
}

type slot = atomic.Pointer[Grant]

// gone is in the slot of what was removed. Nobody enters it.
var gone = func() *Grant {
	g := new(Grant)
	g.gate.Store(shut)
	return g
}()

// NewTable makes an empty table.
func NewTable() *Table {
	t := new(Table)
	for i := range t.shards {
		slots := make([]slot, 4)
		t.shards[i].slots.Store(&slots)
	}
	return t
}

// Len is how many regions and windows are valid.
func (t *Table) Len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.live
		s.mu.Unlock()
	}
	return n
}

func (t *Table) lookup(stag uint32) *Grant {
	index := stag >> keyBits
	slots := *t.shards[index%shards].slots.Load()
	mask := uint32(len(slots) - 1)
	for at := index >> shardBits & mask; ; at = (at + 1) & mask {
		g := slots[at].Load()
		if g == nil || g.stag.Load() == stag {
			return g // gone has the STag 0, which [Table.insert] gives to nobody, and is shut
		}
	}
}

// insert gives the grant a STag.
func (t *Table) insert(g *Grant) error {
	for range 1000 { // at most every second try fails
		var random [4]byte
		rand.Read(random[:])
		stag := binary.NativeEndian.Uint32(random[:])
		index := stag >> keyBits
		if index != 0 && t.shards[index%shards].insert(g, stag) {
			return nil
		}
	}
	return ErrTooMany
}

// insert gives the grant, which is in no slot, the STag, unless its index is taken.
func (s *shard) insert(g *Grant, stag uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := stag >> keyBits
	if _, rests := s.rests[index]; rests || s.live >= maxLive {
		return false
	}
	slots := *s.slots.Load()
	if 2*(s.used+1) > len(slots) {
		slots = s.rehash(slots)
	}
	at, taken := s.search(slots, index)
	if taken {
		return false
	}
	if slots[at].Load() == nil {
		s.used++
	}
	s.live++
	g.stag.Store(stag)
	slots[at].Store(g)
	return true
}

// search finds the first slot that is free for an index, or the one that the index has.
func (s *shard) search(slots []slot, index uint32) (at uint32, taken bool) {
	mask := uint32(len(slots) - 1)
	free, found := uint32(0), false
	for at := index >> shardBits & mask; ; at = (at + 1) & mask {
		switch g := slots[at].Load(); {
		case g == nil && found:
			return free, false
		case g == nil:
			return at, false
		case g == gone:
			if !found {
				free, found = at, true
			}
		case g.stag.Load()>>keyBits == index:
			return at, true
		}
	}
}

// rehash makes slots of which at most a third is used, without those that are gone. Who
// searches in the old ones finds there what was registered when it began.
func (s *shard) rehash(old []slot) []slot {
	size := len(old)
	for size < 3*(s.live+1) {
		size *= 2
	}
	for size > 8*(s.live+1) && size > 4 {
		size /= 2
	}
	slots := make([]slot, size)
	for i := range old {
		if g := old[i].Load(); g != nil && g != gone {
			free, _ := s.search(slots, g.stag.Load()>>keyBits)
			slots[free].Store(g)
		}
	}
	s.used = s.live
	s.slots.Store(&slots)
	return slots
}

// remove takes a STag, which is there, out of the table, and has its index rest.
func (t *Table) remove(stag uint32) {
	index := stag >> keyBits
	s := &t.shards[index%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := *s.slots.Load()
	at, _ := s.search(slots, index)
	slots[at].Store(gone)
	s.live--
	// A search that goes on from here finds nothing: it can end here. So a table in which as many are removed as
	// are inserted is seldom made again.
	mask := uint32(len(slots) - 1)
	for ; slots[at].Load() == gone && slots[(at+1)&mask].Load() == nil; at = (at - 1) & mask {
		slots[at].Store(nil)
		s.used--
	}
	if s.rests == nil {
		s.rests = make(map[uint32]struct{})
	}
	s.rests[index] = struct{}{}
	if len(s.ring) < resting {
		s.ring = append(s.ring, index)
		return
	}
	delete(s.rests, s.ring[s.next])
	s.ring[s.next] = index
	s.next = (s.next + 1) % resting
}

package session

import (
	"bytes"
	"hash"
	"math"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestTags checks that of one receiver no two senders have the same tag, and of one sender no two receivers.
func TestTags(t *testing.T) {
	for bit := range 32 {
		for _, e := range []Epoch{0, 1, 0x12345678, 0xFFFFFFFF} {
			if x := e ^ 1<<bit; Tag(7, e) == Tag(7, x) || Tag(e, 7) == Tag(x, 7) {
				t.Errorf("epochs %#x and %#x have one tag", e, x)
			}
		}
	}
	if Tag(0x1234, 0xAABBCCDD) != 0x1234^0xCCDDAABB {
		t.Errorf("%#x", Tag(0x1234, 0xAABBCCDD))
	}
}

// TestGenerations checks that what a peer is told counts for this slot and the next, until an attempt or a session ends.
func TestGenerations(t *testing.T) {
	var g Generations
	peer := []byte("ids and address")
	begin := ack.Instant(100 * 30 * time.Second)
	e := g.Of(peer, begin)
	first, second := e.Told(), e.Next()
	if first == second || first == 0 || second == 0 {
		t.Fatalf("told %#x, next %#x", first, second)
	}
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {29 * time.Second, true}, {59 * time.Second, true}, {60 * time.Second, false}} {
		e := g.Of(peer, begin.Add(c.after))
		if e.IsTold(first) != c.want || e.IsNext(second) != c.want {
			t.Errorf("after %v: told %v, next %v, want %v", c.after, e.IsTold(first), e.IsNext(second), c.want)
		}
	}
	if e.IsTold(second) || e.IsNext(first) || e.IsTold(0) {
		t.Error("it takes what was not told")
	}
	e.End()
	if e.IsTold(first) || !e.IsTold(second) || e.Told() != second {
		t.Error("after the end: what was next is not what is told")
	}
	if g.Of([]byte("another peer"), begin).Told() == second {
		t.Error("two peers are told the same")
	}
	var restarted Generations
	if r := restarted.Of(peer, begin); r.Told() == first || r.Check(1, 2) == e.Check(1, 2) {
		t.Error("another process tells the same")
	}
	if e.Check(1, 2) == e.Check(2, 1) || e.Check(1, 2) == g.Of([]byte("another peer"), begin).Check(1, 2) {
		t.Error("the check does not depend on the pair and the peer alone")
	}
}

// TestGenerationsCostNothing checks that an endpoint keeps nothing for peers that it tells epochs, before a session has ended.
func TestGenerationsCostNothing(t *testing.T) {
	var g Generations
	for i := range 1000 {
		g.Of([]byte{byte(i), byte(i >> 8)}, 0).Told()
	}
	if g.ended != nil {
		t.Error("it keeps counts")
	}
}

// TestEpochsAreNoise checks that each bit of what unknown sources are told differs from one of them to the next, and from each other
// bit.
func TestEpochsAreNoise(t *testing.T) {
	var g Generations
	var bits [64]uint64 // of so many sources
	for i := range 64 {
		e := g.Of([]byte{byte(i)}, 1)
		for bit, told := 0, uint64(e.Told())<<32|uint64(e.Check(e.Told(), 5)); bit < 64; bit++ {
			bits[bit] |= told >> bit & 1 << i
		}
	}
	for i, b := range bits {
		if b == 0 || b == math.MaxUint64 {
			t.Errorf("bit %d is the same for all", i)
		}
		for j, other := range bits[:i] {
			if b == other {
				t.Errorf("bits %d and %d are the same", j, i)
			}
		}
	}
}

// sums is a hash of one byte, over and over.
type sums struct {
	hash.Hash
	is byte
}

func (s sums) Write(b []byte) (int, error) { return len(b), nil }
func (s sums) Reset()                      {}
func (s sums) Sum(b []byte) []byte         { return append(b, bytes.Repeat([]byte{s.is}, 32)...) }

// TestEpochIsNeverZero checks that whatever the hash is, what a peer is told names an epoch, and counts.
func TestEpochIsNeverZero(t *testing.T) {
	for _, is := range []byte{0, 1, 0xFF} {
		g := Generations{mac: sums{is: is}}
		if e := g.Of([]byte("ids and address"), 1); e.Told() == 0 || e.Next() == 0 || !e.IsTold(e.Told()) || e.IsTold(0) {
			t.Errorf("hash %#x: told %#x, next %#x", is, e.Told(), e.Next())
		}
	}
}

// TestGenerationsAreBounded checks that counts of ended sessions take as much memory for many peers as for one, and that what other
// peers were told counts on, but for the few of the same bucket.
func TestGenerationsAreBounded(t *testing.T) {
	var g Generations
	of := func(i int) Epochs { return g.Of([]byte{byte(i), byte(i >> 8), byte(i >> 16)}, 1) }
	var told [1000]Epoch
	for i := range told {
		told[i] = of(i).Told()
	}
	of(1 << 20).End()
	lost := 0
	for i, e := range told {
		if !of(i).IsTold(e) {
			lost++
		}
	}
	if lost > 10 { // 1000 / 4096 are to be expected
		t.Errorf("one session that ended has %d of %d other peers ask again", lost, len(told))
	}
	for i := range 100_000 {
		of(i).End()
	}
	if len(g.ended) != buckets {
		t.Errorf("%d counts are kept, want %d", len(g.ended), buckets)
	}
}

// BenchmarkWelcome is what the HELLO of an unknown source costs besides receiving and answering it.
func BenchmarkWelcome(b *testing.B) {
	var g Generations
	peer := []byte("ids, port and address!")
	b.ReportAllocs()
	for b.Loop() {
		f := Frame{Kind: Hello, Sender: 5}
		Answer(At{Takes: true}, g.Of(peer, 1), &f, NoRoom)
	}
}

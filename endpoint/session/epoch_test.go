package session

import (
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

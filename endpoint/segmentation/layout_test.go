package segmentation

import (
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// layouts calls check with layouts of many kinds, and dice.
func layouts(t *testing.T, check func(r *rand.Rand, l *Layout)) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 20_000 {
		l := Layout{Final: 1 << r.IntN(5), NoLength4: i%2 == 0}
		l.Chunk = l.Final << r.IntN(4)
		l.Full = roundUp(l.Chunk+r.IntN(300), 8)
		if check(r, &l); t.Failed() {
			t.Fatalf("with %+v", l)
		}
	}
}

// TestMessagesAreCountedAsTheyAreCut checks that a transaction is said to have as many messages as
// it is cut into, one by one, wherever in a frame it begins, and that no segment has more than MostMessages says.
func TestMessagesAreCountedAsTheyAreCut(t *testing.T) {
	layouts(t, func(r *rand.Rand, l *Layout) {
		room := min(8*r.IntN(l.Full/8+4)-frame.MessageHeaderSize, l.Full)
		for range 1 + r.IntN(4) {
			n := r.IntN(5 * l.Full)
			got, left := l.Messages(n, room)
			first, count := room, 0
			for n := n; n > 0; {
				take := l.Cut(n, room)
				if take == 0 {
					room = l.Full
					continue
				}
				count++
				n -= take
				room -= roundUp(roundUp(take, l.Final), 8) + frame.MessageHeaderSize
			}
			if got != count || left != room || count > l.MostMessages(n) {
				t.Errorf("%d bytes, %d bytes left in the first frame: %d messages, at most %d, and %d bytes left in the last; want %d, %d", n, first, got, l.MostMessages(n), left, count, room)
			}
		}
	})
}

// TestCutsAreAsThePeerTakesThem checks that a message fits its room, that all but the last of a segment are a multiple of Chunk,
// that the last fits padded to Final, that none has four bytes where the peer drops those, and that a segment is cut where there
// is room for LeastRoom bytes, or the frame is empty.
func TestCutsAreAsThePeerTakesThem(t *testing.T) {
	layouts(t, func(r *rand.Rand, l *Layout) {
		n, room := 1+r.IntN(2*l.Full), r.IntN(l.Full+9)-8
		if r.IntN(4) == 0 {
			room = l.Full
		}
		take := l.Cut(n, room)
		switch last := l.NoLength4 && n == 4 && take == 2 || take == n; {
		case take < 0 || take > max(room, 0) || take > n:
			t.Errorf("%d of %d bytes, with room for %d", take, n, room)
		case last && l.Padded(take) > room:
			t.Errorf("%d bytes, padded to %d, with room for %d", take, l.Padded(take), room)
		case last && l.NoLength4 && take == 4:
			t.Errorf("a message of %d bytes", take)
		case last:
		case l.Padded(n) <= room:
			t.Errorf("%d of %d bytes, with room for %d", take, n, room)
		case take%l.Chunk != 0 || take < min(LeastRoom, l.Full)-l.Chunk && take > 0:
			t.Errorf("%d of %d bytes are cut off", take, n)
		case take == 0 && (room == l.Full || room >= max(LeastRoom, l.Chunk)):
			t.Errorf("none of %d bytes, with room for %d", n, room)
		}
	})
}

// TestBodies checks that a body is as long as its messages are, and that one message of as much as an empty frame has room for makes the
// longest.
func TestBodies(t *testing.T) {
	layouts(t, func(r *rand.Rand, l *Layout) {
		b := make([]byte, 4096)
		var w frame.Writer
		w.Init(b)
		body := 0
		for range 1 + r.IntN(4) {
			n := 1 + r.IntN(300)
			body = l.Append(body, n)
			w.Add(&frame.Message{Len: uint16(l.Padded(n))})
			if body != w.Len()-frame.HeaderSize {
				t.Errorf("a body of %d bytes, want %d", body, w.Len()-frame.HeaderSize)
			}
		}
		if n := l.Full &^ (l.Final - 1); l.Append(0, n) > l.FullBody() || l.Append(0, n+l.Final) <= l.FullBody() {
			t.Errorf("%d bytes make a body of %d, the longest has %d", n, l.Append(0, n), l.FullBody())
		}
	})
}

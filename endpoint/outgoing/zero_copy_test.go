package outgoing

import (
	"bytes"
	"math"
	"testing"
)

// TestWhatIsLent checks from how many bytes on data leaves from where it is: from more in the clear than sealed, and
// none where something looks at each frame in one piece; and that the frame is the same where it does not.
func TestWhatIsLent(t *testing.T) {
	for _, c := range []struct {
		sealed, onePiece bool
		least            int // 0: none is lent
	}{
		{false, false, 4096}, {true, false, 512}, {false, true, 0}, {true, true, 0},
	} {
		for _, size := range []int{0, 511, 512, 4095, 4096, 9000} {
			var b Batch
			b.Init(14, small, LendingOf(c.sealed, c.onePiece))
			end := bytes.Repeat([]byte{7}, size)
			buf, rest := b.Frame(20, end, 4)
			lent := c.least > 0 && size >= c.least
			want := 14 + 20
			if !lent {
				want += size
			}
			if len(buf) != want || cap(buf) != want+4 || (rest != nil) != lent || b.IsLending() != lent {
				t.Errorf("%+v: of %d bytes: a buffer of %d, capacity %d; %d where they are; lending %v", c, size, len(buf), cap(buf), len(rest), b.IsLending())
			}
			if !lent && !bytes.Equal(buf[14+20:], end) {
				t.Errorf("%+v: %d other bytes", c, size)
			}
			if b.End() != lent || b.IsLending() {
				t.Errorf("%+v: lends %v after the end, of %d bytes", c, b.IsLending(), size)
			}
		}
	}
}

// TestTracedFramesAreInOnePiece checks that no length of data is lent where something looks at each frame.
func TestTracedFramesAreInOnePiece(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		if l := LendingOf(sealed, true); l.Least != math.MaxInt {
			t.Errorf("sealed %v: %d bytes are lent", sealed, l.Least)
		}
	}
}

// TestOneByteIsLent checks that a batch says that it lends, however little, until it has ended.
func TestOneByteIsLent(t *testing.T) {
	var b Batch
	b.Init(0, small, Lending{Least: 1, Most: 10})
	b.Frame(1, []byte{1}, 0)
	if !b.IsLending() || !b.End() || b.IsLending() {
		t.Error("a byte was lent, and it is not said until the end")
	}
	if b.Frame(1, nil, 0); b.IsLending() || b.End() {
		t.Error("nothing was lent")
	}
}

// TestAbandonedBatch checks that nothing is lent when no batch is sent any more.
func TestAbandonedBatch(t *testing.T) {
	var b Batch
	b.Init(0, small, Lending{Least: 1, Most: 10})
	b.Frame(1, []byte{1}, 0)
	if b.Abandon(); b.IsLending() {
		t.Error("is lending")
	}
}

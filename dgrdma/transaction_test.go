package dgrdma

import (
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
)

// TestTransactionSays checks that a transaction says how many bytes it has, and where its
// completion word goes.
func TestTransactionSays(t *testing.T) {
	for _, x := range []struct {
		t     *Transaction
		bytes int
	}{
		{&Transaction{}, 0},
		{&Transaction{Segments: []Segment{{0, make([]byte, 5)}, {4, nil}, {8, make([]byte, 7)}}}, 12},
	} {
		if got := x.t.Bytes(); got != x.bytes {
			t.Errorf("%d bytes, want %d", got, x.bytes)
		}
	}
	none, some := Transaction{progress: progress{base: 4096}}, Transaction{progress: progress{base: 4096}, Completion: Word(16, 1)}
	if none.word() != frame.NoCompletion || some.word() != 4096+16 {
		t.Errorf("completions at %#x and %#x", none.word(), some.word())
	}
}

// TestTransactionIDsSkipABit checks that transaction ids follow each other, but for those that have
// a bit that the peer keeps for itself.
func TestTransactionIDsSkipABit(t *testing.T) {
	for _, bit := range []uint32{0, 1, 1 << 3, 1 << 9} {
		p := Native()
		p.SkipBit = bit
		r := newHalfRig(t, 1, p, Config{})
		r.come(1 << 20)
		r.c.tx.nextTxn = 0
		for want := range uint32(3000) {
			if want&bit != 0 {
				continue
			}
			if got := r.c.tx.nextTxn; got != want {
				t.Fatalf("without %#x: %#x, want %#x", bit, got, want)
			}
			var x Transaction
			r.c.tx.post(r.now, &r.c.plain, &x)
			r.c.tx.begin(r.now, &x, 0)
		}
	}
}

// TestWriteOfNothing checks that a transaction that writes nothing is done like any other, and is not taken for a frame of the
// handshake.
func TestWriteOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		for range 3 {
			if err := p.toB.Write(t.Context(), &Transaction{}); err != nil {
				t.Fatal(err)
			}
		}
		if st := p.toA.Stats(); st.Completions != 3 || st.Restarts != 0 {
			t.Errorf("%d completions, %d restarts", st.Completions, st.Restarts)
		}
	})
}

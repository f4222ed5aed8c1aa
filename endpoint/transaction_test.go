package endpoint

import (
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// TestTransactionSays how many bytes it has, and where its completion word goes.
func TestTransactionSays(t *testing.T) {
	for _, x := range []struct {
		t     *Transaction
		bytes int
	}{
		{nil, 0},
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

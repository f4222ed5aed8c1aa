package endpoint

import (
	"bytes"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// TestBatchOfSmallFrames: each frame of a batch has a buffer of its own, with room for the
// longest of those that are sent once, and what is made for a batch is used by a full one.
func TestBatchOfSmallFrames(t *testing.T) {
	for _, headroom := range []int{0, 14} {
		var b batch
		b.init(headroom, leastLent)
		var bufs [][]byte
		for !b.full() {
			buf := b.small()
			if len(buf) < headroom+toldSize || len(buf) != cap(buf) {
				t.Fatalf("a buffer of %d bytes, which may grow to %d", len(buf), cap(buf))
			}
			copy(buf, bytes.Repeat([]byte{byte(len(bufs))}, len(buf)))
			bufs = append(bufs, buf)
			b.add(new(transport.Addr), buf, nil)
		}
		used := 0
		for i, buf := range bufs {
			used += len(buf)
			if !bytes.Equal(buf, bytes.Repeat([]byte{byte(i)}, len(buf))) {
				t.Fatalf("buffer %d of %d was written into", i, len(bufs))
			}
		}
		if used != len(b.smalls) {
			t.Errorf("a full batch uses %d bytes of %d", used, len(b.smalls))
		}
	}
}

package netconn

import (
	"io"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/link"
)

// TestPeersBuffersTakeNothing checks that a connection keeps as much as was written to it, however
// many and long the buffers are into which its peer receives (F9).
func TestPeersBuffersTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		peer := w.host(3, &link.Config{Memory: 200 << 20})
		dialed, accepted := join(t, peer, listen(t, w.b, "port", nil), Options{Buffers: 64, Size: link.MaxMessage})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const lines = 63 // as many as there are buffers, but for the one of end of file
		for range lines {
			if _, err := accepted.Write([]byte("sixteen bytes..\n")); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%d bytes were allocated for %d lines", got, lines)
		}
		got := make([]byte, lines*16)
		if _, err := io.ReadFull(dialed, got); err != nil {
			t.Error(err)
		}
	})
}

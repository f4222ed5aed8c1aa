package dgrdma

import (
	"runtime"
	"testing"
	"weak"
)

// TestClosedConnectionIsCollected checks that the endpoint keeps nothing of a connection that is
// closed until a time when it would have been looked at.
func TestClosedConnectionIsCollected(t *testing.T) {
	f := newFeed(t, Config{})
	pointer := func() weak.Pointer[Conn] {
		c, err := f.e.Connect(Peer{ID: 1, Addr: addrA})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Post(&Transaction{Completion: Word(0, 1)}); err != nil {
			t.Fatal(err)
		}
		f.give(nil)
		if c.Stats().FramesSent == 0 {
			t.Fatal("it was not introduced")
		}
		c.Close()
		return weak.Make(c)
	}()
	f.give(nil)
	runtime.GC()
	runtime.GC()
	if pointer.Value() != nil {
		t.Error("it is kept")
	}
	runtime.KeepAlive(f)
}

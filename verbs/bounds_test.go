package verbs

import (
	"io"
	"net"
	"testing"
)

// TestCutShortIsCounted: who is turned away while as many others are waited for as may be is closed
// behind the answer, and counted.
func TestCutShortIsCounted(t *testing.T) {
	for _, x := range []struct {
		parts int
		want  uint64
	}{{MostTurnedAway - 1, 0}, {MostTurnedAway, 1}} {
		h, err := Open("tcp:127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		l, err := h.Listen("0") // one for each: it goes on with who is turned away, and counts that
		if err != nil {
			t.Fatal(err)
		}
		l.away.mu.Lock()
		l.away.n = x.parts
		l.away.mu.Unlock()
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write([]byte("MPA ID Req Frame\x40\x01\x00\x00")); err != nil {
			t.Fatal(err)
		}
		r, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.TurnAway([]byte("no")); err != nil {
			t.Fatal(err)
		}
		if n := h.Stats().CutShort; n != x.want {
			t.Errorf("beside %d others: %d are counted, want %d", x.parts, n, x.want)
		}
		if b, err := io.ReadAll(nc); err != nil || string(b[len(b)-2:]) != "no" {
			t.Errorf("beside %d others it is told %q: %v", x.parts, b, err)
		}
	}
}

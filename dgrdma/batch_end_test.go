package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// flood is a wire on which there is always another datagram, which is no frame.
type flood struct {
	handmade
	came int
}

func (w *flood) Recv(dst []transport.Datagram, _ time.Duration) (int, error) {
	w.came++
	dst[0] = transport.Datagram{From: addrA, Data: []byte{1}}
	return 1, nil
}

func (w *flood) Send(batch []transport.Outgoing) (int, error) { return len(batch), nil }
func (w *flood) Close() error                                 { return nil }

// TestBatchEndsThoughMoreComes checks that a batch of datagrams ends, and the endpoint acts on what
// it says, though more come all the while; and that the goroutine that drives the endpoint goes on
// when what was there at first is done.
func TestBatchEndsThoughMoreComes(t *testing.T) {
	for _, manual := range []bool{true, false} {
		w := &flood{}
		e, err := New(w, &Config{ID: 2, Manual: true})
		if err != nil {
			t.Fatal(err)
		}
		e.cfg.Manual = manual
		x := engine{e}
		n, _ := x.Receive(0)
		if _, err := x.Apply(n); err != nil {
			t.Fatal(err)
		}
		if got := int(e.Stats().RefusedBy(RefusedMalformed)); got != w.came || manual && got != 1 || !manual && (got < 2 || got > 1000) {
			t.Errorf("manual %v: %d datagrams came, %d of a batch were looked at", manual, w.came, got)
		}
		e.cfg.Manual = true
		e.Close()
	}
}

package mpa

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestTraffic: what was sent is seen while it waits for the peer, and what came when it has.
func TestTraffic(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			na, nb := k.pair(t)
			a, b := open(t, na, nb, nil, nil)
			until := func(what string, there func() bool) {
				t.Helper()
				for began := time.Now(); !there(); time.Sleep(time.Millisecond) {
					if time.Since(began) > 30*time.Second {
						t.Fatalf("%s: this side has %+v, the other %+v", what, a.Traffic(), b.Traffic())
					}
				}
			}
			until("nothing is sent", func() bool { return a.Traffic().Untaken == 0 })
			before, came := a.Traffic(), b.Traffic().Came
			const size = 32 << 20 // more than any buffer
			src, sink := &listSource{t: t, list: []ddp.Message{outgoing(send(1, make([]byte, size)), 2)}}, newSink(t)
			sent := make(chan error, 1)
			go func() { sent <- drain(a, src) }()
			until("nobody receives", func() bool { return a.Traffic().Untaken > 0 })
			for len(sink.got) == 0 {
				if err := b.Receive(sink); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			until("all is received", func() bool { return a.Traffic().Untaken == 0 })
			taken, got := a.Traffic().Taken-before.Taken, b.Traffic().Came-came
			if taken != got || got < size {
				t.Errorf("%d bytes are taken, and %d came", taken, got)
			}
		})
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestWriteToWhoIsGone: of a peer that took some and was then killed, or came back under
// another id, it is not said that it is there and refuses something.
func TestWriteToWhoIsGone(t *testing.T) {
	noGoroutineLeft(t)
	for _, back := range []bool{false, true} {
		at := freeUDP(t)
		memory := regionOf(t, 4096)
		begin := func(id int) *dgrdma.Endpoint {
			e, err := dgrdma.Open(localString(at, 4096, id), &dgrdma.Config{Memory: memory, AcceptAny: true})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		first := begin(2)
		var other *dgrdma.Endpoint
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			if err := memory.WaitFor(t.Context(), 64, 1); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Millisecond) // for the acknowledgement
			first.Close()
			if back {
				other = begin(3)
			}
		}()
		code, _, stderr := runFor(t, patient(t), "write", "--to", localString(at, 4096, 2)+"?giveup=300ms",
			"--addr", "0", "--text", "x", "--flag-addr", "64", "--count", "0", "--interval", "100ms")
		<-changed
		other.Close()
		if code != exitError || !strings.Contains(stderr, "then nothing came any more") || strings.Contains(stderr, "it is there") {
			t.Errorf("came back %v: code %d: %s", back, code, stderr)
		}
	}
}

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
		at := free(t)
		first, _ := serveProcess(t, "--accept", "any", "--watch", "64", localString(at, 4096, 2))
		var other *dgrdma.Endpoint
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			eventually(t, "it is written to", func() bool { return strings.Contains(first.out.String(), "0x00000040 = 0x00000001") })
			time.Sleep(20 * time.Millisecond) // for the acknowledgement
			first.Process.Kill()
			first.code()
			if back {
				var err error
				if other, err = dgrdma.Open(localString(at, 4096, 3), &dgrdma.Config{Memory: regionOf(t, 4096), AcceptAny: true}); err != nil {
					t.Error(err)
				}
			}
		}()
		code, _, stderr := runFor(t, patient(t), "write", "--to", localString(at, 4096, 2)+"?giveup=300ms",
			"--addr", "0", "--text", "x", "--flag-addr", "64", "--count", "0", "--interval", "100ms")
		<-changed
		if other != nil {
			other.Close()
		}
		if code != exitError || !strings.Contains(stderr, "then nothing came any more") || strings.Contains(stderr, "it is there") {
			t.Errorf("came back %v: code %d: %s", back, code, stderr)
		}
	}
}

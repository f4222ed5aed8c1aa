package main

import (
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
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
			// The second time is sent when the first has been acknowledged.
			eventually(t, "it is written to twice", func() bool { return strings.Contains(first.out.String(), "0x00000040 = 0x00000002") })
			first.Process.Kill()
			first.code()
			if back {
				var err error
				if other, err = dgrdma.Open(localString(at, 4096, 3), &dgrdma.Config{Memory: regionOf(t, 4096), AcceptAny: true}); err != nil {
					t.Error(err)
				}
			}
		}()
		code, _, stderr := runFor(t, patient(t), "write", "--to", localString(at, 4096, 2)+"?giveup=2s",
			"--addr", "0", "--text", "x", "--flag-addr", "64", "--flag-step", "1", "--count", "0", "--interval", "100ms")
		<-changed
		if other != nil {
			other.Close()
		}
		if code != exitError || !strings.Contains(stderr, "then nothing came any more") || strings.Contains(stderr, "it is there") {
			t.Errorf("came back %v: code %d: %s", back, code, stderr)
		}
	}
}

// TestWriteWithoutAcknowledgementToNobody checks that a write to a peer that never acknowledges fails where the system is told that no
// port or no machine is there, in words and as an object, which tells the standstill too (D2-2).
func TestWriteWithoutAcknowledgementToNobody(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "::1"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(host), free(t).Port())
		to := strings.Replace(localString(at, 16777216, 2), "::1", "[::1]", 1)
		const check = ", or a firewall says so; is the other side started, and is that its port?\n"
		code, out, stderr := runFor(t, t.Context(), "write", "--profile", "opencpi2", "--to", to, "--addr", "0", "--text", "abcd")
		want := at.String() + ": nothing listens at that port; everything is sent all the same\ndgrdmacat write: " + at.String() + ": nothing listens at that port" + check
		if code != exitError || stderr != want || !strings.Contains(out, "then it failed") {
			t.Errorf("code %d: %s%s", code, out, stderr)
		}
		code, out, _ = runFor(t, t.Context(), "write", "--profile", "opencpi2", "--to", to, "--addr", "0", "--text", "abcd", "--json")
		var got struct {
			Acknowledged bool
			Standstill   float64 `json:"standstill_seconds"`
			Error        string
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitError || got.Acknowledged || !strings.Contains(got.Error, "nothing listens") || math.Abs(got.Standstill-0.053) > 0.001 {
			t.Errorf("code %d, %v: %s", code, err, out)
		}
	}
}

// TestWriteWithoutAcknowledgementToNoMachine checks that the system is waited for that looks for the machine of a peer that never
// acknowledges (D2-2).
func TestWriteWithoutAcknowledgementToNoMachine(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	nobody := netip.AddrPortFrom(netns.Nobody(netns.IPv4(1), 1), 9)
	p := asProcess(t, "write", "--profile", "opencpi2", "--to", localString(nobody, 4096, 2), "--addr", "0", "--text", "abcd")
	pair[0].In(func() { p.start() })
	if code := p.code(); code != exitError || !strings.Contains(p.err.String(), "no route to host, or a firewall says so; is that its address, and is its machine up?\n") {
		t.Errorf("code %d: %s%s", code, &p.out, &p.err)
	}
}

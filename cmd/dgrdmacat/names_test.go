package main

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestHostNames: a command takes the name of a host in the string of its peer, from wherever it
// dials, and says which one it looked up in vain.
func TestHostNames(t *testing.T) {
	fixture.Names(t, map[string][]netip.Addr{"both.example": {netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}})
	for ip, local := range map[string]string{"127.0.0.1": "", "[::1]": "udp:[::1]"} {
		b, err := dgrdma.Open("udp:"+ip, &dgrdma.Config{AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for host, want := range map[string]string{"both.example": "", "unknown.example": "no address of host unknown.example"} {
			args := []string{"write", "--to", strings.Replace(b.URL(), ip, host, 1), "--addr", "0x40", "--text", host}
			if local != "" {
				args = append(args, "--local", local)
			}
			code, out, stderr := runFor(t, context.Background(), args...)
			if (code == exitOK) != (want == "") || !strings.Contains(stderr, want) {
				t.Errorf("%s at %s: %d, %s%s", host, ip, code, out, stderr)
			}
		}
		b.Close() // what was placed is there for others
		if got := string(b.Memory().(*dgrdma.Region).Bytes()[0x40:][:12]); got != "both.example" {
			t.Errorf("written to %s: %q", ip, got)
		}
	}
	if code, out, _ := runFor(t, t.Context(), "url", "udp:camera.local:7100"); code != exitOK || !strings.Contains(out, "address       camera.local\n") {
		t.Errorf("%d, %s", code, out)
	}
}

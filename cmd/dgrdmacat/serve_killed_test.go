package main

import (
	"strings"
	"syscall"
	"testing"
)

// TestServeNoticesAKilledWriter: by asking it, as serve has nothing to send to it, and help says
// after how long.
func TestServeNoticesAKilledWriter(t *testing.T) {
	t.Parallel()
	s, url := serveProcess(t, "--accept", "any", "--watch", "0", "udp:127.0.0.1?keepalive=50ms&giveup=300ms")
	w := asProcess(t, "write", "--to", url, "--flag-addr", "0", "--count", "0", "--interval", "1h").start()
	eventually(t, "it wrote", func() bool { return strings.Contains(s.out.String(), " = 0x00000001 (1)") })
	w.Process.Signal(syscall.SIGKILL)
	eventually(t, "it is told to be down", func() bool { return strings.Contains(s.out.String(), " down: ") })
	if code, help, _ := runFor(t, t.Context(), "serve", "-h"); code != exitOK || !strings.Contains(strings.Join(strings.Fields(help), " "), "is asked after 10s of silence whether it is still there (keepalive=TIME in URL), and is down when it has not answered for 10s") {
		t.Errorf("code %d, %s", code, help)
	}
}

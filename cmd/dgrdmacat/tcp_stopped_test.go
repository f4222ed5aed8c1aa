package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stop stops a process, until the end of the test.
func (p *process) stop(t *testing.T) {
	t.Helper()
	stopProcess(t, p.Process)
	t.Cleanup(func() { p.Process.Signal(syscall.SIGCONT) })
}

// TestTCPServerStopped: a client whose server is stopped amid its work ends, and says who is silent, for how long, and where to look.
func TestTCPServerStopped(t *testing.T) {
	t.Parallel()
	const look = "s; is its program stopped, or its machine or the network down?\n"
	for _, c := range []struct{ server, client, begun, says string }{
		{"rping --serve tcp:127.0.0.1:0", "rping --wait 3s -v", "ping data: ", "no answer of %s within 3s; is the program there stopped, or its machine or the network down?"},
		{"bench --serve tcp:127.0.0.1:0", "bench --op write --rate 10Mbit --size 64k --seconds 60 -i 100ms", " operations/s", "the server fell silent: nothing has come from %s for 1"},
		{"bench --serve tcp:127.0.0.1:0", "bench --op read --size 64k --depth 1 --rate 10Mbit --seconds 60 -i 100ms", " operations/s", "the server fell silent: nothing has come from %s for 1"},
		{"ping --serve tcp:127.0.0.1:0", "ping --op read -v -i 10ms -n 100000 --wait 1s", "us\n", "dgrdmacat ping: tcp:%s does not answer any more: nothing has come from it for 10s; is the program there stopped, or its machine or the network down?\n"},
	} {
		t.Run(c.client, func(t *testing.T) {
			t.Parallel()
			server, at := startTCPServer(t, strings.Fields(c.server)...)
			client := asProcess(t, append(strings.Fields(c.client), "--to", at)...).start()
			eventually(t, "it has begun", func() bool { return strings.Contains(client.out.String()+client.err.String(), c.begun) })
			server.stop(t)
			began := time.Now()
			code := client.code()
			says, said := fmt.Sprintf(c.says, at[4:]), client.err.String()
			if code != exitError || !strings.Contains(said, says) || strings.HasPrefix(c.client, "bench") && !strings.HasSuffix(said, look) {
				t.Errorf("code %d after %v, %s", code, time.Since(began), said)
			}
		})
	}
}

// TestTCPClientStopped: a server whose client is stopped amid its work says likewise, and serves others.
func TestTCPClientStopped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, client, begun, says, next string }{
		{"rping --serve tcp:127.0.0.1:0 --wait 3s", "rping -v", "ping data: ", "no answer of ", "rping -C 1"},
		{"bench --serve tcp:127.0.0.1:0", "bench --op write --rate 10Mbit --size 64k --seconds 60 -i 100ms", " operations/s", ": the client fell silent in the middle of a run: nothing has come from it for 1", "bench --op write --seconds 0.1 --size 64k"},
	} {
		t.Run(c.client, func(t *testing.T) {
			t.Parallel()
			server, at := startTCPServer(t, strings.Fields(c.server)...)
			client := asProcess(t, append(strings.Fields(c.client), "--to", at)...).start()
			eventually(t, "it has begun", func() bool { return strings.Contains(client.out.String()+client.err.String(), c.begun) })
			client.stop(t)
			eventually(t, "the server gives it up", func() bool { return strings.Contains(server.err.String(), c.says) })
			runOK(t, c.next+" --to "+at)
		})
	}
}

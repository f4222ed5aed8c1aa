package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestWhoClosesThePipeHasEnough: who closes the pipe, as head does, has enough, and whatever else fails
// fails all the same.
func TestWhoClosesThePipeHasEnough(t *testing.T) {
	const peer = "ocpi-udp-rdma:127.0.0.1;9;4096.2.16"
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"help", exitOK, ""},
		{"send -h", exitOK, ""},
		{"man bench", exitOK, ""},
		{"wireshark", exitOK, ""},
		{"completion bash", exitOK, ""},
		{"version", exitOK, ""},
		{"url udp:7100", exitOK, ""},
		{"url --json udp:7100", exitOK, ""},
		{"demo --size 1M", exitOK, ""},
		{"bench --seconds 0.2", exitOK, ""},
		{"decode " + captureFile("udp-many"), exitOK, ""},
		{"decode " + captureFile("udp-many") + " nothing.pcap", exitOK, ""}, // it was not asked for any more
		{"decode nothing.pcap " + captureFile("udp-many"), exitError, "nothing.pcap: no such file"},
		{"decode -w - " + captureFile("udp-many"), exitOK, ""},
		{"report --json " + captureFile("udp-many"), exitOK, ""},
		{"write --to " + peer + "?giveup=1ms --flag-addr 0", exitError, "dgrdmacat write: dgrdma: peer 2 at 127.0.0.1:9: "},
		{"man nonsense", exitUsage, "no command"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &stdio{strings.NewReader(""), w, &stderr})
		w.Close()
		if said := stderr.String(); code != c.code || !strings.Contains(said, c.stderr) || c.stderr == "" && said != "" || strings.Contains(said, "broken pipe") {
			t.Errorf("%s: code %d, %q", c.args, code, said)
		}
	}
}

// TestWhoClosesThePipeOfPings has enough of what a peer answers, too, and that the output is full is all that is said of that: nothing
// is wrong with the peer.
func TestWhoClosesThePipeOfPings(t *testing.T) {
	t.Parallel() // most of it is waiting
	closed := func(t *testing.T) *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		return w
	}
	full := func(t *testing.T) *os.File {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	overTCP := func(args ...string) func(*testing.T) (*process, string) {
		return func(t *testing.T) (*process, string) {
			return startTCPServer(t, append(args, "--serve", "tcp:127.0.0.1:0")...)
		}
	}
	overUDP := func(mode string) func(*testing.T) (*process, string) {
		return func(t *testing.T) (*process, string) { return startPingServer(t, mode, "udp:127.0.0.1") }
	}
	// At intervals the second ping is printed, and not only the thousandth.
	for client, start := range map[string]func(*testing.T) (*process, string){
		"ping --op send -v -i 1ms": overTCP("ping"), "ping --op read -v -i 1ms": overTCP("ping"), "rping -v": overTCP("rping"),
		"ping -v -i 1ms": overUDP(""), "ping --link -v -i 1ms": overUDP("--link"),
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			_, at := start(t)
			for _, c := range []struct {
				out  func(*testing.T) *os.File
				code int
				says string
			}{
				{closed, exitOK, ""},
				{full, exitError, "write /dev/full: no space left on device\n"},
			} {
				out := c.out(t)
				defer out.Close()
				var stderr bytes.Buffer
				code := run(patient(t), append(strings.Fields(client), "--wait", "9s", "--to", at), &stdio{strings.NewReader(""), out, &stderr})
				_, said, _ := strings.Cut(stderr.String(), ": ") // behind the name of the command
				if code != c.code || said != c.says {
					t.Errorf("code %d, %q; want %d, %q", code, &stderr, c.code, c.says)
				}
			}
		})
	}
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestGoneTCPInWords: one sentence says who ended a connection, and how, whatever layers the error came through, and programs find
// what it was.
func TestGoneTCPInWords(t *testing.T) {
	through := func(err error) error {
		return fmt.Errorf("ping 3: reading it: %w", fmt.Errorf("queue pair A to B: %w", err))
	}
	for end, want := range map[error]string{
		os.NewSyscallError("readv", syscall.ECONNRESET):                         "tcp:a:1: the other side ended the connection (connection reset), without a good-bye: was it killed, or else does the other side say why?",
		os.NewSyscallError("write", syscall.EPIPE):                              "tcp:a:1: the other side ended the connection (connection reset), without a good-bye: was it killed, or else does the other side say why?",
		io.ErrUnexpectedEOF:                                                     "tcp:a:1: the other side ended the connection in the middle of a message, without a good-bye: was it killed, or else does the other side say why?",
		verbs.ErrPeerClosed:                                                     "tcp:a:1: the peer closed the connection, before this side was done; does the other side say why?",
		os.NewSyscallError("readv", syscall.EHOSTUNREACH):                       "tcp:a:1: the connection to the other side failed (no route to host); is the network down, or the other side gone?",
		&verbs.TerminateError{Remote: true, Fault: verbs.FaultProtectionRights}: "tcp:a:1: the peer ended the stream: " + verbs.FaultProtectionRights.Error() + ": the other side found a fault in what was sent",
	} {
		got := goneTCP("tcp:a:1", through(end))
		if got.Error() != want || !errors.Is(got, end) {
			t.Errorf("%v:\n%v, want\n%s", end, got, want)
		}
		if bare := goneTCP("", through(end)); "tcp:a:1: "+bare.Error() != want {
			t.Errorf("%v: %v", end, bare)
		}
	}
	other := through(errors.New("wrong data"))
	if got := goneTCP("tcp:a:1", other); got != other || goneTCP("tcp:a:1", nil) != nil {
		t.Error(got)
	}
}

// killedWords is what is said of who was killed: a system that has all that it sent closes its connection, and else resets it.
const killedWords = `(the peer closed the connection, before this side was done; does the other side say why\?|the other side ended the connection .*, without a good-bye: was it killed, or else does the other side say why\?)\n`

// TestTCPOtherSideKilled: who is left says so in one sentence, without the layers that saw it. Servers of pings take the end of a
// connection between two of them, which a killed client has by chance, for a good-bye.
func TestTCPOtherSideKilled(t *testing.T) {
	t.Parallel()
	const served = `\n127\.0\.0\.1:\d+: (?:send of 64 bytes|flush of 64 bytes|\d+ pings)[^\n]*\n`
	for _, c := range []struct{ serve, client, clientSays, serverSays string }{
		{"ping --serve tcp:127.0.0.1", "ping --op send -n 100000000", `\ndgrdmacat ping: ADDRESS: ` + killedWords, served},
		{"ping --serve tcp:127.0.0.1", "ping --op flush -n 100000000", `\ndgrdmacat ping: ADDRESS: ` + killedWords, served},
		{"rping --serve tcp:127.0.0.1:0", "rping", `\ndgrdmacat rping: ping \d+: ADDRESS: ` + killedWords, served},
		{"rping --once --serve tcp:127.0.0.1:0", "rping", `\ndgrdmacat rping: ping \d+: ADDRESS: ` + killedWords, served},
		{"bench --serve tcp:127.0.0.1", "bench --op write --seconds 3600 --size 4k", `\ndgrdmacat bench: ADDRESS: ` + killedWords, `\n127\.0\.0\.1:\d+: ` + killedWords},
		{"bench --once --serve tcp:127.0.0.1", "bench --op send --seconds 3600 --size 4k", `\ndgrdmacat bench: ADDRESS: ` + killedWords, `\ndgrdmacat bench: ` + killedWords},
	} {
		for _, killed := range []string{"server", "client"} {
			t.Run(c.serve+" "+c.client+" "+killed, func(t *testing.T) {
				t.Parallel() // most of it is waiting
				server, at := startTCPServer(t, strings.Fields(c.serve)...)
				client := asProcess(t, append(strings.Fields(c.client+" --metrics 0"), "--to", at)...).start()
				client.moved()
				victim, left, says := server, client, c.clientSays
				if killed == "client" {
					victim, left, says = client, server, c.serverSays
				}
				victim.Process.Kill()
				said := regexp.MustCompile(strings.ReplaceAll(says, "ADDRESS", regexp.QuoteMeta(at)))
				eventually(t, "who is left says it", func() bool { return said.MatchString(left.err.String()) })
				left.Process.Signal(os.Interrupt)
				left.code()
				for _, layer := range []string{"queue pair", "rdmap:", "mpa:", "verbs:", "2/0/01"} {
					if strings.Contains(left.err.String(), layer) {
						t.Errorf("%q is said: %s", layer, &left.err)
					}
				}
			})
		}
	}
}

// moved waits until so much has gone that what was asked for is well under way.
func (p *process) moved() {
	p.t.Helper()
	at := ""
	eventually(p.t, "metrics are there", func() bool {
		found := regexp.MustCompile(`metrics on (http://\S+)/metrics; `).FindStringSubmatch(p.err.String())
		if found != nil {
			at = found[1] + metrics.TextPath
		}
		return found != nil
	})
	much := regexp.MustCompile(`(?m)^dgrdma_rdma_(sent|written|fetched|read)_bytes_total\{.*\} ([1-9]\d{4,}|.*e+)`)
	eventually(p.t, "it is under way", func() bool { return much.MatchString(get(p.t, at)) })
}

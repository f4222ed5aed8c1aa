package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptedBySignal: what leaves work undone tidies up and ends by the signal, so that
// a shell ends its loop; a server that is meant to be ended so ends well.
func TestInterruptedBySignal(t *testing.T) {
	t.Parallel()
	hangUps(t)
	_, bench := startServer(t, "bench", "--serve", "udp:127.0.0.1")
	_, link := startServer(t, "bench", "--link", "--serve", "udp:127.0.0.1")
	_, ping := startServer(t, "ping", "--serve", "udp:127.0.0.1")
	receiver, listen := listenCat(t, []string{"-o", filepath.Join(t.TempDir(), "copy"), anyPort})
	nobody := localString(free(t), 4096, 2)
	for _, c := range []struct {
		args string
		ends bool   // well
		says string // of what it does before the signal comes
	}{
		{"send " + listen, false, ""},
		{"send " + nobody, false, ""},
		{"write --to " + nobody + " --flag-addr 0", false, ""},
		{"bench --seconds 60 --to " + bench, false, ""},
		{"bench --link --seconds 60 --to " + link, false, ""},
		{"bench --seconds 60", false, ""},
		{"ping -n 100000000 --to " + ping, false, ""},
		{"listen udp:127.0.0.1", false, "listening"},
		{"serve --accept any --until 0=1 udp:127.0.0.1", false, "serving"},
		{"serve --accept any udp:127.0.0.1", true, "serving"},
		{"bench --serve udp:127.0.0.1", true, "serving"},
		{"bench --once --serve udp:127.0.0.1", false, "serving"},
		{"bench --link --serve udp:127.0.0.1", true, "serving"},
		{"ping --serve udp:127.0.0.1", true, "answering"},
		{"ping --link --serve udp:127.0.0.1", true, "answering"},
		{"listen --keep udp:127.0.0.1", true, "listening"},
	} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if strings.HasPrefix(c.args, "send "+listen) && s != syscall.SIGINT {
				continue // it listens no more
			}
			p := startCat(t, strings.Fields(c.args+" --metrics 127.0.0.1:0"), stdinOpen)
			p.saysSoon(&p.stderr, "127.0.0.1") // that it is up
			p.saysSoon(&p.stderr, c.says)
			if strings.HasSuffix(c.args, listen) {
				receiver.saysSoon(&receiver.stderr, "receiving") // or it would go on listening
			}
			p.signal(s)
			p.finish()
			state := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
			if well := state.Exited() && state.ExitStatus() == exitOK; well != c.ends || !well && (!state.Signaled() || state.Signal() != s) {
				t.Errorf("%s: after %v it ended with %v, and said %s", c.args, s, p.cmd.ProcessState, p.stderr.String())
			}
			if !c.ends && !strings.Contains(p.stderr.String()+p.out.String(), "interrupted") {
				t.Errorf("%s: does not say that it was interrupted: %s", c.args, p.stderr.String())
			}
		}
	}
	receiver.finish()
}

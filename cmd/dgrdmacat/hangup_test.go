package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHangUp checks that a server ends at SIGHUP as it does at SIGINT, without a trace of its --url-file, and goes on where the signal
// is ignored, as under nohup (N9).
func TestHangUp(t *testing.T) {
	t.Parallel()
	hangUps(t)
	for _, args := range []string{
		"serve --accept any udp:127.0.0.1", "listen --keep udp:127.0.0.1", "ping --serve udp:127.0.0.1", "ping --link --serve udp:127.0.0.1", "ping --serve tcp:127.0.0.1",
		"bench --serve udp:127.0.0.1", "bench --link --serve udp:127.0.0.1", "bench --serve tcp:127.0.0.1", "rping --serve tcp:127.0.0.1",
	} {
		file := filepath.Join(t.TempDir(), "url")
		all := append(strings.Fields(args), "--url-file", file)
		p := asProcess(t, all...).start()
		p.url(file)
		p.Process.Signal(syscall.SIGHUP)
		if code := p.code(); code != exitOK {
			t.Errorf("%s: code %d, %s", args, code, &p.err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s: its --url-file stays: %v", args, err)
		}
		ignoring := asProcess(t)
		ignoring.Cmd = exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$@"`, "sh", program(t)}, all...)...)
		ignoring.Stdout, ignoring.Stderr = &ignoring.out, &ignoring.err
		ignoring.start()
		ignoring.url(file)
		ignoring.Process.Signal(syscall.SIGHUP)
		if set := ignoredBy(t, ignoring.Process.Pid); set>>(syscall.SIGHUP-1)&1 == 0 {
			t.Errorf("%s: SIGHUP is not ignored any more: %x", args, set)
		}
		ignoring.Process.Signal(os.Interrupt)
		if code := ignoring.code(); code != exitOK {
			t.Errorf("%s: with SIGHUP ignored: code %d, %s", args, code, &ignoring.err)
		}
	}
}

// hangUps lets processes that the test starts begin with SIGHUP not ignored, even if the test runs under nohup.
func hangUps(t *testing.T) {
	here := make(chan os.Signal, 1)
	signal.Notify(here, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(here) })
}

// ignoredBy returns the set of signals that a process ignores.
func ignoredBy(t *testing.T, pid int) (set uint64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, line, found := strings.Cut(string(status), "SigIgn:\t")
	if _, scanned := fmt.Sscanf(line, "%x", &set); err != nil || !found || scanned != nil {
		t.Fatalf("%v, %v: %s", err, scanned, status)
	}
	return set
}

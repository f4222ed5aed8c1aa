package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPingAtIntervals: pings leave one per interval, however soon answers come, and those that
// were lost are asked for no faster.
func TestPingAtIntervals(t *testing.T) {
	const interval = 50 * time.Millisecond
	for _, mode := range []string{"", "--busy-poll"} {
		var mu sync.Mutex
		var came []time.Time
		url := answering(t, func(number uint32) bool {
			mu.Lock()
			defer mu.Unlock()
			came = append(came, time.Now())
			return number != 4
		})
		args := append(strings.Fields(mode), "--interval", interval.String(), "--wait", "70ms", "-c", "6", "--to", url)
		code, got, stderr := ping(t, args...)
		mu.Lock()
		defer mu.Unlock()
		// The first is not measured, and the second follows it at once. On a busy machine more may be lost.
		if code != exitError || got.N+int(got.Lost) < 6 || got.Lost == 0 || !strings.Contains(stderr, "ping 4: no answer within") || len(came) != 7 {
			t.Errorf("%s: code %d, %+v, %s; %d came", mode, code, got, stderr, len(came))
		}
		if took := came[6].Sub(came[1]); took < 4*interval { // one may be made up for
			t.Errorf("%s: 6 pings in %v", mode, took)
		}
	}
	_, url := startPingServer(t, "--link", "udp:127.0.0.1")
	began := time.Now()
	if code, got, stderr := ping(t, "--link", "--interval", interval.String(), "-c", "6", "--wait", "9s", "--to", url); code != exitOK || got.N != 6 || time.Since(began) < 4*interval {
		t.Errorf("code %d, %+v after %v, %s", code, got, time.Since(began), stderr)
	}
}

// TestPingShowsHowFarItIs on a terminal.
func TestPingShowsHowFarItIs(t *testing.T) {
	url := answering(t, func(number uint32) bool { return number != 3 })
	on := openTerminal(t, 100, 24)
	p := asProcess(t, "ping", "--interval", "100ms", "--wait", "100ms", "-c", "1000", "--to", url)
	p.Env, p.Stderr = append(os.Environ(), "TERM=xterm"), on.user
	p.start()
	on.saysSoon(`\r\d+ of 1000, [1-9]\d* lost, last [\d.]+ us, median [\d.]+ us\x1b\[K`)
	p.Process.Signal(os.Interrupt)
	if code := p.code(); code != exitInterrupted || !strings.Contains(p.out.String(), fmt.Sprintf("times %d bytes: min ", pingBytes)) {
		t.Errorf("code %d, %s", code, &p.out)
	}
}

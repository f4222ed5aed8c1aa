package main

import (
	"fmt"
	"os"
	"regexp"
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
		// The first is not measured, and the second follows it at once. On a busy machine more may be lost.
		if code != exitError || got.N+int(got.Lost) < 6 || got.Lost == 0 || !strings.Contains(stderr, "ping 3: no answer within") {
			t.Errorf("%s: code %d, %+v, %s", mode, code, got, stderr)
		}
		// Those that were lost may come after the client has ended.
		var all []time.Time
		eventually(t, "seven came", func() bool {
			mu.Lock()
			defer mu.Unlock()
			all = came
			return len(all) >= 7
		})
		// The second leaves after the first has come, and the seventh five intervals after the second. When the second comes says nothing: a busy
		// machine may take it late.
		if took := all[6].Sub(all[0]); took < 5*interval || len(all) > 7 {
			t.Errorf("%s: 6 of %d pings in %v", mode, len(all), took)
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
	t.Parallel()
	url := answering(t, func(number uint32) bool { return number != 3 })
	on := openTerminal(t, 100, 24)
	p := asProcess(t, "ping", "--interval", "100ms", "--wait", "100ms", "-c", "1000", "--to", url)
	p.Env, p.Stderr = append(os.Environ(), "TERM=xterm"), on.user
	p.start()
	on.saysSoon(`\r([2-9]|\d\d+) of 1000, [1-9]\d* lost, last [\d.]+ us, median [\d.]+ us\x1b\[K`)
	p.Process.Signal(os.Interrupt)
	if code := p.code(); code != exitInterrupted || !strings.Contains(p.out.String(), fmt.Sprintf("times %d bytes: min ", pingBytes)) {
		t.Errorf("code %d, %s", code, &p.out)
	}
}

// TestPingShowsEachAnswer: one a line, with -v, or with --interval where a person looks.
func TestPingShowsEachAnswer(t *testing.T) {
	t.Parallel()
	_, url := startPingServer(t, "", "udp:127.0.0.1")
	answer := regexp.MustCompile(`(?m)^ping [123]: [\d.]+ us\r?$`)
	for args, lines := range map[string]int{"-v": 3, "-v -i 20ms": 3, "--interval 20ms": 0, "": 0} {
		out := runOK(t, "ping -c 3 --wait 9s "+args+" --to "+url)
		if shown := answer.FindAllString(out, -1); len(shown) != lines || !strings.Contains(out, "3 times 64 bytes: min ") {
			t.Errorf("%s: %s", args, out)
		}
	}
	on := openTerminal(t, 100, 24)
	p := asProcess(t, "ping", "-i", "20ms", "--wait", "9s", "-c", "3", "--to", url)
	p.Stdout = on.user
	if code := p.start().code(); code != exitOK {
		t.Errorf("code %d, %q, %s", code, on.written(), &p.err)
	}
	eventually(t, "the terminal shows three answers", func() bool { return len(answer.FindAllString(on.written(), -1)) == 3 })
	// Who reads no more of them has enough.
	p = asProcess(t, "ping", "-v", "-i", "20ms", "--wait", "9s", "--to", url)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout = w
	p.start()
	w.Close()
	one := make([]byte, 1)
	r.Read(one)
	r.Close()
	if code := p.code(); code != exitOK || p.err.String() != "" {
		t.Errorf("code %d, %s", code, &p.err)
	}
}

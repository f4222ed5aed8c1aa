package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// written is all that was written to the terminal.
func (p *pseudoTerminal) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// saysSoon waits until something like that was written.
func (p *pseudoTerminal) saysSoon(pattern string) {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	eventually(p.t, "the terminal shows "+pattern, func() bool { return re.MatchString(p.written()) })
}

// TestProgressOnTerminal: a bar where the size is known, in colour unless nobody
// wants it, at both ends; without a bar where it is not.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	const size = 4 * allBuffers
	for _, c := range []struct {
		name, env  string
		file       bool
		send, recv string // what the two ends show in the middle
	}{
		{"colour", "TERM=xterm", true, `\r *\d+% \[\x1b\[32m=*> *\x1b\[0m\] [\d.]+ MB of 134 MB  [\d.]+ MB/s  ETA (-:--|\d+:\d\d)\x1b\[K`, `\r  0% \[\x1b\[32m> *`},
		{"plain", "NO_COLOR=1", true, `\r *\d+% \[=*> *\] [\d.]+ MB of 134 MB  [\d.]+ MB/s  ETA (-:--|\d+:\d\d)\x1b\[K`, `\r  \d% \[=*> *\] .* of 134 MB`},
		{"no size", "TERM=xterm", false, `\r[\d.]+ [kM]?B  [\d.]+ MB/s  0:0\d\x1b\[K`, `\r[\d.]+ [kM]?B  [\d.]+ MB/s  0:0\d\x1b\[K`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			on := func(s *pseudoTerminal) setup {
				return func(p *catProcess) {
					p.cmd.Stderr = s.user
					for _, v := range os.Environ() {
						if name, _, _ := strings.Cut(v, "="); name != "NO_COLOR" && name != "TERM" {
							p.cmd.Env = append(p.cmd.Env, v)
						}
					}
					p.cmd.Env = append(p.cmd.Env, c.env)
				}
			}
			there, here := openTerminal(t, 70, 24), openTerminal(t, 70, 24)
			l, url := listenCat(t, []string{anyPort}, stdoutOpen, on(there))
			b := make([]byte, size)
			how, args := []setup{on(here)}, []string{"send"}
			if c.file {
				args = append(args, fileWith(t, b))
			} else {
				how = append(how, stdinFrom(b))
			}
			s := startCat(t, append(args, url), how...)
			// Nobody reads what the listener writes: both stand still.
			here.saysSoon(c.send)
			there.saysSoon(c.recv)
			if n, err := io.Copy(io.Discard, l.stdout); n != size || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			s.end(exitOK, "")
			l.end(exitOK, "")
			here.saysSoon(`\r\x1b\[Ksent ` + fmt.Sprint(size) + ` bytes`)
			there.saysSoon(`\r\x1b\[Kreceived ` + fmt.Sprint(size) + ` bytes`)
			if c.env == "NO_COLOR=1" && strings.Contains(here.written()+there.written(), "\x1b[3") {
				t.Error("colours with NO_COLOR")
			}
			for _, p := range []*pseudoTerminal{here, there} {
				p.mu.Lock()
				if len(p.faults) > 0 {
					t.Errorf("on the terminal: %v", p.faults)
				}
				p.mu.Unlock()
			}
		})
	}
}

// TestDumbTerminal: one that cannot be told to clear a line or to change its
// colours gets lines of text only, of whatever would show more.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	var m metricsFlag
	addr, stop := startMetrics(t, &m)
	defer stop()
	e := openPlain(t)
	defer e.Close()
	m.endpoint(e)
	for args, says := range map[string]string{
		"bench --seconds 0.3 --verify off":          "completion   min",
		"top --interval 100ms " + addr:              "ENDPOINT",
		"report --json " + captureFile("udp-loss7"): "153 records",
	} {
		on := openTerminal(t, 200, 200)
		p := asProcess(t, strings.Fields(args)...)
		p.Env = append(os.Environ(), "TERM=dumb")
		p.Stdin, p.Stdout, p.Stderr = on.user, on.user, on.user
		if code := p.start().code(); code != exitOK {
			t.Errorf("%s: code %d", args, code)
		}
		on.saysSoon(says)
		if s := on.written(); strings.Contains(s, "\x1b") {
			t.Errorf("%s: %q", args, s)
		}
	}
}

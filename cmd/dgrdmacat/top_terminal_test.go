package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pseudoTerminal is a terminal of the kernel's, whose screen is kept as a person
// would see it.
type pseudoTerminal struct {
	t      *testing.T
	master *os.File
	user   *os.File // what the command has
	gone   chan struct{}

	mu      sync.Mutex
	raw     bytes.Buffer
	pages   [2][][]byte // the usual one, and the other
	page    int
	whole   string // what the last drawing left on the page: those that begin at its corner are read in parts
	row     int
	column  int
	hidden  bool // the cursor
	columns int
	rows    int
	faults  []string // what left the screen
}

func openTerminal(t *testing.T, columns, rows int) *pseudoTerminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pseudoTerminal{t: t, master: master, user: user, gone: make(chan struct{})}
	p.resize(columns, rows)
	go p.read()
	t.Cleanup(func() {
		user.Close()
		<-p.gone // all that was written is read
		master.Close()
	})
	return p
}

func (p *pseudoTerminal) resize(columns, rows int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.columns, p.rows = columns, rows
	size := unix.Winsize{Col: uint16(columns), Row: uint16(rows)}
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		p.t.Fatal(err)
	}
	for i := range p.pages {
		p.pages[i] = make([][]byte, rows)
	}
}

func (p *pseudoTerminal) read() {
	defer close(p.gone)
	var b [1 << 16]byte
	rest := []byte(nil)
	for {
		n, err := p.master.Read(b[:])
		if err != nil {
			return
		}
		p.mu.Lock()
		p.raw.Write(b[:n])
		rest = p.take(append(rest, b[:n]...))
		p.mu.Unlock()
	}
}

// take acts on what was written and returns what is not complete. Guarded by mu.
func (p *pseudoTerminal) take(b []byte) []byte {
	for len(b) > 0 {
		switch {
		case b[0] == '\r':
			p.column = 0
		case b[0] == '\n':
			if p.row++; p.row >= p.rows {
				if p.page == 1 {
					p.faults = append(p.faults, "it scrolled")
				}
				p.row = p.rows - 1
			}
		case b[0] == 0x1b:
			end := bytes.IndexAny(b, "ABCDHJKhlm")
			if end < 0 {
				return b
			}
			p.escape(string(b[1 : end+1]))
			b = b[end:]
		default:
			if p.column >= p.columns {
				p.faults = append(p.faults, fmt.Sprintf("more than %d columns", p.columns))
				break
			}
			line := append(p.pages[p.page][p.row], bytes.Repeat([]byte(" "), max(0, p.column+1-len(p.pages[p.page][p.row])))...)
			line[p.column] = b[0]
			p.pages[p.page][p.row] = line
			p.column++
		}
		b = b[1:]
	}
	return nil
}

func (p *pseudoTerminal) escape(s string) {
	clearLine := func(row, from int) {
		if line := p.pages[p.page][row]; len(line) > from {
			p.pages[p.page][row] = line[:from]
		}
	}
	switch s {
	case "[?1049h":
		p.page, p.pages[1] = 1, make([][]byte, p.rows)
		p.whole = p.drawn()
	case "[?1049l":
		p.page = 0
		p.whole = p.drawn()
	case "[?25l", "[?25h":
		p.hidden = s == "[?25l"
	case "[H":
		p.row, p.column = 0, 0
		p.whole = p.drawn()
	case "[K":
		clearLine(p.row, p.column)
	case "[J":
		clearLine(p.row, p.column)
		for row := p.row + 1; row < p.rows; row++ {
			clearLine(row, 0)
		}
	case "[0m", "[1m", "[31m", "[32m", "[33m":
	default:
		p.faults = append(p.faults, fmt.Sprintf("unknown sequence %q", s))
	}
}

// drawn is what is on the page at this moment. Guarded by mu.
func (p *pseudoTerminal) drawn() string {
	var b strings.Builder
	for _, line := range p.pages[p.page] {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// shown is what the terminal showed when the last drawing was complete.
func (p *pseudoTerminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole
}

// givenBack reports whether a command has used the other page, and left it.
func (p *pseudoTerminal) givenBack() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	entered := bytes.Count(p.raw.Bytes(), []byte(enterScreen))
	return entered > 0 && entered == bytes.Count(p.raw.Bytes(), []byte(leaveScreen))
}

// until waits for something to be shown.
func (p *pseudoTerminal) until(what string, so func(shown string) bool) string {
	p.t.Helper()
	for range 3000 {
		if s := p.shown(); so(s) {
			return s
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatalf("%s: the terminal shows\n%s", what, p.shown())
	return ""
}

func (p *pseudoTerminal) mode() unix.Termios {
	p.t.Helper()
	mode, err := unix.IoctlGetTermios(int(p.user.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *mode
}

func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	binary := program(t)
	var m metricsFlag
	addr, stop := startMetrics(t, &m)
	defer stop()
	e := openPlain(t)
	defer e.Close()
	m.endpoint(e)
	for i := range 30 {
		if _, err := e.Dial(fmt.Sprintf("ocpi-udp-rdma:127.0.0.1;%d;65536.%d.65535", 1+i, 100+i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		args  []string
		env   []string
		end   func(p *pseudoTerminal, top *exec.Cmd)
		begin func(p *pseudoTerminal, top *exec.Cmd)
	}{
		{name: "q", end: press("q")},
		{name: "interrupt by key", end: press("\x03")},
		{name: "interrupt", end: send(syscall.SIGINT)},
		{name: "terminate", end: send(syscall.SIGTERM)},
		{name: "count", args: []string{"--count", "3"}},
		{name: "no colours", env: []string{"NO_COLOR=1"}, end: press("q")},
		{name: "another size", begin: resized, end: press("xyzq")},
		{name: "suspended", begin: suspended, end: press("q")},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			p := openTerminal(t, 90, 20)
			before := p.mode()
			top := exec.Command(binary, append([]string{"top", addr, "--interval", "100ms"}, c.args...)...)
			top.Env = append(append(os.Environ(), "TERM=xterm", "NO_COLOR="), c.env...)
			top.Stdin, top.Stdout = p.user, p.user
			var stderr bytes.Buffer
			top.Stderr = &stderr
			top.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := top.Start(); err != nil {
				t.Fatal(err)
			}
			defer top.Process.Kill()
			if c.end != nil {
				shown := p.until("a full screen", func(s string) bool { return strings.Contains(s, "\n...") })
				// Lines: title, gap, titles, endpoint, gap, titles, and the rest of 20 for peers and how many more.
				if !strings.HasPrefix(shown, addr+"  pid ") || !strings.Contains(shown, "\nENDPOINT") || !strings.Contains(shown, "\n... 17 more\n") ||
					strings.Count(shown, "asking") != 13 {
					t.Errorf("shown:\n%s", shown)
				}
				mode := p.mode()
				if mode.Lflag&(unix.ICANON|unix.ECHO) != 0 || mode.Lflag&unix.ISIG == 0 {
					t.Errorf("local modes %#x", mode.Lflag)
				}
				if c.begin != nil {
					c.begin(p, top)
				}
				c.end(p, top)
			}
			if err := top.Wait(); err != nil {
				t.Errorf("%v; %s", err, &stderr)
			}
			if s := stderr.String(); !strings.HasPrefix(s, "watched "+addr+" for ") || strings.Count(s, "\n") != 1 {
				t.Errorf("stderr: %q", s)
			}
			p.until("the page that was there", func(s string) bool { return strings.Trim(s, "\n") == "" && p.givenBack() })
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.page != 0 || p.hidden || len(p.faults) > 0 {
				t.Errorf("page %d, cursor hidden %v, %v", p.page, p.hidden, p.faults)
			}
			raw := p.raw.String()
			if coloured := strings.Contains(raw, "\x1b[1m"); coloured != (c.env == nil) {
				t.Errorf("with %v, bold titles: %v", c.env, coloured)
			}
			if after := p.mode(); after != before {
				t.Errorf("the terminal's modes are %+v, were %+v", after, before)
			}
		})
	}
}

func press(keys string) func(*pseudoTerminal, *exec.Cmd) {
	return func(p *pseudoTerminal, _ *exec.Cmd) {
		if _, err := p.master.WriteString(keys); err != nil {
			p.t.Error(err)
		}
	}
}

func send(s syscall.Signal) func(*pseudoTerminal, *exec.Cmd) {
	return func(p *pseudoTerminal, top *exec.Cmd) {
		if err := top.Process.Signal(s); err != nil {
			p.t.Error(err)
		}
	}
}

// resized makes the terminal larger: nobody told how much is on it yet.
func resized(p *pseudoTerminal, _ *exec.Cmd) {
	p.resize(150, 60)
	p.until("all peers", func(s string) bool { return strings.Count(s, "asking") == 30 && strings.Contains(s, "REFUSED/s") })
}

// suspended presses ^Z, and continues when the terminal is as it was.
func suspended(p *pseudoTerminal, top *exec.Cmd) {
	press("\x1a")(p, top)
	stopped := func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", top.Process.Pid))
		if err != nil {
			p.t.Fatal(err)
		}
		_, state, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(state, "T")
	}
	p.until("the page that was there", func(s string) bool { return strings.Trim(s, "\n") == "" && p.givenBack() && stopped() })
	if mode := p.mode(); mode.Lflag&unix.ECHO == 0 {
		p.t.Error("suspended, and nothing that is typed is shown")
	}
	send(syscall.SIGCONT)(p, top)
	p.until("the screen again", func(s string) bool { return strings.Contains(s, "\n...") })
}

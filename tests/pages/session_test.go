package pages

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// patience is for commands that take a second, on a machine that does other things as well.
const patience = 90 * time.Second

// A session is a reader of one page, who types its blocks in their order. Each terminal begins
// in the same new directory, which is the reader's home as well, and keeps its directory and
// what it exports from block to block. Where namespaces can be made the reader has one, so
// that nobody else has the ports that the page says.
type session struct {
	t        testing.TB
	home     string
	state    string // of the terminals
	env      []string
	here     *netns.Namespace
	machines *netns.Pair // made when a block needs them
}

func newSession(t testing.TB, env []string) *session {
	s := &session{t: t, home: t.TempDir(), state: t.TempDir()}
	tmp := filepath.Join(s.state, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	s.env = append(slices.Clip(env), "HOME="+s.home, "TMPDIR="+tmp)
	if netns.Missing() == "" {
		s.here = netns.New(t)
	}
	return s
}

// errMissing is why a block is left out here.
type errMissing string

func (e errMissing) Error() string { return "not run: " + string(e) }

// programs are those that commands of pages need and not everyone has.
var programs = regexp.MustCompile(`(?m)^(?:.*\| *)?(tshark|curl)\b`)

// missing says what a part needs that is not there.
func (p part) missing() error {
	if p.machine > 0 && netns.Missing() != "" {
		return errMissing(netns.Missing())
	}
	if p.root && os.Geteuid() != 0 {
		return errMissing("needs root")
	}
	for _, m := range programs.FindAllStringSubmatch(p.script(), -1) {
		if _, err := exec.LookPath(m[1]); err != nil {
			return errMissing("needs " + m[1])
		}
	}
	return nil
}

// run types the parts of a block, each when the one before it has said something, and
// interrupts those that end by ^C when all others have ended. It returns what they printed.
func (s *session) run(b block) (printed []string, err error) {
	parts := b.parts()
	for _, p := range parts {
		if err := p.missing(); err != nil {
			return nil, err
		}
	}
	var all []*shell
	defer func() {
		for _, sh := range all {
			sh.kill()
		}
	}()
	for i, p := range parts {
		sh, err := s.start(p)
		if err != nil {
			return nil, err
		}
		all = append(all, sh)
		if i+1 < len(parts) || p.interrupted() {
			if err := sh.awaitReady(); err != nil {
				return nil, err
			}
		}
	}
	ends := make(chan error, len(all))
	left := 0
	for _, sh := range all {
		if !sh.part.interrupted() {
			left++
			go func() { ends <- sh.awaitEnd() }()
		}
	}
	for range left {
		if err := <-ends; err != nil {
			return nil, err // another terminal may wait for this one
		}
	}
	for _, sh := range all {
		if sh.part.interrupted() {
			err = errors.Join(err, sh.interrupt())
		}
	}
	for _, sh := range all {
		printed = append(printed, sh.out.String())
	}
	return printed, err
}

// A shell is one part under way.
type shell struct {
	part part
	cmd  *exec.Cmd
	dir  string
	out  output
	over chan struct{}
	err  error // of the command, when over is closed
}

// output can be looked at while it is written.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// A terminal's directory under state holds what its last block left: what it exported, and
// where it stood. What is typed in the clone leaves the terminal where it was.
const (
	takeUp = `[ ! -e "$TERMINAL/exported" ] || . "$TERMINAL/exported"
leave() { export -p | grep -v '^declare -x \(OLD\)\?PWD' >"$TERMINAL/exported"; }
trap leave EXIT
`
	goBack = `[ ! -e "$TERMINAL/stands" ] || cd "$(cat "$TERMINAL/stands")"
trap 'leave; pwd >"$TERMINAL/stands"' EXIT
`
)

func (s *session) start(p part) (*shell, error) {
	sh := &shell{part: p, dir: s.home, over: make(chan struct{})}
	script := takeUp + goBack + p.script()
	if p.clone {
		sh.dir, script = clone, takeUp+p.script()
	}
	terminal := filepath.Join(s.state, p.String())
	if err := os.MkdirAll(terminal, 0o755); err != nil {
		return nil, err
	}
	sh.cmd = exec.Command("bash", "-euo", "pipefail", "-c", script)
	sh.cmd.Dir = sh.dir
	sh.cmd.Env = append(s.env, "TERMINAL="+terminal)
	sh.cmd.Stdout, sh.cmd.Stderr = &sh.out, &sh.out
	sh.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	sh.cmd.WaitDelay = time.Second
	var err error
	start := func() { err = sh.cmd.Start() }
	switch {
	case p.machine > 0:
		s.machine(p.machine).In(start)
	case s.here != nil:
		s.here.In(start)
	default:
		start()
	}
	if err != nil {
		return nil, err
	}
	go func() {
		sh.err = sh.cmd.Wait()
		close(sh.over)
	}()
	return sh, nil
}

// machine returns machine 1 or 2 of a page: they have the addresses 10.77.0.1 and 10.77.0.2,
// and are joined by their interfaces eth0, of which the MAC addresses end likewise.
func (s *session) machine(no int) *netns.Namespace {
	if s.machines == nil {
		pair := netns.NewPair(s.t, 1500)
		for i, n := range pair {
			n.Rename(s.t, "eth0", net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)})
		}
		s.machines = &pair
	}
	return s.machines[no-1]
}

var urlFile = regexp.MustCompile(`--url-file (\S+)`)

// awaitReady waits until a reader would go on in the next terminal: it has said something,
// and the file with its endpoint string is there, or it is over.
func (sh *shell) awaitReady() error {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		select {
		case <-sh.over:
			return nil // awaitEnd says how
		default:
		}
		ready := strings.Contains(sh.out.String(), "\n")
		for _, m := range urlFile.FindAllStringSubmatch(sh.part.script(), -1) {
			b, err := os.ReadFile(filepath.Join(sh.dir, m[1]))
			ready = ready && err == nil && len(b) > 0
		}
		if ready {
			return nil
		}
	}
	return sh.failed("says nothing")
}

func (sh *shell) awaitEnd() error {
	select {
	case <-sh.over:
	case <-time.After(patience):
		return sh.failed("does not end, and no comment says that ^C ends it")
	}
	if sh.err != nil {
		return sh.failed(sh.err.Error())
	}
	return nil
}

func (sh *shell) interrupt() error {
	select {
	case <-sh.over:
		return sh.failed("ended before ^C: " + fmt.Sprint(sh.err))
	default:
	}
	syscall.Kill(-sh.cmd.Process.Pid, syscall.SIGINT)
	return sh.awaitEnd()
}

func (sh *shell) failed(why string) error {
	return fmt.Errorf("%s\n%s\nprinted: %s", why, sh.part.script(), sh.out.String())
}

// kill ends what is left: a process that the shell started may outlive it.
func (sh *shell) kill() {
	syscall.Kill(-sh.cmd.Process.Pid, syscall.SIGKILL)
	<-sh.over
}

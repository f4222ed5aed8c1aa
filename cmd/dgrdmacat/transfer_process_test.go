package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// catProcess is dgrdmacat in a process of its own.
type catProcess struct {
	t           *testing.T
	cmd         *exec.Cmd
	out, stderr lockedBuffer
	stdin       io.WriteCloser // with stdinOpen
	stdout      io.ReadCloser  // with stdoutOpen
	ended       chan error
}

// How a catProcess is connected.
type setup func(p *catProcess)

func stdinFrom(b []byte) setup { return func(p *catProcess) { p.cmd.Stdin = bytes.NewReader(b) } }

func stdinOpen(p *catProcess) {
	w, err := p.cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.stdin = w
}

func stdoutOpen(p *catProcess) {
	p.cmd.Stdout = nil
	r, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.stdout = r
}

func startCat(t *testing.T, args []string, how ...setup) *catProcess {
	t.Helper()
	p := &catProcess{t: t, cmd: exec.Command(program(t), args...), ended: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.stderr
	for _, f := range how {
		f(p)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Signal(syscall.SIGCONT)
		p.cmd.Process.Kill()
		p.finish()
	})
	return p
}

// finish waits for the end. With stdoutOpen all has to be read before.
func (p *catProcess) finish() {
	if p.ended == nil {
		return
	}
	go func() { p.ended <- p.cmd.Wait() }()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.cmd.Process.Signal(syscall.SIGABRT) // shows where it hangs
		<-p.ended
		p.t.Errorf("%v did not end: %s", p.cmd.Args, p.stderr.String())
	}
	p.ended = nil
}

// end waits for the end and checks the exit code, and that both outputs match.
func (p *catProcess) end(code int, stderr string) {
	p.t.Helper()
	p.finish()
	if got := shellCode(p.cmd.ProcessState); got != code {
		p.t.Errorf("%v: exit code %d, want %d: %s", p.cmd.Args[1:], got, code, p.stderr.String())
	}
	if !regexp.MustCompile(`(?s)^` + stderr + `$`).MatchString(p.stderr.String()) {
		p.t.Errorf("%v: stderr is\n%s\nwant\n%s", p.cmd.Args[1:], p.stderr.String(), stderr)
	}
}

func (p *catProcess) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// pause stops a process, and waits until none of its threads runs any more.
func (p *catProcess) pause() {
	p.t.Helper()
	stopProcess(p.t, p.cmd.Process)
}

// stopProcess stops a process, and waits until none of its threads runs any more: until then it may still answer.
func stopProcess(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process stands still", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
		for _, name := range threads {
			// The state is behind the name, which is in parentheses.
			b, err := os.ReadFile(name)
			if i := bytes.LastIndexByte(b, ')'); err != nil || i < 0 || !bytes.HasPrefix(b[i:], []byte(") T")) {
				return false
			}
		}
		return len(threads) > 0
	})
}

// saysSoon waits until a process has said something.
func (p *catProcess) saysSoon(where *lockedBuffer, what string) {
	p.t.Helper()
	eventually(p.t, "it says "+what, func() bool { return strings.Contains(where.String(), what) })
}

// write writes to the standard input, which is open.
func (p *catProcess) write(b []byte) {
	p.t.Helper()
	if _, err := p.stdin.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// read reads that many bytes of the standard output, which is open.
func (p *catProcess) read(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	if n, err := io.ReadFull(p.stdout, b); err != nil {
		p.t.Fatalf("%v after %d bytes", err, n)
	}
	return b
}

// What the two commands say.
const (
	saysListening = `listening on ocpi-udp-rdma:127\.0\.0\.1;\d+;\d+\.\d+\.65535\n`
	saysFrom      = `receiving from ` + saysPeer + `(, \d+ bytes?)?\n`
	saysAccepted  = saysListening + saysFrom
	saysTime      = ` in \d+\.\d\d s, [\d.]+ MB/s`
	saysPeer      = `peer \d+ at 127\.0\.0\.1:\d+`
)

func saysSent(n int) string     { return `sent ` + count(n, "byte") + saysTime + `\n` }
func saysReceived(n int) string { return `received ` + count(n, "byte") + saysTime + `\n` }

// listenCat starts a listener and returns its URL.
func listenCat(t *testing.T, args []string, how ...setup) (*catProcess, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	p := startCat(t, append([]string{"listen", "--url-file", file}, args...), how...)
	url := ""
	eventually(t, "there is a URL", func() bool {
		b, err := os.ReadFile(file)
		url = strings.TrimSpace(string(b))
		return err == nil
	})
	return p, url
}

const (
	anyPort   = "udp:127.0.0.1"
	shortLife = "?giveup=5s"

	// What a receiver has for each stream.
	bufferSize = 1 << 20
	allBuffers = 32 * bufferSize
)

func fileWith(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestSendSizes: seven senders in a row, of sizes around those of buffers, from
// files and pipes.
func TestSendSizes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, url := listenCat(t, []string{"--keep", "-o", filepath.Join(dir, "in-%02d.bin"), anyPort})
	want := map[string][]byte{}
	log := saysListening
	for i, n := range []int{0, 1, bufferSize - 1, bufferSize, bufferSize + 1, 3*bufferSize + 7, 2 * allBuffers} {
		b := random(uint64(i), n)
		name := fmt.Sprintf("in-%02d.bin", i+1)
		want[name] = b
		sum, args := "", []string{"send"}
		if i%3 == 0 {
			args, sum = append(args, "--checksum"), `, SHA-256 [0-9a-f]{64}`
		}
		var s *catProcess
		switch i % 3 {
		case 0:
			s = startCat(t, append(args, fileWith(t, b), url))
		case 1:
			s = startCat(t, append(args, url), stdinFrom(b))
		case 2:
			s = startCat(t, append(args, "-", url), stdinFrom(b))
		}
		s.end(exitOK, "sent "+count(n, "byte")+sum+saysTime+`\n`)
		if len(s.out.String()) > 0 {
			t.Errorf("send wrote %q", s.out.String())
		}
		log += saysFrom + saysPeer + ": " + regexp.QuoteMeta(filepath.Join(dir, name)) + ": received " + count(n, "byte") + sum + saysTime + `\n`
	}
	l.signal(syscall.SIGINT)
	l.end(exitOK, log+`streams received: 7, failed: 0\n`)
	wantFiles(t, dir, want)
}

// TestSendIsWhole: when send ends well, the file is there with the mode of new
// files, whatever that of the one that was sent, though listen has not ended yet.
func TestSendIsWhole(t *testing.T) {
	t.Parallel()
	dir, b := t.TempDir(), random(1, 3<<20)
	name := filepath.Join(dir, "out")
	l, url := listenCat(t, []string{"-o", name, anyPort})
	s := startCat(t, []string{"send", fileWith(t, b), url})
	s.end(exitOK, saysSent(len(b)))
	wantFiles(t, dir, map[string][]byte{"out": b})
	l.end(exitOK, saysAccepted+saysReceived(len(b)))
	usual := filepath.Join(dir, "usual")
	os.WriteFile(usual, nil, 0o666)
	got, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := os.Stat(usual); got.Mode() != want.Mode() {
		t.Errorf("mode %v, want %v", got.Mode(), want.Mode())
	}
}

// TestListenPassesOnAtOnce: what a slow writer wrote is there before it writes
// more.
func TestListenPassesOnAtOnce(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{"-o", "-", anyPort}, stdoutOpen)
	s := startCat(t, []string{"send", "-", url}, stdinOpen)
	total := 0
	for i, n := range []int{1, 100, 100_000, 7} {
		b := random(uint64(i), n)
		s.write(b)
		if got := l.read(n); !bytes.Equal(got, b) {
			t.Fatalf("piece %d arrived wrong", i)
		}
		total += n
	}
	s.stdin.Close()
	if rest, err := io.ReadAll(l.stdout); err != nil || len(rest) > 0 {
		t.Errorf("%d more bytes, %v", len(rest), err)
	}
	s.end(exitOK, saysSent(total))
	l.end(exitOK, saysAccepted+saysReceived(total))
}

// TestDuplex: both directions at once, more than fits into buffers; and when one
// ends, who reads it knows, and the other goes on.
func TestDuplex(t *testing.T) {
	t.Parallel()
	const n = 2 * allBuffers
	there, back := random(1, n), random(2, n+1)
	l, url := listenCat(t, []string{"--duplex", "--checksum", anyPort}, stdinFrom(back))
	s := startCat(t, []string{"send", "--duplex", url}, stdinFrom(there))
	sums := `, SHA-256 [0-9a-f]{64}`
	s.end(exitOK, fmt.Sprintf(`sent %d bytes%s, received %d bytes%s`, n, sums, n+1, sums)+saysTime+`\n`)
	l.end(exitOK, saysAccepted+fmt.Sprintf(`sent %d bytes%s, received %d bytes%s`, n+1, sums, n, sums)+saysTime+`\n`)
	if s.out.String() != string(back) || l.out.String() != string(there) {
		t.Errorf("%d and %d bytes arrived, not as they were sent", len(s.out.String()), len(l.out.String()))
	}
}

func TestDuplexHalfClose(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{"--duplex", anyPort}, stdinOpen, stdoutOpen)
	s := startCat(t, []string{"send", "--duplex", url}, stdinFrom([]byte("question")))
	question, err := io.ReadAll(l.stdout) // to its end, before there is an answer
	if err != nil || string(question) != "question" {
		t.Fatalf("%q, %v", question, err)
	}
	l.write([]byte("the "))
	l.write([]byte("answer"))
	l.stdin.Close()
	s.end(exitOK, `sent 8 bytes, received 10 bytes`+saysTime+`\n`)
	l.end(exitOK, saysAccepted+`sent 10 bytes, received 8 bytes`+saysTime+`\n`)
	if s.out.String() != "the answer" {
		t.Errorf("%q", s.out.String())
	}
}

// TestDuplexNeedsBoth: who does not want it is not read from, and waits on for
// somebody else.
func TestDuplexNeedsBoth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listen, send, reason string }{
		{"", "--duplex", "the receiver was started without --duplex"},
		{"--duplex", "", "the receiver was started with --duplex: both sides need it"},
	} {
		args := func(flag string, more ...string) []string {
			if flag != "" {
				more = append([]string{flag}, more...)
			}
			return more
		}
		l, url := listenCat(t, args(c.listen, anyPort), stdinFrom([]byte("secret")))
		s := startCat(t, append([]string{"send"}, args(c.send, url)...), stdinFrom(nil))
		s.end(exitError, `dgrdmacat send: link: dial port "stream" of `+saysPeer+`: refused by the peer: `+c.reason+`\n`)
		if len(s.out.String()) > 0 {
			t.Errorf("%q came", s.out.String())
		}
		s = startCat(t, append([]string{"send"}, args(c.listen, url)...), stdinFrom([]byte("x")))
		s.end(exitOK, `sent 1 byte.*`)
		l.end(exitOK, saysListening+saysPeer+` was sent away: `+c.reason+`\n.*received 1 byte.*`)
	}
}

// TestListenBusy: without --keep a second sender is told at once.
func TestListenBusy(t *testing.T) {
	t.Parallel()
	l, url := listenCat(t, []string{anyPort}, stdoutOpen)
	first := startCat(t, []string{"send", url}, stdinOpen)
	first.write([]byte("x"))
	l.read(1)
	second := startCat(t, []string{"send", url}, stdinFrom([]byte("y")))
	second.end(exitError, `dgrdmacat send: link: dial port "stream" of `+saysPeer+`: refused by the peer: busy with another sender: try again later\n`)
	first.write([]byte("z"))
	first.stdin.Close()
	if rest, _ := io.ReadAll(l.stdout); string(rest) != "z" {
		t.Errorf("%q", rest)
	}
	first.end(exitOK, saysSent(2))
	l.end(exitOK, saysAccepted+saysReceived(2))
}

// TestListenKeepsSeveralAtOnce: each sender has a file, or its time on standard
// output.
func TestListenKeepsSeveralAtOnce(t *testing.T) {
	t.Parallel()
	const senders, n = 4, 3<<20 + 1
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "f.2"), []byte("old"), 0o644)
	files, filesURL := listenCat(t, []string{"--keep", "-o", filepath.Join(dir, "f"), anyPort})
	stdout, stdoutURL := listenCat(t, []string{"--keep", anyPort})
	var all []*catProcess
	for i := range senders {
		all = append(all, startCat(t, []string{"send", filesURL}, stdinFrom(random(uint64(i), n))))
		all = append(all, startCat(t, []string{"send", stdoutURL}, stdinFrom(random(uint64(i), n))))
	}
	for _, s := range all {
		s.end(exitOK, saysSent(n))
	}
	files.signal(syscall.SIGINT)
	stdout.signal(syscall.SIGTERM)
	files.end(exitOK, `.*\nstreams received: 4, failed: 0\n`)
	stdout.end(exitOK, `.*\nstreams received: 4, failed: 0\n`)
	whole := []byte(stdout.out.String())
	for i := range senders {
		want := random(uint64(i), n)
		if at := bytes.Index(whole, want); at < 0 || at%n != 0 {
			t.Errorf("stream %d is not in one piece on standard output", i)
		}
		found := 0
		for _, k := range []int{1, 3, 4, 5} {
			if b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("f.%d", k))); bytes.Equal(b, want) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("stream %d is in %d files", i, found)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "f.2")); string(b) != "old" || len(whole) != senders*n {
		t.Errorf("f.2 is %q, %d bytes on standard output", b, len(whole))
	}
}

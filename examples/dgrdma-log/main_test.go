package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

var (
	seed   = flag.Uint64("seed", 0, "kill at the moments that this seed gives; 0: any")
	rounds = flag.Int("rounds", 25, "kill so often")
)

// TestMain lets the test's own program be log, for processes of their own.
func TestMain(m *testing.M) {
	if os.Getenv("LOG_IS_PROGRAM") != "" {
		main()
		os.Exit(0)
	}
	fixture.EndHangs()
	os.Exit(m.Run())
}

func program(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "LOG_IS_PROGRAM=1")
	return cmd
}

// directory is a new one on a disk.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var on unix.Statfs_t
	if err := unix.Statfs(dir, &on); err != nil {
		t.Fatal(err)
	}
	if on.Type == unix.TMPFS_MAGIC {
		var err error
		if dir, err = os.MkdirTemp(".", "testdata-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	return dir
}

// process is one that is killed when the test ends, if it lives so long.
type process struct {
	*exec.Cmd
	out *bufio.Reader
	in  io.WriteCloser
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: program(args...)}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() })
	return p
}

// startServer returns a server, and where it is.
func startServer(t *testing.T, file string) (p *process, where string) {
	t.Helper()
	p = start(t, "-file", file, "-size", "4194304", "-port", "0", "serve")
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the server says %q, %v: %v", line, err, p.Wait())
	}
	where, _, _ = strings.Cut(strings.TrimPrefix(line, "serving on "), ",")
	return p, where
}

// TestCommands: what the first comment shows, between processes.
func TestCommands(t *testing.T) {
	file := filepath.Join(directory(t), "journal")
	_, where := startServer(t, file)
	for i, c := range []struct{ in, out string }{
		{"one\ntwo\n", "1 is flushed\n2 is flushed\n"},
		{"three\n", "3 is flushed\n"},
		{"", ""},
	} {
		cmd := program(append([]string{"-server", where}, [][]string{{"append"}, {"-verify", "append"}, {"append"}}[i]...)...)
		cmd.Stdin, cmd.Stderr = strings.NewReader(c.in), os.Stderr
		if out, err := cmd.Output(); err != nil || string(out) != c.out {
			t.Errorf("append %q: %v, %q", c.in, err, out)
		}
	}
	out, err := program("-file", file, "print").CombinedOutput()
	if want := "1 one\n2 two\n3 three\n"; err != nil || string(out) != want {
		t.Errorf("print: %v, %q, want %q", err, out, want)
	}
}

// TestKills: server, client, or both are killed again and again, while copies of the file are taken. Whatever a client was told to be
// flushed is in the log, in order and whole; of what it was not told, at most the record that it was at. SIGKILL leaves the system's
// own copies of the file: that the disk has it is what Flush promises, and rdmap/memory tests.
func TestKills(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d -rounds %d", *seed, *rounds)
	random := rand.New(rand.NewPCG(*seed, 0))
	file := filepath.Join(directory(t), "journal")
	var log []string // what must be there
	lost, more := 0, 0
	for round := range *rounds {
		server, where := startServer(t, file)
		args := []string{"-server", where, "append"}
		if random.IntN(2) == 0 {
			args = slices.Insert(args, 2, "-verify")
		}
		client := start(t, args...)
		var lines []string
		for i := range 200 {
			lines = append(lines, fmt.Sprintf("%d %d %s", round, i, strings.Repeat(string(rune('a'+i%26)), random.IntN(3000))))
		}
		go func() { // who is killed does not take all of it
			io.WriteString(client.in, strings.Join(lines, "\n")+"\n")
			client.in.Close()
		}()
		told := 0
		hear := func() bool {
			_, err := client.out.ReadString('\n') // what ends without one was not told
			if err == nil {
				told++
			}
			return err == nil
		}
		for until := random.IntN(40); told < until && hear(); {
		}
		copied, known := make(chan []byte), len(log)+told
		go func() {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			copied <- b
		}()
		time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
		victims := 1 + random.IntN(3)
		if victims&1 != 0 {
			server.Process.Kill()
		}
		if victims&2 != 0 {
			client.Process.Kill()
		}
		if b := <-copied; true { // as somebody else sees the file meanwhile
			if got, _, err := records(b); err != nil || len(got) < known || !slices.Equal(got[:len(log)], log) {
				t.Fatalf("round %d: a copy has %d records, and %d were told: %v", round, len(got), known, err)
			}
		}
		for hear() {
		}
		client.Wait()
		server.Process.Kill()
		server.Wait()

		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, e, err := records(b)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		of := len(got) - len(log)
		if of < told || of > told+1 || of > len(lines) {
			t.Fatalf("round %d: %d records are new, and %d were told", round, of, told)
		}
		log = append(log, lines[:of]...)
		if !slices.Equal(got, log) {
			t.Fatalf("round %d: the log is not what was appended", round)
		}
		more += of - told
		if !bytes.Equal(b[e.tail:], make([]byte, len(b)-e.tail)) {
			lost++ // a record that was not finished is behind the tail
		}
	}
	t.Logf("%d records; %d that were not told of, %d logs with something behind the tail", len(log), more, lost)
	if len(log) == 0 {
		t.Error("nothing was ever appended")
	}
}

// TestDamage: a server does not serve a log from which something is gone that was flushed.
func TestDamage(t *testing.T) {
	file := filepath.Join(directory(t), "journal")
	b := logOf("one", "two")
	b[first+headerSize]++
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := program("-file", file, "-port", "0", "serve").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the log is damaged: the record at 4096 has another checksum") {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = program("-file", file, "-port", "0", "serve").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no log of this kind") {
		t.Errorf("%v: %s", err, out)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "something else" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

// TestFullAndBusy: a full log takes nothing, and says so; a second writer waits for the first one to go.
func TestFullAndBusy(t *testing.T) {
	t.Parallel() // most of it is waiting
	file := filepath.Join(directory(t), "journal")
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, file, int64(first+room(100)+room(50)), "tcp:127.0.0.1", "0", silence, in) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	where, _, _ := strings.Cut(strings.TrimPrefix(line, "serving on "), ",")
	w, err := Dial(ctx, where, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(ctx, make([]byte, maxData+1)); err == nil {
		t.Error("a record that is too long was appended")
	}
	if n, err := w.Append(ctx, make([]byte, 100)); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, err := w.Append(ctx, make([]byte, room(50)-headerSize+1)); !errors.Is(err, errFull) {
		t.Errorf("more than there is room for: %v", err)
	}
	_, err = Dial(ctx, where, false)
	var rejected *verbs.RejectedError
	if !errors.As(err, &rejected) || string(rejected.Private) != "another writer is at it" {
		t.Errorf("a second writer: %v", err)
	}
	second := make(chan error, 1)
	go func() {
		w, err := Dial(ctx, where, false)
		if err == nil {
			_, err = w.Append(ctx, make([]byte, 50))
			err = errors.Join(err, w.Close())
		}
		second <- err
	}()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Errorf("the next writer: %v", err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the server: %v", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := records(b); err != nil || len(got) != 2 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// TestPortInUse: a server that cannot serve leaves no file of its own behind, and what was there.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	file := filepath.Join(directory(t), "journal")
	for _, there := range []bool{false, true} {
		if there {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := serve(t.Context(), file, 1<<20, "tcp:127.0.0.1", port, silence, io.Discard); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("there %v: %v", there, err)
		}
		if _, err := os.Stat(file); (err == nil) != there {
			t.Errorf("there %v: %v", there, err)
		}
	}
}

// TestFlagsOfTheOtherRole: what one role does nothing with is refused, and not passed over.
func TestFlagsOfTheOtherRole(t *testing.T) {
	for args, says := range map[string]string{
		"-file x append":                "-file means nothing to append, which has -server, -verify",
		"-port 0 append":                "-port means nothing to append",
		"-verify serve":                 "-verify means nothing to serve, which has -file, -size, -at, -port, -silence",
		"-server tcp:127.0.0.1:1 serve": "-server means nothing to serve",
		"-server tcp:127.0.0.1:1 print": "-server means nothing to print, which has -file",
		"append -verify":                `append: what is "-verify" for? Flags come before append`,
		"print journal":                 "print takes no argument, and has 1: dgrdma-log [flags] print\n",
		"-server tcp:127.0.0.1:1 read":  "what is to be done?",
	} {
		out, err := program(strings.Fields(args)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "dgrdma-log: "+says) {
			t.Errorf("%s: %v, %s", args, err, out)
		}
	}
}

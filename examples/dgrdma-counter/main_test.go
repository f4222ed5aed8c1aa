package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestMain lets the test's own program be counter, for processes of their own.
func TestMain(m *testing.M) {
	if os.Getenv("COUNTER_IS_PROGRAM") != "" {
		main()
		os.Exit(0)
	}
	fixture.EndHangs()
	os.Exit(m.Run())
}

func counter(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "COUNTER_IS_PROGRAM=1")
	return cmd
}

// start starts a process, and returns what it prints.
func start(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return bufio.NewReader(out)
}

// TestTenClients: ten processes take numbers at once, and an eleventh is killed in the middle. No number is given twice, the count is
// how many were given, and at most the one is missing that the lost client had asked for.
func TestTenClients(t *testing.T) {
	const clients, each = 10, 300
	server := counter("-port", "0", "serve")
	says := start(t, server)
	line, err := says.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	where := strings.TrimPrefix(strings.TrimSpace(line), "serving on ")

	doomed := counter("-server", where, "-n", "1000000", "take")
	numbers := start(t, doomed)
	begun, err := numbers.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	outs := make([]bytes.Buffer, clients)
	for i := range clients {
		cmd := counter("-server", where, "-n", strconv.Itoa(each), "take")
		cmd.Stdout, cmd.Stderr = &outs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	some := begun
	for range 50 { // of all others it takes some at the same time
		line, err := numbers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		some += line
	}
	if err := doomed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(numbers)
	if err != nil {
		t.Fatal(err)
	}
	doomed.Wait()
	lost := some + string(rest)
	lost = lost[:strings.LastIndexByte(lost, '\n')+1]
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}

	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	line, err = says.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	count, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "count ")))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for i, taken := range append(outs, *bytes.NewBufferString(lost)) {
		last := -1
		for _, field := range strings.Fields(taken.String()) {
			n, err := strconv.Atoi(field)
			if err != nil || n <= last || n >= count || seen[n] {
				t.Fatalf("client %d was given %q behind %d, of %d numbers; or somebody else was before", i, field, last, count)
			}
			seen[n], last = true, n
		}
	}
	if given := clients*each + strings.Count(lost, "\n"); len(seen) != given || count-given > 1 || count < given {
		t.Errorf("%d numbers were given, %d of them different, and the count is %d", given, len(seen), count)
	}
}

// TestFlagsOfTheOtherRole: what one role does nothing with is refused, and not passed over.
func TestFlagsOfTheOtherRole(t *testing.T) {
	for args, says := range map[string]string{
		"-n 5 -port 0 serve":                 "-n belongs to take, and means nothing to serve",
		"-server tcp:127.0.0.1:1 serve":      "-server belongs to take, and means nothing to serve",
		"-port 0 take":                       "-port belongs to serve, and means nothing to take",
		"-at tcp:127.0.0.1 take":             "-at belongs to serve, and means nothing to take",
		"take 5":                             "take takes no argument, and has 1: dgrdma-counter [flags] take\n",
		"serve -n 5":                         `serve: what is "-n" for? Flags come before serve`,
		"-n 0 take":                          "-n 0: need 1 or more",
		"-n -1 -server tcp:127.0.0.1:1 take": "-n -1: need 1 or more",
		"give":                               "what is to be done?",
	} {
		out, err := counter(strings.Fields(args)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "dgrdma-counter: "+says) {
			t.Errorf("dgrdma-counter %s: %v: %s", args, err, out)
		}
	}
}

func TestNobodyServes(t *testing.T) {
	out, err := counter("-server", "tcp:127.0.0.1:1", "take").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing listens there") {
		t.Errorf("%v: %s", err, out)
	}
}

// written is called with what is written.
type written func(string)

func (w written) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }

// TestServerEndsBehindTheLastNumber: who has all numbers has not failed, though the server ends before its goodbye.
func TestServerEndsBehindTheLastNumber(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	says := make(chan string, 2)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, "tcp:127.0.0.1", "0", written(func(s string) { says <- s })) }()
	where := strings.TrimPrefix(strings.TrimSpace(<-says), "serving on ")
	taken := ""
	err := take(t.Context(), where, 2, written(func(s string) {
		if taken += s; strings.Count(taken, "\n") == 2 {
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	}))
	if count := <-says; err != nil || taken != "0\n1\n" || count != "count 2\n" {
		t.Errorf("%v; %q, %q", err, taken, count)
	}
}

// TestTooManyClients checks that a server takes so many clients, tells the next one, and has a place again when one is gone.
func TestTooManyClients(t *testing.T) {
	server := counter("-port", "0", "serve")
	line, err := start(t, server).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	dial := func() (*verbs.QueuePair, error) {
		return host.Dial(t.Context(), strings.TrimPrefix(strings.TrimSpace(line), "serving on "), &verbs.Options{Sends: 1, Receives: 1})
	}
	var last *verbs.QueuePair
	for range mostClients {
		if last, err = dial(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dial(); err == nil || !strings.Contains(err.Error(), "256 clients are there already") {
		t.Errorf("one more: %v", err)
	}
	last.Close()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := dial(); err == nil {
			return
		} else if time.Now().After(until) {
			t.Fatalf("a place that is free: %v", err)
		}
	}
}

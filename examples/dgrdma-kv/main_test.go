package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestMain lets the test's own program be kv, for processes of their own.
func TestMain(m *testing.M) {
	if os.Getenv("KV_IS_PROGRAM") != "" {
		main()
		os.Exit(0)
	}
	fixture.EndHangs()
	os.Exit(m.Run())
}

// kv is a process that runs the program.
func kv(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "KV_IS_PROGRAM=1")
	return cmd
}

// startServer runs a server and returns where it is.
func startServer(t *testing.T, args ...string) string {
	t.Helper()
	cmd := kv(context.Background(), append(args, "serve")...)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil { // of a data race, too
			t.Errorf("the server: %v: %s", err, says.Bytes())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), "serving on ")
}

// TestCommands: what the first comment shows, between processes.
func TestCommands(t *testing.T) {
	server := startServer(t, "-port", "0", "-entries", "64")
	for _, c := range []struct{ args, out, err string }{
		{"get colour", "", "there is no such key"},
		{"put colour blue", "", ""},
		{"get colour", "blue\n", ""},
		{"put colour green", "", ""},
		{"get colour", "green\n", ""},
		{"delete colour", "", ""},
		{"get colour", "", "there is no such key"},
		{"delete colour", "", "there is no such key"},
		{"put colour " + strings.Repeat("x", maxBoth), "", "a key and value of 502 bytes: they have 496 at most"},
		{"paint", "", "usage:"},
	} {
		cmd := kv(t.Context(), append([]string{"-server", server}, strings.Fields(c.args)...)...)
		var out, says bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &says
		err := cmd.Run()
		if out.String() != c.out || (err != nil) != (c.err != "") || !strings.Contains(says.String(), c.err) {
			t.Errorf("dgrdma-kv %.30s: %v, %q, %q", c.args, err, out.String(), says.String())
		}
	}
}

// TestArguments: what is missing, or too much, is said before anybody is asked.
func TestArguments(t *testing.T) {
	for args, says := range map[string]string{
		"put colour":           "dgrdma-kv: put takes two arguments, and has 1: dgrdma-kv put KEY VALUE\n",
		"put":                  "dgrdma-kv: put takes two arguments, and has 0: dgrdma-kv put KEY VALUE\n",
		"put colour dark blue": "dgrdma-kv: put takes two arguments, and has 3: dgrdma-kv put KEY VALUE\n",
		"get":                  "dgrdma-kv: get takes one argument, and has 0: dgrdma-kv get KEY\n",
		"delete a b":           "dgrdma-kv: delete takes one argument, and has 2: dgrdma-kv delete KEY\n",
		"serve here":           "dgrdma-kv: serve takes no argument, and has 1: dgrdma-kv serve\n",
		"get -port 0 colour":   "dgrdma-kv: get: what is \"-port\" for? Flags come before get\n",
		"serve -port 0":        "dgrdma-kv: serve: what is \"-port\" for? Flags come before serve\n",
		"serve":                "dgrdma-kv: -server belongs to put, get and delete, and means nothing to serve\n",
	} {
		out, err := kv(t.Context(), append([]string{"-server", "tcp:127.0.0.1:1"}, strings.Fields(args)...)...).CombinedOutput()
		if err == nil || string(out) != says {
			t.Errorf("dgrdma-kv %s: %v, %q", args, err, out)
		}
	}
	out, err := kv(t.Context(), "-entries", "64", "get", "colour").CombinedOutput()
	if err == nil || string(out) != "dgrdma-kv: -entries belongs to serve, and means nothing to put, get and delete\n" {
		t.Errorf("%v, %q", err, out)
	}
}

// TestServerStopped: a client whose server is there, and does nothing, says so in plain words, soon.
func TestServerStopped(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which the system accepts for, as for a program that is stopped
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := "tcp:" + l.Addr().String()
	began := time.Now()
	out, err := kv(t.Context(), "-server", at, "get", "colour").CombinedOutput()
	if want := "dgrdma-kv: no answer from the server at " + at + " within 3s: is its program stopped, or does another one listen there?\n"; err == nil || string(out) != want {
		t.Errorf("%v after %v: %q, want %q", err, time.Since(began), out, want)
	}
}

// TestManyClients: clients read what others write at the same time. Each value is all of one kind and numbered, so that a reader
// sees whether it is whole, and that it never gets an older one than before. Another client is killed meanwhile, again and again.
func TestManyClients(t *testing.T) {
	server := startServer(t, "-port", "0", "-entries", "4") // everybody writes side by side
	ctx := t.Context()
	const writers, readers, rounds = 3, 2, 100
	value := func(round int) []byte {
		return bytes.Repeat(binary.BigEndian.AppendUint32(nil, uint32(round)), 20+round%100)
	}
	dial := func() *Client {
		c, err := Dial(ctx, server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	var all sync.WaitGroup
	over, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	for w := range writers {
		c := dial()
		writing.Go(func() {
			key := fmt.Sprint("key ", w)
			for round := range rounds {
				if err := c.Put(ctx, key, value(round)); err != nil {
					t.Error(err)
					return
				}
				if got, err := c.Get(ctx, key); err != nil || !bytes.Equal(got, value(round)) {
					t.Errorf("what was put is not there: %v", err)
					return
				}
				if round%7 == 6 {
					if err := c.Delete(ctx, key); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range readers {
		c := dial()
		for w := range writers { // by one connection at once
			all.Go(func() {
				last, reads := 0, 0
				for over.Err() == nil {
					got, err := c.Get(ctx, fmt.Sprint("key ", w))
					if errors.Is(err, errNotThere) {
						continue
					}
					if err != nil || len(got) < 4 {
						t.Errorf("%d bytes, %v", len(got), err)
						return
					}
					round := int(binary.BigEndian.Uint32(got))
					if round < last || !bytes.Equal(got, value(round)) {
						t.Errorf("round %d after %d, or not whole: %x", round, last, got)
						return
					}
					last = round
					reads++
				}
				if reads == 0 {
					t.Error("a reader got nothing")
				}
			})
		}
	}
	all.Go(func() {
		for range 5 {
			doomed := kv(ctx, "-server", server, "get", "key 0")
			if err := doomed.Start(); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(20 * time.Millisecond)
			doomed.Process.Kill()
			doomed.Wait()
		}
	})
	writing.Wait()
	stop()
	all.Wait()
}

// TestStrangers: who asks for what is no request gets an answer, who asks for two things at once loses the connection, and who speaks
// another language is told.
func TestStrangers(t *testing.T) {
	server := startServer(t, "-port", "0", "-entries", "4")
	host, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	_, err = host.Dial(t.Context(), server, nil)
	var rejected *verbs.RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(string(rejected.Private), "say kv 1") {
		t.Errorf("without a greeting: %v", err)
	}
	dial := func() *verbs.QueuePair {
		qp, err := host.Dial(t.Context(), server, &verbs.Options{Private: []byte(greeting), Extensions: verbs.Immediates, Posted: []verbs.Receive{{}, {}}})
		if err != nil {
			t.Fatal(err)
		}
		return qp
	}
	done := make([]verbs.Completion, 2)
	for _, request := range []string{"", "\x01", "\x01\x05abc", "\x03\x01a", "\x01\x00value", "\x02\x01a" + strings.Repeat("x", maxBoth-1)} {
		qp := dial()
		if err := qp.Send(t.Context(), []byte(request)); err != nil {
			t.Fatal(err)
		}
		n, err := qp.Received().Wait(t.Context(), done)
		want := byte(statusMalformed)
		if strings.HasPrefix(request, "\x02") {
			want = statusNotThere // what follows the key is nothing to delete
		}
		if err != nil || n != 1 || done[0].Err != nil || done[0].Payload[0] != want {
			t.Errorf("%.10q: %v, %v, want status %d", request, &done[0], err, want)
		}
		qp.Abort()
	}
	flood := dial()
	for flood.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: make([]byte, 10)}) == nil {
	}
	select {
	case <-flood.Done():
		if !errors.Is(flood.Err(), verbs.FaultUntaggedNoBuffer) && !errors.Is(flood.Err(), verbs.ErrPeerClosed) && !errors.As(flood.Err(), new(net.Error)) {
			t.Errorf("the end: %v", flood.Err())
		}
	case <-time.After(10 * time.Second):
		flood.Abort()
		t.Error("a client that asks for all at once stays")
	}
	c, err := Dial(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

// TestTooManyClients checks that a server takes so many clients, tells the next one, and has a place again when one is gone.
func TestTooManyClients(t *testing.T) {
	at := startServer(t, "-port", "0")
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	dial := func() (*verbs.QueuePair, error) {
		return host.Dial(t.Context(), at, &verbs.Options{Private: []byte(greeting), Sends: 1, Receives: 1})
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

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) { os.Exit(fixture.Run(m)) }

// written is called with what is written.
type written func(string)

func (w written) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }

// TestNotices checks that all clients that watch are told what is said, once each, and that one that is gone is forgotten.
func TestNotices(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	says := make(chan string, 1)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, "tcp:127.0.0.1", "0", written(func(s string) { says <- s })) }()
	where := strings.TrimPrefix(strings.TrimSpace(<-says), "serving on ")

	const watchers = 3
	told := make(chan string, 1)
	watched := make(chan error, watchers)
	leave := make([]context.CancelFunc, watchers)
	for i := range watchers {
		var of context.Context
		of, leave[i] = context.WithCancel(t.Context())
		go func() {
			watched <- watch(of, where, written(func(s string) {
				select {
				case told <- s:
				default: // it is said again and again until all are there, or gone
				}
			}))
		}()
	}
	until := func(want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var out bytes.Buffer
			if err := say(t.Context(), where, "one\ntwo", &out); err != nil {
				t.Fatal(err)
			}
			if out.String() == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%q, want %q", out.String(), want)
			}
		}
	}
	until("told 3\n")
	if s := <-told; s != "\"one\\ntwo\"\n" {
		t.Errorf("told %q", s)
	}
	leave[0]()
	if err := <-watched; err != nil {
		t.Error(err)
	}
	until("told 2\n")
	leave[1]()
	leave[2]()
	for range 2 {
		if err := <-watched; err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

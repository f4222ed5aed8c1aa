package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestEndWhileOneWaits: a second writer waits for its turn when the server ends, which is then at once: the log stays
// mapped as long as somebody looks at it.
func TestEndWhileOneWaits(t *testing.T) {
	file := filepath.Join(directory(t), "journal")
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(ctx, file, 1<<20, "tcp:127.0.0.1", "0", w) }()
	b := make([]byte, 200)
	n, err := r.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, r)
	where := strings.TrimSuffix(strings.Fields(string(bytes.TrimSpace(b[:n])))[2], ",")
	first, err := Dial(t.Context(), where, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Append(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	h, _ := verbs.Open("tcp")
	defer h.Close()
	go h.Dial(t.Context(), where, &verbs.Options{Private: []byte(greeting), Extensions: verbs.Commit})
	time.Sleep(200 * time.Millisecond)
	stop()
	<-served
	time.Sleep(300 * time.Millisecond)
}

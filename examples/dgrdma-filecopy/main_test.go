package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	fixture.EndHangs()
	m.Run()
}

func TestFilecopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	want := bytes.Repeat([]byte("some bytes of a file\n"), 100_000)
	if err := os.WriteFile(from, want, 0o600); err != nil {
		t.Fatal(err)
	}
	out, in := io.Pipe()
	ended := make(chan error)
	go func() { ended <- receive(t.Context(), "udp:127.0.0.1", to, in) }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), from, strings.TrimSpace(url)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if left, _ := filepath.Glob(to + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

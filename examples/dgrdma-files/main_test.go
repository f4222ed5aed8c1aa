package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) { os.Exit(fixture.Run(m)) }

// written is called with what is written.
type written func(string)

func (w written) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }

// TestFiles checks that files of all lengths arrive at the server and come back, and that nothing outside of its directory is served.
func TestFiles(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	says := make(chan string, 1)
	served := make(chan error, 1)
	shelf, here, there := t.TempDir(), t.TempDir(), t.TempDir()
	go func() { served <- serve(ctx, "tcp:127.0.0.1", "0", shelf, written(func(s string) { says <- s })) }()
	server := strings.TrimPrefix(strings.TrimSpace(<-says), "serving on ")
	for _, n := range []int{0, 1, 5000, piece - 1, piece, piece + 1, 9*piece + 7} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		if err := os.WriteFile(filepath.Join(here, "file"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		os.Remove(filepath.Join(shelf, "file"))
		if err := send(t.Context(), server, here, "file"); err != nil {
			t.Fatal(err)
		}
		if err := get(t.Context(), server, there, "file"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(there, "file")); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d octets: %d came back, %v", n, len(got), err)
		}
	}
	if err := get(t.Context(), server, there, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	os.WriteFile(filepath.Join(here, "secret"), []byte("secret"), 0o644)
	os.Symlink(filepath.Join(here, "secret"), filepath.Join(shelf, "link"))
	if err := get(t.Context(), server, there, "link"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link out of the directory: %v", err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestEndWhileOneWaits: a second writer waits for its turn when the server ends, which is then at once: the log stays
// mapped as long as somebody looks at it.
func TestEndWhileOneWaits(t *testing.T) {
	file := filepath.Join(directory(t), "journal")
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(ctx, file, 1<<20, "tcp:127.0.0.1", "0", silence, w) }()
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

// startServing starts a server in this process, and returns where it is and what it says.
func startServing(t *testing.T, file string, silence time.Duration) (where string, says <-chan string) {
	t.Helper()
	r, w := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, file, 1<<20, "tcp:127.0.0.1", "0", silence, w); w.Close() }()
	lines := make(chan string, 100)
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	}()
	where, _, _ = strings.Cut(strings.TrimPrefix(<-lines, "serving on "), ",")
	if where == "" {
		t.Fatal(<-served)
	}
	t.Cleanup(func() { stop(); <-served })
	return where, lines
}

// TestSilentWriterGivesWay: to one that waits, and to nobody else. Both hear of it, and the log has what each was told.
func TestSilentWriterGivesWay(t *testing.T) {
	t.Parallel() // most of it is waiting
	file := filepath.Join(directory(t), "journal")
	where, says := startServing(t, file, 300*time.Millisecond)
	first, err := Dial(t.Context(), where, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{"one", "two"} {
		if _, err := first.Append(t.Context(), []byte(record)); err != nil {
			t.Fatalf("%s: nobody waits for its place: %v", record, err)
		}
		time.Sleep(600 * time.Millisecond)
	}
	second, err := Dial(t.Context(), where, false)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := second.Append(t.Context(), []byte("three")); n != 3 || err != nil {
		t.Error(n, err)
	}
	if _, err := first.Append(t.Context(), []byte("no more")); !errors.Is(err, verbs.ErrPeerClosed) || !strings.Contains(err.Error(), "this writer was silent and another one came") {
		t.Errorf("the silent one: %v", err)
	}
	first.Close()
	if line := <-says; !strings.HasPrefix(line, "the writer at 127.0.0.1:") || !strings.HasSuffix(line, ", and gave way to another one") {
		t.Errorf("%q", line)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := records(b); err != nil || !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLinesTooLong: a record takes what it has room for, and of a line that is longer it is said which, and what is flushed.
func TestLinesTooLong(t *testing.T) {
	where, _ := startServing(t, filepath.Join(directory(t), "journal"), silence)
	whole := strings.Repeat("x", maxData)
	for _, c := range []struct{ in, out, says string }{
		{whole + "\n" + whole, "1 is flushed\n2 is flushed\n", ""},
		{"three\n" + whole + "x\nfour\n", "3 is flushed\n", "line 2: it is longer than the 65536 bytes that a record has: cut it; those before it are flushed"},
		{"four\nfive\n" + whole + whole + "\n", "4 is flushed\n5 is flushed\n", "line 3: it is longer than the 65536 bytes that a record has: cut it; those before it are flushed"},
	} {
		var out bytes.Buffer
		err := appendLines(t.Context(), where, false, strings.NewReader(c.in), &out)
		if out.String() != c.out || (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%d bytes: %v, %q", len(c.in), err, out.String())
		}
	}
}

// TestNameIsOnTheDisk: the directory of a new file is brought to the disk, too, and what cannot be a log is not left behind.
func TestNameIsOnTheDisk(t *testing.T) {
	dir := directory(t)
	var synced []string
	sync := syncDirectory
	syncDirectory = func(d *os.File) error { synced = append(synced, d.Name()); return sync(d) }
	defer func() { syncDirectory = sync }()
	for range 2 {
		f, _, err := openFile(filepath.Join(dir, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if !slices.Equal(synced, []string{dir}) {
		t.Errorf("synced %q", synced)
	}
	broken := errors.New("the disk is broken")
	syncDirectory = func(*os.File) error { return broken }
	if _, _, err := openFile(filepath.Join(dir, "other")); !errors.Is(err, broken) {
		t.Error(err)
	}
	var on unix.Statfs_t
	const memory = "/dev/shm"
	if err := unix.Statfs(memory, &on); err != nil || on.Type != unix.TMPFS_MAGIC {
		t.Skip("no tmpfs here")
	}
	syncDirectory = sync
	inMemory, err := os.MkdirTemp(memory, "log-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(inMemory)
	name := filepath.Join(inMemory, "journal")
	err = serve(t.Context(), name, 1<<20, "tcp:127.0.0.1", "0", silence, io.Discard)
	if !errors.Is(err, verbs.ErrNotPersistent) || !strings.Contains(err.Error(), "cannot be a log, whose records have to be on a disk: ") || !strings.Contains(err.Error(), "tmpfs keeps its files in memory") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(inMemory); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestTooManyWait checks that a writer is told at once where so many wait already.
func TestTooManyWait(t *testing.T) {
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	l, err := host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{place: make(chan struct{}, 1), silence: silence, out: io.Discard}
	s.place <- struct{}{} // of another writer
	s.waiting.Store(mostWaiting)
	refused := make(chan error, 1)
	go func() {
		_, err := host.Dial(t.Context(), l.String(), &verbs.Options{Private: []byte(greeting)})
		refused <- err
	}()
	request, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.admit(t.Context(), request)
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "many writers wait already") || s.waiting.Load() != mostWaiting {
		t.Errorf("%v, and %d wait", err, s.waiting.Load())
	}
}

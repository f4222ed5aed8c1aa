package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestReadsFromStorage (COMMIT-022): what is read past the system's copies, where the file system can do
// that, is what is read through them.
func TestReadsFromStorage(t *testing.T) {
	const size = 2<<20 + 5001
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := NewTable().NewDomain().RegisterFile(f, 0, size, RemoteRead, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	direct := 0
	for _, c := range [][2]int{{0, size}, {1, size - 2}, {4096, 4096}, {4095, 2}, {size - 1, 1}, {size - 5001, 5001}, {1 << 20, 1 << 20}, {777, 1<<20 + 3}} {
		want := sha256.Sum256(content[c[0]:][:c[1]])
		through, past := sha256.New(), sha256.New()
		if err := r.file.pieces(t.Context(), r.Grant, int(f.Fd()), 1, int64(c[0]), c[1], through); err != nil || !bytes.Equal(through.Sum(nil), want[:]) {
			t.Errorf("%d bytes at %d, through the copies: %v", c[1], c[0], err)
		}
		switch err := r.file.direct(t.Context(), r.Grant, int64(c[0]), c[1], past); {
		case err == errNotDirect:
		case err != nil || !bytes.Equal(past.Sum(nil), want[:]):
			t.Errorf("%d bytes at %d, past the copies: %v", c[1], c[0], err)
		default:
			direct++
		}
	}
	t.Logf("%d ranges were read past the copies", direct)
}

// TestDiskThatFailed (COMMIT-015, COMMIT-045): no Flush succeeds on a disk that has once lost
// what was written, though the kernel tells of it once.
func TestDiskThatFailed(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	domain := NewTable().NewDomain()
	r, err := domain.RegisterFile(f, 0, 100, RemoteRead|RemoteWrite|Verify, &Options{Algorithm: SHA256})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.file.flush(t.Context(), r.Bytes()); err != nil {
		t.Fatal(err)
	}
	r.file.failed(unix.EIO)
	for range 2 {
		var fault ddp.Fault
		if err := r.file.flush(context.Background(), r.Bytes()); !errors.Is(err, unix.EIO) || !errors.As(err, &fault) || fault != ddp.OperationStream {
			t.Errorf("Flush: %v", err)
		}
		if _, err := domain.NewStream().Verify(t.Context(), r.STag(), 0, 10, nil); !errors.Is(err, unix.EIO) {
			t.Errorf("Verify: %v", err)
		}
	}
}

package nfs3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestFileReadFromAgain checks that what ReadFrom writes is there whatever the server loses before it is committed.
func TestFileReadFromAgain(t *testing.T) {
	for seed := range uint64(10) {
		u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
		f := &forgetful{FS: u.FS, dice: rand.New(rand.NewPCG(seed, 2))}
		u.FS = f
		v := volume(u)
		file, err := v.CreateNew("f", 0o640)
		u.Must(err)
		_, err = file.Seek(5, io.SeekStart)
		u.Must(err)
		data := fixture.RandomBytes(seed, 20<<20+int(seed)*4711)
		if n, err := io.Copy(file, bytes.NewReader(data)); n != int64(len(data)) || err != nil {
			t.Fatalf("seed %d: %d, %v", seed, n, err)
		}
		if n, err := file.Write([]byte("end")); n != 3 || err != nil {
			t.Fatalf("seed %d: %d, %v", seed, n, err)
		}
		u.Must(file.Close())
		got, err := v.ReadFile("f")
		if want := append(append(make([]byte, 5), data...), "end"...); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("seed %d, after %d crashes: %d octets of %d, %v", seed, f.crashes, len(got), len(want), err)
		}
	}
}

// bounded is an FS whose files can be read and written up to an offset, and which counts calls under way.
type bounded struct {
	nfs3.FS
	end         uint64
	reads       atomic.Int32
	under, most atomic.Int32
}

func (b *bounded) call() func() {
	if n := b.under.Add(1); n > b.most.Load() {
		b.most.Store(n)
	}
	return func() { b.under.Add(-1) }
}

func (b *bounded) Read(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, dst []byte, offset uint64) (int, bool, error) {
	defer b.call()()
	b.reads.Add(1)
	if offset+uint64(len(dst)) > b.end {
		return 0, false, nfs3.ErrIO
	}
	return b.FS.Read(ctx, c, h, dst, offset)
}

func (b *bounded) Write(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, data []byte, offset uint64, stable nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	defer b.call()()
	if offset+uint64(len(data)) > b.end {
		return nfs3.Written{}, nfs3.WCC{}, nfs3.ErrNoSpc
	}
	return b.FS.Write(ctx, c, h, data, offset, stable)
}

// TestFileCopiesFail checks that WriteTo and ReadFrom say how much was moved, without a gap, when a part fails, and go on from there.
func TestFileCopiesFail(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	b := &bounded{FS: u.FS, end: 1 << 40}
	u.FS = b
	v := volume(u)
	data := fixture.RandomBytes(3, 12<<20+5)
	u.Must(v.WriteFile("f", data, 0o600))
	const whole = 5 << 20
	b.end = whole + 4711

	f, err := v.OpenFile("f")
	u.Must(err)
	var got bytes.Buffer
	if n, err := io.Copy(&got, f); n != whole || !errors.Is(err, nfs3.ErrIO) || !bytes.Equal(got.Bytes(), data[:whole]) {
		t.Errorf("%d, %v", n, err)
	}
	if at, err := f.Seek(0, io.SeekCurrent); at != whole || err != nil {
		t.Errorf("at %d, %v", at, err)
	}
	b.end = 1 << 40
	if n, err := io.Copy(&got, f); n != int64(len(data)-whole) || err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.WriteTo(&got); n != 0 || err != nil {
		t.Errorf("at the end: %d, %v", n, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	u.Must(err)
	_, err = f.Seek(0, io.SeekStart)
	u.Must(err)
	if n, err := f.WriteTo(failing{}); n != 0 || err != errFailing {
		t.Errorf("to a writer that fails: %d, %v", n, err)
	}

	b.end = whole + 4711
	f, err = v.CreateNew("g", 0o600)
	u.Must(err)
	if n, err := io.Copy(f, bytes.NewReader(data)); n != whole || !errors.Is(err, nfs3.ErrNoSpc) {
		t.Errorf("%d, %v", n, err)
	}
	b.end = 1 << 40
	if n, err := io.Copy(f, bytes.NewReader(data[whole:])); n != int64(len(data)-whole) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	u.Must(err)
	if n, err := io.Copy(f, io.MultiReader(bytes.NewReader(data[:3<<20+1]), iotest.ErrReader(errFailing))); n != 3<<20+1 || err != errFailing {
		t.Errorf("from a reader that fails: %d, %v", n, err)
	}
	u.Must(f.Close())
	if got, err := v.ReadFile("g"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d octets, %v", len(got), err)
	}
	for _, err := range []error{second(io.Copy(f, bytes.NewReader(data))), second(f.WriteTo(io.Discard))} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	}
}

func second(_ int64, err error) error { return err }

type failing struct{}

var errFailing = errors.New("it fails")

func (failing) Write([]byte) (int, error) { return 0, errFailing }

// TestFileReadsAhead checks that WriteTo and ReadFrom have several calls under way, and that short files are read with one or two.
func TestFileReadsAhead(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	b := &bounded{FS: u.FS, end: 1 << 40}
	u.FS = b
	v := volume(u)
	for _, size := range []int{0, 5, 1<<20 - 1, 1 << 20, 24 << 20} {
		data := fixture.RandomBytes(uint64(size), size)
		f, err := v.Create("f")
		u.Must(err)
		b.most.Store(0)
		if n, err := io.Copy(f, bytes.NewReader(data)); n != int64(size) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if n := b.most.Load(); n > 8 || size <= 1<<20 && n > 1 {
			t.Errorf("%d octets: %d WRITE at once", size, n)
		}
		u.Must(f.Close())
		f, err = v.OpenFile("f")
		u.Must(err)
		b.most.Store(0)
		b.reads.Store(0)
		var got bytes.Buffer
		if n, err := io.Copy(&got, f); n != int64(size) || err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d octets: %d, %v", size, n, err)
		}
		if n := b.most.Load(); n > 8 || size <= 1<<20 && n > 1 {
			t.Errorf("%d octets: %d READ at once", size, n)
		}
		if n := b.reads.Load(); int(n) > size>>20+2 {
			t.Errorf("%d octets: %d READ", size, n)
		}
	}
}

// TestVolumeNewFiles checks files that are made only if the name is free, and second names of a file.
func TestVolumeNewFiles(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		v := volume(u)
		f, err := v.CreateNew("new", 0o640)
		u.Must(err)
		_, err = f.Write([]byte("new"))
		u.Must(err)
		u.Must(f.Close())
		if info, err := v.Stat("new"); err != nil || info.Mode() != 0o640 {
			t.Errorf("%v, %v", info, err)
		}
		if _, err := v.CreateNew("new", 0o600); !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
		u.Must(v.Link("new", "second"))
		if err := v.Link("new", "second"); !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
		if err := v.Link("none", "third"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		u.Must(v.Remove("new"))
		if b, err := v.ReadFile("second"); string(b) != "new" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// TestFileCommitsNoMoreAfterAFailure checks that ReadFrom ends when one COMMIT has failed: its other parts do not wait for a server that
// does not answer, one after the other. A later write tries again.
func TestFileCommitsNoMoreAfterAFailure(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	failing := &failingCommit{FS: u.FS}
	u.FS = failing
	file, err := volume(u).CreateNew("f", 0o640)
	u.Must(err)
	for i := range int32(2) {
		if _, err := file.ReadFrom(bytes.NewReader(make([]byte, 40<<20))); !errors.Is(err, nfs3.ErrIO) || failing.commits.Load() != i+1 {
			t.Errorf("%v after %d COMMITs", err, failing.commits.Load())
		}
	}
}

// failingCommit is an FS whose COMMIT fails.
type failingCommit struct {
	nfs3.FS
	commits atomic.Int32
}

func (*failingCommit) Write(_ context.Context, _ *nfs3.Cred, _ nfs3.Handle, data []byte, _ uint64, _ nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	return nfs3.Written{Count: uint32(len(data))}, nfs3.WCC{}, nil
}

func (f *failingCommit) Commit(context.Context, *nfs3.Cred, nfs3.Handle, uint64, uint32) (uint64, nfs3.WCC, error) {
	f.commits.Add(1)
	time.Sleep(10 * time.Millisecond) // the other parts are written
	return 0, nfs3.WCC{}, nfs3.ErrIO
}

// failingWrite is an FS whose WRITEs fail.
type failingWrite struct {
	nfs3.FS
	writes atomic.Int32
}

func (f *failingWrite) Write(context.Context, *nfs3.Cred, nfs3.Handle, []byte, uint64, nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	f.writes.Add(1)
	time.Sleep(10 * time.Millisecond) // the other parts begin
	return nfs3.Written{}, nfs3.WCC{}, nfs3.ErrIO
}

// TestFileBeginsNoPartAfterAFailure checks that ReadFrom begins no part after one that has failed: it would wait for a server that does not
// answer as long as those before.
func TestFileBeginsNoPartAfterAFailure(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	failing := &failingWrite{FS: u.FS}
	u.FS = failing
	file, err := volume(u).CreateNew("f", 0o640)
	u.Must(err)
	const parts = 8 // that are under way at once
	if n, err := file.ReadFrom(bytes.NewReader(make([]byte, 40<<20))); n != 0 || !errors.Is(err, nfs3.ErrIO) || failing.writes.Load() > parts {
		t.Errorf("%d octets, %v after %d WRITEs", n, err, failing.writes.Load())
	}
}

// TestSmallReads checks that Reads of a few octets are few calls; that a File sees what it writes itself, whatever it has read ahead; and that Seek, and the end of
// the file, ask the server again.
func TestSmallReads(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	b := &bounded{FS: u.FS, end: 1 << 40}
	u.FS = b
	v := volume(u)
	data := fixture.RandomBytes(1, 300000)
	u.Must(v.WriteFile("f", data, 0o644))
	f, err := v.OpenFile("f")
	u.Must(err)
	got, err := io.ReadAll(iotest.OneByteReader(f))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d octets, %v", len(got), err)
	}
	if n := b.reads.Load(); n > 300000>>16+3 {
		t.Errorf("%d calls", n)
	}
	small := make([]byte, 3)
	read := func(what, want string) {
		t.Helper()
		if n, err := io.ReadFull(f, small); err != nil || string(small[:n]) != want {
			t.Errorf("%s: %q, %v, want %q", what, small[:n], err, want)
		}
	}
	other, err := v.OpenFile("f")
	u.Must(err)
	_, err = other.WriteAt([]byte("grown"), 300000)
	u.Must(err)
	read("after the end", "gro")
	_, err = f.Seek(0, io.SeekStart)
	u.Must(err)
	read("the beginning", string(data[:3]))
	_, err = f.WriteAt([]byte("WriteAt"), 3)
	u.Must(err)
	read("after WriteAt", "Wri")
	_, err = f.Write([]byte("Wri"))
	u.Must(err)
	read("after Write", "t"+string(data[10:12])) // the last octet of "WriteAt"
	_, err = f.Seek(0, io.SeekStart)
	u.Must(err)
	_, err = other.WriteAt([]byte("others"), 3)
	u.Must(err)
	read("after Seek", string(data[:3]))
	read("what others wrote before the Read", "oth")
	u.Must(f.Truncate(7))
	if n, err := io.ReadFull(f, small); n != 1 || err != io.ErrUnexpectedEOF || small[0] != 'e' {
		t.Errorf("after Truncate: %d, %q, %v", n, small, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	u.Must(err)
	read("once more", string(data[:3]))
	_, err = f.ReadFrom(bytes.NewReader([]byte("12")))
	u.Must(err)
	_, err = io.ReadFull(f, small[:2])
	if u.Must(err); string(small[:2]) != "he" {
		t.Errorf("after ReadFrom: %q", small[:2])
	}
	var rest bytes.Buffer
	_, err = f.Seek(0, io.SeekStart)
	u.Must(err)
	read("before WriteTo", string(data[:3]))
	if _, err := io.Copy(&rest, f); err != nil || rest.String() != "12he" {
		t.Errorf("WriteTo: %q, %v", rest.String(), err)
	}
	if n, err := f.Read(small); n != 0 || err != io.EOF {
		t.Errorf("after WriteTo: %d, %v", n, err)
	}
	u.Must(f.Close())
	if _, err := f.Read(small); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

package memory_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

const everything = memory.LocalWrite | memory.RemoteRead | memory.RemoteWrite | memory.RemoteAtomic | memory.FlushPersistent | memory.FlushGlobal | memory.Verify

// newFile makes a file on a disk, or at least on what does not say that it is none.
func newFile(t testing.TB, size int64) *os.File {
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
	f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func registerFile(t testing.TB, d *memory.Domain, f *os.File, offset, length int64, rights memory.Rights, o *memory.Options) *memory.Region {
	t.Helper()
	r, err := d.RegisterFile(f, offset, length, rights, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// descriptors is how often this process has the file open. Other files do not count: goroutines of the tests open some.
func descriptors(t testing.TB, f *os.File) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range open {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == f.Name() {
			n++
		}
	}
	return n
}

// mapped says that this process has the file in its memory.
func mapped(t testing.TB, f *os.File) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(maps), f.Name()+"\n")
}

// faultOf is what is to be answered to the peer, 0 without an error.
func faultOf(t testing.TB, err error) (fault ddp.Fault) {
	t.Helper()
	if err != nil && !errors.As(err, &fault) {
		t.Errorf("%v: no fault to answer with", err)
	}
	return fault
}

// TestFileIsTheMemory: what peers write is in the file, at its place and nowhere else, and what
// is written to the file they read. It may be closed and removed meanwhile.
func TestFileIsTheMemory(t *testing.T) {
	const offset, length = 5003, 9001 // neither pages nor words
	f := newFile(t, 0)
	other, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	region := registerFile(t, domain, f, offset, length, everything, &memory.Options{Base: 1 << 50, Algorithm: memory.SHA256})
	window := bind(t, region, 1000, 100, memory.RemoteWrite|memory.FlushPersistent, nil)
	f.Close()
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if info, err := other.Stat(); err != nil || info.Size() != offset+length {
		t.Fatalf("the file has %v bytes, %v", info.Size(), err)
	}
	want := make([]byte, offset+length)
	for to, text := range map[int]string{0: "first", length - 4: "last", 4096: "a page on"} {
		if err := write(stream, region.STag(), 1<<50+uint64(to), []byte(text)); err != nil {
			t.Fatal(err)
		}
		copy(want[offset+to:], text)
	}
	if err := write(stream, window.STag(), 2, []byte("window")); err != nil {
		t.Fatal(err)
	}
	copy(want[offset+1002:], "window")
	aligned := 1<<50 + uint64(8-offset%8)
	if _, err := stream.FetchAdd(region.STag(), aligned, 0x4141, 0); err != nil {
		t.Fatal(err)
	}
	copy(want[offset+8-offset%8:], "AA") // no matter in which order
	if got := region.Bytes()[8-offset%8:][:8]; bytes.Count(got, []byte("A")) != 2 {
		t.Errorf("after FetchAdd: %q", got)
	} else {
		copy(want[offset+8-offset%8:], got)
	}
	got := make([]byte, len(want)+1)
	if n, _ := other.ReadAt(got, 0); n != len(want) || !bytes.Equal(got[:n], want) {
		t.Errorf("the file has %d bytes of %d, or others", n, len(want))
	}
	if _, err := other.WriteAt([]byte("from outside"), offset+2000); err != nil {
		t.Fatal(err)
	}
	span, v := stream.Find(region.STag(), 1<<50+2000, 12, memory.RemoteRead)
	if b := make([]byte, 12); v != memory.None || copyOut(b, span) != nil || string(b) != "from outside" {
		t.Errorf("%v, %q", v, b)
	}
	for range 2 {
		if err := region.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := copyOut(make([]byte, 1), span); err != ddp.TaggedSTag {
		t.Errorf("after Close: %v", err)
	}
	if err := write(stream, window.STag(), 0, []byte("x")); err != ddp.TaggedSTag {
		t.Errorf("after Close: %v", err)
	}
}

func TestRegisterFileRefuses(t *testing.T) {
	f := newFile(t, 100)
	as := func(flags int) *os.File {
		f, err := os.OpenFile(f.Name(), flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	dir, err := os.Open(filepath.Dir(f.Name()))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	end, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	defer pipe.Close()
	closed := as(os.O_RDWR)
	closed.Close()
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	volatile := os.NewFile(uintptr(fd), "memory")
	defer volatile.Close()
	table := memory.NewTable()
	domain := table.NewDomain()
	cases := []struct {
		name           string
		f              *os.File
		offset, length int64
		rights         memory.Rights
		want           error  // or
		says           string // what to do
	}{
		{"COMMIT-015: read only", as(os.O_RDONLY), 0, 100, memory.RemoteRead | memory.RemoteWrite, memory.ErrRights, "os.O_RDWR"},
		{"COMMIT-015: read only, for answers", as(os.O_RDONLY), 0, 100, memory.LocalWrite, memory.ErrRights, "LocalWrite needs os.O_RDWR"},
		{"write only", as(os.O_WRONLY), 0, 100, memory.RemoteWrite, memory.ErrRights, "writing only: open it with os.O_RDWR"},
		{"write only, to read", as(os.O_WRONLY), 0, 100, memory.RemoteRead, memory.ErrRights, "writing only: open it with os.O_RDWR"},
		{"more than there is to read", as(os.O_RDONLY), 50, 51, memory.RemoteRead, memory.ErrBounds, "has 100 bytes, not 101"},
		{"before the beginning", f, -1, 5, memory.RemoteRead, memory.ErrBounds, "-1"},
		{"less than nothing", f, 5, -1, memory.RemoteRead, memory.ErrBounds, "-1"},
		{"beyond all numbers", f, 1 << 62, 1 << 62, memory.RemoteRead, memory.ErrBounds, "from 4611686018427387904"},
		{"COMMIT-015: more than the disk has", f, 0, 1 << 60, memory.RemoteWrite, nil, "allocate"},
		{"a directory", dir, 0, 1, memory.RemoteRead, nil, "ordinary file"},
		{"a pipe", end, 0, 1, memory.RemoteRead, nil, "ordinary file"},
		{"closed", closed, 0, 1, memory.RemoteRead, fs.ErrClosed, f.Name()},
		{"none", nil, 0, 1, memory.RemoteRead, fs.ErrInvalid, "invalid"},
		{"COMMIT-038: a file in memory", volatile, 0, 100, memory.RemoteWrite | memory.FlushPersistent, memory.ErrNotPersistent, "tmpfs"},
		{"COMMIT-038: no algorithm", f, 0, 100, memory.Verify, memory.ErrRights, "Algorithm"},
	}
	open := descriptors(t, f)
	for _, c := range cases {
		r, err := domain.RegisterFile(c.f, c.offset, c.length, c.rights, nil)
		if err == nil || r != nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if info, err := f.Stat(); err != nil || info.Size() != 100 {
		t.Errorf("the file has %d bytes now, %v", info.Size(), err)
	}
	if table.Len() != 0 {
		t.Errorf("the table has %d", table.Len())
	}
	again := registerFile(t, domain, f, 0, 100, memory.RemoteRead, nil)
	if n := descriptors(t, f); n != open+1 || !mapped(t, f) {
		t.Errorf("%d files are open, not %d", n, open+1)
	}
	if again.Close(); descriptors(t, f) != open || mapped(t, f) {
		t.Errorf("%d files are open after Close, not %d; mapped: %v", descriptors(t, f), open, mapped(t, f))
	}
	// What can be read only can be read, and what is in no storage be written.
	stream := domain.NewStream()
	read := registerFile(t, domain, as(os.O_RDONLY), 0, 100, memory.RemoteRead|memory.FlushPersistent, nil)
	if err := stream.Flush(t.Context(), read.STag(), 0, 100, memory.FlushPersistent); err != nil {
		t.Errorf("Flush of what can only be read: %v", err)
	}
	if err := write(stream, read.STag(), 0, []byte("x")); err != ddp.TaggedSTag {
		t.Errorf("writing there: %v", err)
	}
	if _, err := f.WriteAt([]byte("text"), 50); err != nil {
		t.Fatal(err)
	}
	span, _ := stream.Find(read.STag(), 50, 4, memory.RemoteRead)
	if b := make([]byte, 4); copyOut(b, span) != nil || string(b) != "text" {
		t.Errorf("reading there: %q", b)
	}
	loose := registerFile(t, domain, volatile, 0, 100, memory.RemoteWrite|memory.FlushGlobal, nil)
	if err := write(stream, loose.STag(), 0, []byte("x")); err != nil {
		t.Error(err)
	}
	empty := registerFile(t, domain, f, 100, 0, everything, &memory.Options{Algorithm: memory.SHA256})
	if err := stream.Flush(t.Context(), empty.STag(), 0, 0, memory.FlushPersistent); err != nil {
		t.Errorf("Flush of nothing: %v", err)
	}
	if _, err := stream.Verify(t.Context(), empty.STag(), 0, 0, nil); err != nil {
		t.Errorf("Verify of nothing: %v", err)
	}
}

// TestFlushIsRefused (COMMIT-014, COMMIT-018, COMMIT-040, COMMIT-046 to 048).
func TestFlushIsRefused(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	file := registerFile(t, domain, newFile(t, 0), 0, 100, everything, &memory.Options{Algorithm: memory.SHA256})
	plain := register(t, domain, make([]byte, 100), memory.RemoteWrite|memory.FlushGlobal, nil)
	window := bind(t, file, 0, 10, memory.RemoteWrite|memory.FlushGlobal, nil)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		name string
		ctx  context.Context
		g    *memory.Grant
		to   uint64
		n    uint32
		how  memory.Rights
		want ddp.Fault
	}{
		{"COMMIT-010: persistent", t.Context(), file.Grant, 0, 100, memory.FlushPersistent, 0},
		{"COMMIT-010: the last byte", t.Context(), file.Grant, 99, 1, memory.FlushPersistent, 0},
		{"COMMIT-016: both", t.Context(), file.Grant, 1, 98, memory.FlushPersistent | memory.FlushGlobal, 0},
		{"global", t.Context(), plain.Grant, 0, 100, memory.FlushGlobal, 0},
		{"COMMIT-019: nothing, anywhere", t.Context(), file.Grant, 1 << 40, 0, memory.FlushPersistent, 0},
		{"COMMIT-018: neither", t.Context(), file.Grant, 0, 100, 0, 0x0207},
		{"COMMIT-018: what is no way to flush", t.Context(), file.Grant, 0, 100, memory.RemoteRead, 0x0207},
		{"COMMIT-040: memory has no storage", t.Context(), plain.Grant, 0, 100, memory.FlushPersistent, 0x0102},
		{"COMMIT-040: one of both", t.Context(), window.Grant, 0, 10, memory.FlushPersistent | memory.FlushGlobal, 0x0102},
		{"COMMIT-019: nothing, without the right", t.Context(), plain.Grant, 0, 0, memory.FlushPersistent, 0x0102},
		{"COMMIT-046: over the end", t.Context(), file.Grant, 0, 101, memory.FlushPersistent, 0x0101},
		{"COMMIT-020: as long as can be", t.Context(), file.Grant, 0, 1<<32 - 1, memory.FlushPersistent, 0x0101},
		{"COMMIT-046: wraps", t.Context(), file.Grant, 1<<64 - 1, 2, memory.FlushPersistent, 0x0104},
	} {
		if err := stream.Flush(c.ctx, c.g.STag(), c.to, c.n, c.how); faultOf(t, err) != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if err := stream.Flush(stopped, file.STag(), 0, 100, memory.FlushPersistent); err != context.Canceled {
		t.Errorf("stopped: %v", err)
	}
	if err := memory.NewTable().NewDomain().NewStream().Flush(t.Context(), file.STag(), 0, 100, memory.FlushPersistent); faultOf(t, err) != 0x0100 {
		t.Errorf("a stranger's: %v", err)
	}
	file.Close()
	if err := stream.Flush(t.Context(), file.STag(), 0, 100, memory.FlushPersistent); faultOf(t, err) != 0x0100 {
		t.Errorf("after Close: %v", err)
	}
}

// TestFileThatIsCut: whoever touches what is gone gets an error, what is left can be used, and
// nobody is told that all is in storage (COMMIT-015, COMMIT-045).
func TestFileThatIsCut(t *testing.T) {
	page := int64(os.Getpagesize())
	f := newFile(t, 0)
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	region := registerFile(t, domain, f, 0, 4*page, everything, &memory.Options{Algorithm: memory.SHA256})
	stag, ctx := region.STag(), t.Context()
	if err := stream.Flush(ctx, stag, 0, uint32(4*page), memory.FlushPersistent); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(page + 8); err != nil {
		t.Fatal(err)
	}
	gone := uint64(2 * page)
	for name, c := range map[string]struct {
		do   func() error
		want ddp.Fault
	}{
		"write":              {func() error { return write(stream, stag, gone, []byte("x")) }, ddp.LocalDDP},
		"write over the end": {func() error { return write(stream, stag, gone-5, []byte("1234567890")) }, ddp.LocalDDP},
		"read": {func() error {
			span, _ := stream.Find(stag, gone, 8, memory.RemoteRead)
			return copyOut(make([]byte, 8), span)
		}, ddp.LocalDDP},
		"COMMIT-047: FetchAdd":         {func() error { _, err := stream.FetchAdd(stag, gone, 1, 0); return err }, 0x0207},
		"COMMIT-047: CompareSwap":      {func() error { _, err := stream.CompareSwap(stag, gone, 0, 0, 1, 1); return err }, 0x0207},
		"COMMIT-047: Store":            {func() error { return stream.Store(stag, gone, [8]byte{}) }, 0x0207},
		"COMMIT-045: Flush":            {func() error { return stream.Flush(ctx, stag, gone, 8, memory.FlushPersistent) }, 0x0207},
		"Flush of what is there yet":   {func() error { return stream.Flush(ctx, stag, 0, 8, memory.FlushPersistent) }, 0x0207},
		"COMMIT-019: Flush of nothing": {func() error { return stream.Flush(ctx, stag, gone, 0, memory.FlushPersistent) }, 0},
		"COMMIT-045: Verify":           {func() error { _, err := stream.Verify(ctx, stag, gone, 8, nil); return err }, 0x0207},
		"what is left":                 {func() error { return write(stream, stag, 0, []byte("left")) }, 0},
		"an atomic there":              {func() error { _, err := stream.FetchAdd(stag, uint64(page), 1, 0); return err }, 0},
	} {
		err := c.do()
		if fault := faultOf(t, err); fault != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		} else if c.want == ddp.OperationStream && !errors.Is(err, memory.ErrLost) {
			t.Errorf("%s: %v does not say what was lost", name, err)
		}
	}
	ended(t, async(region.Invalidate), "Invalidate after faults") // all guards were left
}

// TestFileThatIsCutAmongWriters: at any moment.
func TestFileThatIsCutAmongWriters(t *testing.T) {
	page := int64(os.Getpagesize())
	for range 6 {
		f := newFile(t, 0)
		domain := memory.NewTable().NewDomain()
		region := registerFile(t, domain, f, 0, 8*page, everything, &memory.Options{Algorithm: memory.CRC32C})
		var wrote, lost atomic.Int64
		var all sync.WaitGroup
		for i := range 4 {
			stream := domain.NewStream()
			at := uint64(page) * uint64(4+i)
			all.Go(func() {
				b := make([]byte, page)
				for {
					runtime.Gosched()
					switch err := write(stream, region.STag(), at, b); err {
					case nil:
						wrote.Add(1)
					case ddp.LocalDDP:
						lost.Add(1)
					case ddp.TaggedSTag: // it is over
						return
					default:
						t.Errorf("%v", err)
					}
				}
			})
		}
		until(func() bool { return wrote.Load() > 20 })
		if err := f.Truncate(page); err != nil {
			t.Fatal(err)
		}
		was := lost.Load()
		until(func() bool { return lost.Load() > was+20 })
		ended(t, async(region.Invalidate), "Invalidate among faults")
		all.Wait()
	}
}

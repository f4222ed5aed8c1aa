package nfs3_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/siw/exercise"
)

func volume(u *nfs3test.User) *nfs3.Volume {
	u.Helper()
	v, err := nfs3.NewVolume(u.Ctx, u.FS, u.Cred)
	u.Must(err)
	return v
}

// TestVolume checks that a volume is a file system of package io/fs, as that has it tested.
func TestVolume(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		v := volume(u)
		u.Must(v.Mkdir("dir", 0o755))
		u.Must(v.Mkdir("dir/sub", 0o700))
		u.Must(v.WriteFile("hello", []byte("hello, world"), 0o644))
		u.Must(v.WriteFile("dir/empty", nil, 0o600))
		u.Must(v.WriteFile("dir/sub/file", fixture.RandomBytes(1, 300), 0o640))
		u.Must(v.Symlink("sub/file", "dir/link"))
		u.Must(fstest.TestFS(v, "hello", "dir/empty", "dir/sub/file", "dir/link"))
	})
}

var files = flag.Int("files", fixture.Fewer(1000, 200), "how many small files TestManyFiles makes")

// TestManyFiles checks that many small files of one directory, whose list is longer than a reply, are made, listed, read, renamed and removed by many
// goroutines at once, through each transport.
func TestManyFiles(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		u.Must(exercise.Files(volume(u), "files", *files, 32))
	})
}

// TestVolumeChanges checks what changes a volume, by paths.
func TestVolumeChanges(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		v := volume(u)
		u.Must(v.Mkdir("a", 0o755))
		u.Must(v.WriteFile("a/f", []byte("one"), 0o600))
		u.Must(v.WriteFile("a/f", []byte("2"), 0o640))
		info, err := v.Stat("a/f")
		u.Must(err)
		if info.Size() != 1 || info.Mode() != 0o640 || info.Name() != "f" || info.IsDir() {
			t.Errorf("%v %v", info.Size(), info.Mode())
		}
		u.Must(v.Rename("a/f", "g"))
		u.Must(v.Chmod("g", 0o400))
		u.Must(v.Chtimes("g", time.Time{}, time.Unix(99, 0)))
		info, err = v.Stat("g")
		u.Must(err)
		if info.Mode() != 0o400 || info.ModTime().Unix() != 99 || info.Sys().(*nfs3.Attr).Links != 1 {
			t.Errorf("%v %v", info.Mode(), info.ModTime())
		}
		for _, c := range []struct {
			err  error
			want error
			says string
		}{
			{v.Remove("none"), fs.ErrNotExist, "remove none: "},
			{v.Mkdir("a", 0o755), fs.ErrExist, "mkdir a: "},
			{v.Rename("none", "x"), fs.ErrNotExist, "rename none: "},
			{v.Mkdir("/a", 0o755), fs.ErrInvalid, "mkdir /a: "},
			{v.Mkdir("../a", 0o755), fs.ErrInvalid, "mkdir ../a: "},
			{v.Remove("."), fs.ErrInvalid, "remove .: "},
			{v.WriteFile("none/x", nil, 0o600), fs.ErrNotExist, "create none/x: "},
		} {
			if !errors.Is(c.err, c.want) || !strings.HasPrefix(c.err.Error(), c.says) {
				t.Errorf("%v, want %v", c.err, c.want)
			}
		}
		u.Must(v.WriteFile("a/h", nil, 0o600))
		if err := v.Remove("a"); nfs3.StatusOf(err) != nfs3.ErrNotEmpty {
			t.Error(err)
		}
		u.Must(v.Remove("a/h"))
		u.Must(v.Remove("a"))
		u.Must(v.Remove("g"))
		if entries, err := v.ReadDir("."); err != nil || len(entries) != 0 {
			t.Errorf("%v, %v", entries, err)
		}
	})
}

// TestVolumeNames checks that names of any octets but slash and NUL can be made, found, listed, renamed and removed, as files and as directories, and
// that paths which lead nowhere are refused.
func TestVolumeNames(t *testing.T) {
	odd := []string{"caf\xe9", "\xff\xfe", "a\nb", "\x1b[31m", " ", "...", "..a", "-", "%2f", "\u202eabc", strings.Repeat("\xe9", 255)}
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		v := volume(u)
		for _, name := range odd {
			u.Must(v.Mkdir(name, 0o755))
			u.Must(v.WriteFile(name+"/"+name, []byte(name), 0o644))
			got, err := v.ReadFile(name + "/" + name)
			entries, listErr := v.ReadDir(name)
			if err != nil || string(got) != name || listErr != nil || len(entries) != 1 || entries[0].Name() != name {
				t.Errorf("%q: %q, %v, %v, %v", name, got, err, entries, listErr)
			}
			u.Must(v.Rename(name+"/"+name, "moved"))
			u.Must(v.Remove(name))
			u.Must(v.Rename("moved", name))
			if info, err := v.Stat(name); err != nil || info.Name() != name {
				t.Errorf("%q: %v, %v", name, info, err)
			}
		}
		for _, name := range []string{"", "/", "a/", "/a", "a//b", "../a", "a/..", "a/./b", "\xff/", "\xff/.."} {
			if _, err := v.Stat(name); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if _, err := v.Stat("a\x00b"); err == nil {
			t.Error("a name with a NUL is there")
		}
	})
}

// lying is an FS that claims what is not so.
type lying struct {
	nfs3.FS
	loops atomic.Bool
	told  atomic.Int64
}

func (h *lying) GetAttr(ctx context.Context, c *nfs3.Cred, o nfs3.Handle) (nfs3.Attr, error) {
	a, err := h.FS.GetAttr(ctx, c, o)
	a.Size = 1<<31 - 1
	return a, err
}

func (h *lying) Lookup(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.Object, error) {
	o, err := h.FS.Lookup(ctx, c, dir, name)
	o.Attr.Size = 1<<31 - 1
	return o, err
}

func (h *lying) ReadDir(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, from nfs3.DirPosition, plus bool, each func(*nfs3.DirEntry) bool) (nfs3.DirEnd, error) {
	for cookie := uint64(1); ; cookie++ {
		e := nfs3.DirEntry{FileID: 7, Name: fmt.Sprintf("%08d", h.told.Load()), Cookie: from.Cookie + cookie}
		if h.loops.Load() {
			e.Cookie = cookie
		}
		if h.told.Add(1); !each(&e) {
			return nfs3.DirEnd{}, nil
		}
	}
}

// TestVolumeOfHostileServer checks that a directory without end, and one whose server begins again and again, are errors, and that a file takes no memory for what
// the server claims that it has.
func TestVolumeOfHostileServer(t *testing.T) {
	for _, serve := range []func(testing.TB, nfs3.FS, *nfs3.ServerOptions) string{serve, serveRDMA} {
		h := &lying{FS: localfs.NewMemory(nil)}
		c := dial(t, serve(t, h, &nfs3.ServerOptions{Squash: nfs3.SquashNone}), "/")
		v, err := nfs3.NewVolume(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		v.BoundEntries(10000)
		if _, err := v.ReadDir("."); !errors.Is(err, nfs3.ErrTooMany) || h.told.Load() > 20000 {
			t.Errorf("%v, after %d entries", err, h.told.Load())
		}
		v.BoundEntries(1 << 30)
		h.loops.Store(true)
		h.told.Store(0)
		if _, err := v.ReadDir("."); err == nil || h.told.Load() > 20000 {
			t.Errorf("%v, after %d entries", err, h.told.Load())
		}
		if err := v.WriteFile("f", []byte("short"), 0o644); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := v.ReadFile("f")
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; string(got) != "short" || err != nil || took > 200<<20 {
			t.Errorf("%q, %v, %d octets were taken", got, err, took)
		}
	}
}

// TestVolumeLinks checks which symbolic links are followed: those that stay within the volume.
func TestVolumeLinks(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		v := volume(u)
		u.Must(v.Mkdir("a", 0o755))
		u.Must(v.Mkdir("a/b", 0o755))
		u.Must(v.WriteFile("a/f", []byte("f"), 0o600))
		for name, target := range map[string]string{
			"up": "a/b/../f", "dir": "a/b", "a/b/back": "../../up", "loop": "loop", "out": "../x", "abs": "/etc/passwd", "a/b/out": "../../../etc", "dangling": "none", "self": ".",
		} {
			u.Must(v.Symlink(target, name))
		}
		for name, want := range map[string]error{
			"up": nil, "a/b/back": nil, "dir/back": nil, "self/self/up": nil, "loop": errAny, "out": errAny, "abs": errAny, "a/b/out/passwd": errAny, "dangling": fs.ErrNotExist,
		} {
			b, err := v.ReadFile(name)
			if want == nil && (err != nil || string(b) != "f") || want != nil && err == nil || want == fs.ErrNotExist && !errors.Is(err, want) {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
		if info, err := v.Lstat("abs"); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%v, %v", info, err)
		}
		if target, err := v.ReadLink("abs"); err != nil || target != "/etc/passwd" {
			t.Errorf("%q, %v", target, err)
		}
		u.Must(v.Remove("dir")) // the link
		if _, err := v.Stat("a/b"); err != nil {
			t.Error(err)
		}
	})
}

var errAny = errors.New("any")

// TestFile checks long and short reads and writes of an open file, and where they go on.
func TestFile(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		v := volume(u)
		data := fixture.RandomBytes(2, 5<<20+77)
		f, err := v.Create("f")
		u.Must(err)
		if n, err := io.Copy(f, bytes.NewReader(data)); n != int64(len(data)) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if at, err := f.Seek(-77, io.SeekEnd); at != 5<<20 || err != nil {
			t.Errorf("%d, %v", at, err)
		}
		if rest, err := io.ReadAll(f); err != nil || !bytes.Equal(rest, data[5<<20:]) {
			t.Errorf("%d octets, %v", len(rest), err)
		}
		copy(data[10:], "short")
		n, err := f.WriteAt([]byte("short"), 10)
		if n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		_, err = f.Seek(0, io.SeekStart)
		u.Must(err)
		var got bytes.Buffer
		if n, err := io.Copy(&got, f); n != int64(len(data)) || err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d, %v", n, err)
		}
		b := make([]byte, 4<<20)
		if n, err := f.ReadAt(b, 3<<20); n != 2<<20+77 || err != io.EOF || !bytes.Equal(b[:n], data[3<<20:]) {
			t.Errorf("%d, %v", n, err)
		}
		u.Must(f.Truncate(9))
		u.Must(f.Close())
		if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
		if _, err := f.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
		if b, err := v.ReadFile("f"); err != nil || !bytes.Equal(b, data[:9]) {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// forgetful is an FS that has what was written as Unstable in a cache, and loses it now and then, as a
// server that crashes.
type forgetful struct {
	nfs3.FS
	mu       sync.Mutex
	dice     *rand.Rand
	verifier uint64
	cache    []cached
	crashes  int
}

type cached struct {
	h      nfs3.Handle
	offset uint64
	data   []byte
}

func (f *forgetful) crash(one int) {
	if f.dice.IntN(one) == 0 && f.crashes < 5 {
		f.crashes++
		f.verifier++
		f.cache = nil
	}
}

func (f *forgetful) Write(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, data []byte, offset uint64, stable nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if stable != nfs3.Unstable {
		return f.FS.Write(ctx, c, h, data, offset, stable)
	}
	f.crash(5)
	data = data[:len(data)-f.dice.IntN(len(data))] // as short as it likes
	f.cache = append(f.cache, cached{h, offset, bytes.Clone(data)})
	return nfs3.Written{Count: uint32(len(data)), Verifier: f.verifier}, nfs3.WCC{}, nil
}

func (f *forgetful) Commit(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, offset uint64, count uint32) (uint64, nfs3.WCC, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crash(2)
	for _, w := range f.cache {
		if _, _, err := f.FS.Write(ctx, c, w.h, w.data, w.offset, nfs3.FileSync); err != nil {
			return 0, nfs3.WCC{}, err
		}
	}
	f.cache = nil
	return f.verifier, nfs3.WCC{}, nil
}

// TestFileWritesAgain checks that what a server loses by a restart before it is committed is written
// again, in order.
func TestFileWritesAgain(t *testing.T) {
	for seed := range uint64(30) {
		u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
		f := &forgetful{FS: u.FS, dice: rand.New(rand.NewPCG(seed, 1))}
		u.FS = f
		v := volume(u)
		file, err := v.Create("f")
		u.Must(err)
		model := make([]byte, 3<<20)
		for range 12 {
			data := fixture.RandomBytes(f.dice.Uint64(), 1+f.dice.IntN(1<<(3+f.dice.IntN(18))))
			at := f.dice.IntN(len(model) - len(data))
			n, err := file.WriteAt(data, int64(at))
			if n != len(data) || err != nil {
				t.Fatalf("seed %d: %d of %d, %v", seed, n, len(data), err)
			}
			copy(model[at:], data)
			clear(data) // it is the caller's again
		}
		u.Must(file.Truncate(int64(len(model))))
		u.Must(file.Close())
		got, err := v.ReadFile("f")
		if err != nil || !bytes.Equal(got, model) {
			t.Fatalf("seed %d, after %d crashes: %d octets differ, %v", seed, f.crashes, len(got), err)
		}
	}
}

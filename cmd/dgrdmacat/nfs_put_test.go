package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// TestNFSPut checks where a file is copied to, its mode, and that a file that is there is replaced with --force only, over both transports.
func TestNFSPut(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	r.overBoth(func(t *testing.T, at string) {
		big := random(5, 9<<20+5)
		file := filepath.Join(t.TempDir(), "file")
		r.must(os.WriteFile(file, big, 0o600))
		r.must(os.Chmod(file, 0o754))
		base := "over-" + at[:3]
		dir := at + "/" + base
		r.must(r.Mkdir(base, 0o777))
		r.must(r.Symlink(base, base+".link"))
		wants := func(name string, data []byte, mode os.FileMode) {
			t.Helper()
			info, err := r.Stat(base + "/" + name)
			if err != nil || info.Mode() != mode {
				t.Errorf("%s: %v, %v", name, info, err)
			}
			if b, err := r.ReadFile(base + "/" + name); err != nil || !bytes.Equal(b, data) {
				t.Errorf("%s: %d bytes, %v", name, len(b), err)
			}
		}
		code, out, stderr := runFor(t, patient(t), "nfs", "put", file, dir+"/new")
		if code != exitOK || out != "" || !strings.HasPrefix(stderr, "copied 1 file, 9437189 bytes in ") {
			t.Fatalf("code %d, %s%s", code, out, stderr)
		}
		wants("new", big, 0o754)
		for _, to := range []string{dir + "/", dir + ".link"} {
			if code, _, stderr := runFor(t, patient(t), "nfs", "put", "--force", file, to); code != exitOK {
				t.Errorf("%s: %s", to, stderr)
			}
			wants("file", big, 0o754)
		}
		r.must(r.WriteFile(base+"/old", []byte("old"), 0o640))
		r.wants(t, []string{"nfs", "put", file, dir + "/old"}, exitError, "", dir+"/old exists already; --force replaces it\n")
		wants("old", []byte("old"), 0o640)
		if code, _, stderr := runFor(t, patient(t), "nfs", "put", "--force", file, dir+"/old"); code != exitOK {
			t.Error(stderr)
		}
		wants("old", big, 0o640)
		for _, args := range [][]string{{"put", "--force", file, dir + "/old/"}, {"get", dir + "/old/", t.TempDir()}, {"cat", dir + "/old/"}} {
			r.wants(t, append([]string{"nfs"}, args...), exitError, "", dir+"/old is not a directory: leave out the / at its end\n")
		}
		wants("old", big, 0o640)
		r.must(r.Symlink("old", base+"/link"))
		r.wants(t, []string{"nfs", "put", "--force", file, dir + "/link"}, exitError, "", dir+"/link exists already, and is no file\n")
		p := asProcess(t, "nfs", "put", "-", dir+"/piped")
		p.Stdin = bytes.NewReader(big[:3<<20+1])
		if p.start(); p.code() != exitOK {
			t.Error(&p.err)
		}
		wants("piped", big[:3<<20+1], 0o644)
		if code, _, stderr := runFor(t, patient(t), "nfs", "put", "/dev/null", dir+"/null"); code != exitOK {
			t.Error(stderr)
		}
		wants("null", nil, 0o644) // those of the device say nothing
		r.must(r.Remove(base + "/null"))
		r.wants(t, []string{"nfs", "put", "-", dir}, exitError, "", " is a directory: name a file in it\n")
		r.wants(t, []string{"nfs", "put", file, dir + "/none/"}, exitError, "", dir+"/none: no such file or directory\n")
		r.wants(t, []string{"nfs", "put", file, dir + "/none/x"}, exitError, "", dir+"/none: no such file or directory\n")
		r.wants(t, []string{"nfs", "put", file, dir + "/none/two/x"}, exitError, "", dir+"/none: no such file or directory\n")
		r.wants(t, []string{"nfs", "put", "", dir}, exitUsage, "", "dgrdmacat nfs put: the name of FILE is empty (unset variable?)\n")
		r.wants(t, []string{"nfs", "put", file + "x", dir}, exitError, "", "dgrdmacat nfs put: "+file+"x: no such file or directory\n")
		r.wants(t, []string{"nfs", "put", filepath.Dir(file), dir}, exitError, "", " is a directory: -r copies all that is in it\n")
		r.wants(t, []string{"nfs", "put", dir, file}, exitUsage, "", "the address comes last: put "+file+" "+dir)
		r.wants(t, []string{"nfs", "put", file}, exitUsage, "", "need FILE ADDRESS")
		entries, err := r.ReadDir(base)
		if names := fmt.Sprint(entries); err != nil || len(entries) != 5 {
			t.Errorf("%s, %v", names, err)
		}
	})
}

// TestNFSPutTree checks a directory that is copied with all that is in it, to a new name and into a directory, also over itself; and
// that what is neither file nor directory nor link is left out with an error.
func TestNFSPutTree(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	tree := filepath.Join(t.TempDir(), "tree")
	r.must(os.MkdirAll(filepath.Join(tree, "a/b"), 0o755))
	r.must(os.Mkdir(filepath.Join(tree, "empty"), 0o755))
	for i := range 40 {
		r.must(os.WriteFile(filepath.Join(tree, "a/b", fmt.Sprint(i)), random(uint64(i), i*997), 0o644))
	}
	r.must(os.Symlink("a/b/7", filepath.Join(tree, "seven")))
	r.overBoth(func(t *testing.T, at string) {
		base := "into-" + at[:3]
		r.must(r.Mkdir(base, 0o755))
		for _, to := range []string{"/" + base + "/tree", "/" + base + "/tree", "/" + base + "/"} {
			code, out, stderr := runFor(t, patient(t), "nfs", "put", "-r", "--force", tree, at+to)
			if code != exitOK || out != "" || !strings.HasPrefix(stderr, "copied 4") {
				t.Fatalf("code %d, %s%s", code, out, stderr)
			}
			for i := range 40 {
				if b, err := r.ReadFile(fmt.Sprintf("%s/tree/a/b/%d", base, i)); err != nil || !bytes.Equal(b, random(uint64(i), i*997)) {
					t.Errorf("%d: %d bytes, %v", i, len(b), err)
				}
			}
			if target, err := r.ReadLink(base + "/tree/seven"); target != "a/b/7" || err != nil {
				t.Error(target, err)
			}
			if info, err := r.Stat(base + "/tree/empty"); err != nil || !info.IsDir() {
				t.Error(err)
			}
		}
		code, _, stderr := runFor(t, patient(t), "nfs", "put", "-r", tree, at+"/"+base+"/tree")
		if code != exitError || strings.Count(stderr, "exists already; --force replaces it\n") != mostListed || !strings.HasSuffix(stderr, "32 more files not copied either\n") {
			t.Errorf("code %d, %s", code, stderr)
		}
		r.wants(t, []string{"nfs", "put", "-r", tree, at + "/" + base}, exitError, "",
			at+"/"+base+" is there already: "+at+"/"+base+"/ copies to "+at+"/"+base+"/tree, and "+tree+"/. copies what is in "+tree+" to "+at+"/"+base+"\n")
		r.wants(t, []string{"nfs", "put", "-r", tree, at + "/none/"}, exitError, "", at+"/none is no directory that is there: leave out the / at its end, and the copy has that name\n")
		code, _, stderr = runFor(t, patient(t), "nfs", "put", "-r", tree+"/.", at+"/"+base)
		if info, err := r.Stat(base + "/empty"); code != exitOK || err != nil || !info.IsDir() {
			t.Errorf("code %d, %v, %s", code, err, stderr)
		}
		if entries, err := r.ReadDir(base + "/tree/a/b"); err != nil || len(entries) != 40 {
			t.Errorf("%d entries, %v", len(entries), err)
		}
	})
	r.must(syscall.Mkfifo(filepath.Join(tree, "pipe"), 0o644))
	r.wants(t, []string{"nfs", "put", "-r", tree, r.tcp + "/other"}, exitError, "", tree+"/pipe is neither a file nor a directory nor a symbolic link, and so not copied\n")
	if _, err := r.Stat("other/a/b/39"); err != nil {
		t.Errorf("the rest is not copied: %v", err)
	}
	r.wants(t, []string{"nfs", "put", tree + "/pipe", r.tcp + "/pipe"}, exitError, "", tree+"/pipe is neither a file nor a directory, and so not copied; - as FILE copies standard input\n")
}

// picky is an FS that makes no file in directories of its own, as one whose files have bad names would.
type picky struct {
	nfs3.FS
	refuses atomic.Bool
}

func (p *picky) Link(ctx context.Context, c *nfs3.Cred, h, dir nfs3.Handle, name string) (nfs3.PostAttr, nfs3.WCC, error) {
	if p.refuses.Load() && strings.HasPrefix(name, "odd") {
		return nfs3.PostAttr{}, nfs3.WCC{}, nfs3.ErrInval
	}
	return p.FS.Link(ctx, c, h, dir, name)
}

// TestNFSPutGoesOn checks that a directory is copied but for the files that cannot be, which are named, that the same command completes the
// copy, and makes none in the copy.
func TestNFSPutGoesOn(t *testing.T) {
	t.Parallel()
	p := &picky{FS: localfs.NewMemory(nil)}
	r := serveNFS(t, p, nil)
	tree := filepath.Join(t.TempDir(), "tree")
	r.must(os.MkdirAll(filepath.Join(tree, "dir"), 0o755))
	for _, name := range []string{"a", "dir/odd", "dir/z", "odd", "z"} {
		r.must(os.WriteFile(filepath.Join(tree, name), []byte(name), 0o644))
	}
	r.overBoth(func(t *testing.T, at string) {
		base := at[:3]
		r.must(r.Mkdir(base, 0o755))
		put := []string{"nfs", "put", "-r", tree, at + "/" + base + "/tree"}
		wants := func(names ...string) {
			t.Helper()
			for _, name := range names {
				if b, err := r.ReadFile(base + "/tree/" + name); string(b) != name || err != nil {
					t.Errorf("%s: %q, %v", name, b, err)
				}
			}
		}
		p.refuses.Store(true)
		code, _, stderr := runFor(t, patient(t), put...)
		for _, name := range []string{"odd", "dir/odd"} {
			if code != exitError || !strings.Contains(stderr, at+"/"+base+"/tree/"+name+": LINK: invalid argument\n") || strings.Count(stderr, "\n") != 2 {
				t.Errorf("code %d, %s", code, stderr)
			}
		}
		wants("a", "z", "dir/z")
		p.refuses.Store(false)
		code, _, stderr = runFor(t, patient(t), put...)
		if code != exitError || strings.Count(stderr, "exists already; --force replaces it\n") != 3 {
			t.Errorf("code %d, %s", code, stderr)
		}
		wants("a", "z", "dir/z", "odd", "dir/odd")
		if code, _, stderr = runFor(t, patient(t), append(put, "--force")...); code != exitOK {
			t.Error(stderr)
		}
		if entries, err := r.ReadDir(base + "/tree"); err != nil || len(entries) != 4 {
			t.Errorf("%v, %v", entries, err)
		}
	})
}

// linkless is an FS that has no links, as one that embeds nfs3.ReadOnlyFS and writes.
type linkless struct {
	nfs3.FS
	answers nfs3.Status
}

func (l linkless) Link(context.Context, *nfs3.Cred, nfs3.Handle, nfs3.Handle, string) (nfs3.PostAttr, nfs3.WCC, error) {
	return nfs3.PostAttr{}, nfs3.WCC{}, l.answers
}

// TestNFSPutWithoutLinks checks that a file gets its name by RENAME where a server has no hard links, and replaces none without --force; and that
// another refusal says which procedure was refused.
func TestNFSPutWithoutLinks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	for _, status := range []nfs3.Status{nfs3.ErrROFS, nfs3.ErrNotSupp, nfs3.ErrPerm, nfs3.ErrMLink} {
		r := serveNFS(t, linkless{localfs.NewMemory(nil), status}, nil)
		r.must(os.WriteFile(file, []byte("data"), 0o644))
		r.overBoth(func(t *testing.T, at string) {
			to := at + "/" + at[:3]
			if status == nfs3.ErrMLink {
				r.wants(t, []string{"nfs", "put", file, to}, exitError, "", to+": LINK: too many links\n")
				return
			}
			if code, _, stderr := runFor(t, patient(t), "nfs", "put", file, to); code != exitOK {
				t.Errorf("%v: %s", status, stderr)
			}
			r.wants(t, []string{"nfs", "put", file, to}, exitError, "", to+" exists already; --force replaces it\n")
		})
	}
}

// losing is an FS that loses what is written before COMMIT, in one moment, as a server that is started again.
type losing struct {
	nfs3.FS
	mu       sync.Mutex
	cache    []func() error
	verifier uint64
	writes   int
}

func (l *losing) Write(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, data []byte, offset uint64, stable nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes++; l.writes == 5 {
		l.cache, l.verifier = nil, l.verifier+1
	}
	data = bytes.Clone(data)
	l.cache = append(l.cache, func() error {
		_, _, err := l.FS.Write(context.Background(), c, h, data, offset, nfs3.FileSync)
		return err
	})
	return nfs3.Written{Count: uint32(len(data)), Verifier: l.verifier}, nfs3.WCC{}, nil
}

func (l *losing) Commit(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, offset uint64, count uint32) (uint64, nfs3.WCC, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, write := range l.cache {
		if err := write(); err != nil {
			return 0, nfs3.WCC{}, err
		}
	}
	l.cache = nil
	return l.verifier, nfs3.WCC{}, nil
}

// TestNFSPutWritesAgain checks that a file has all its bytes when it gets its name, though the server has lost some of it before it was
// committed, over both transports.
func TestNFSPutWritesAgain(t *testing.T) {
	t.Parallel()
	l := &losing{FS: localfs.NewMemory(nil)}
	r := serveNFS(t, l, nil)
	file := filepath.Join(t.TempDir(), "file")
	big := random(6, 8<<20+5)
	r.must(os.WriteFile(file, big, 0o600))
	r.overBoth(func(t *testing.T, at string) {
		l.writes = 0
		if code, _, stderr := runFor(t, patient(t), "nfs", "put", "--force", file, at+"/copy"); code != exitOK {
			t.Fatal(stderr)
		}
		if b, err := r.ReadFile("copy"); err != nil || !bytes.Equal(b, big) || l.writes < 9+4 {
			t.Errorf("%d bytes after %d calls, %v", len(b), l.writes, err)
		}
	})
}

// TestNFSPutEnds checks that a copy that is interrupted leaves nothing at the server, that one whose server is killed or stopped ends after
// --wait and says what is left there, and that no part of a file has its name, over both transports.
func TestNFSPutEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"interrupted", "killed", "stopped", "stopped and interrupted"} {
		for _, transport := range rpcTransports {
			t.Run(how+" over "+transport, func(t *testing.T) {
				dir := t.TempDir()
				os.Chmod(dir, 0o777) // root's calls are those of another user
				server, rdma, tcp := startNFS(t, dir)
				at := map[string]string{"rdma": rdma, "tcp": tcp}[transport] + "/export"
				p := asProcess(t, "nfs", "put", "--wait", "2s", "-", at+"/copy")
				in, err := p.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				p.start()
				in.Write(random(7, 3<<20))
				eventually(t, "some of it is there", func() bool {
					parts, _ := filepath.Glob(filepath.Join(dir, ".dgrdma-*.part"))
					if len(parts) != 1 {
						return false
					}
					info, err := os.Stat(parts[0])
					return err == nil && info.Size() > 1<<20
				})
				code, left, says := exitError, 1, at+"/copy: the server has not answered for 2s (--wait)"
				switch how {
				case "interrupted":
					p.Process.Signal(os.Interrupt)
					code, left, says = exitInterrupted, 0, "dgrdmacat nfs put: interrupted\n"
				case "killed":
					server.Process.Kill()
				case "stopped":
					server.stop(t)
				default:
					server.stop(t)
					p.Process.Signal(os.Interrupt)
					code, says = exitInterrupted, "dgrdmacat nfs put: interrupted\n"
				}
				began := time.Now()
				if code == exitError {
					in.Write(random(8, 1<<20))
					in.Close()
				}
				got := p.code()
				if got != code || !strings.Contains(p.err.String(), says) || time.Since(began) > patience/2 {
					t.Errorf("code %d after %v: %s", got, time.Since(began), &p.err)
				}
				server.Process.Kill()
				server.Wait()
				entries, _ := os.ReadDir(dir)
				if len(entries) != left || left == 1 && !strings.Contains(p.err.String(), at+"/"+entries[0].Name()+" may be left there, and is not whole: nfs rm removes it\n") {
					t.Errorf("left: %v; %s", entries, &p.err)
				}
			})
		}
	}
}

// restarted is a server that is started again while it is written to: it knows no handle any more.
type restarted struct{ nfs3.FS }

func (restarted) Write(context.Context, *nfs3.Cred, nfs3.Handle, []byte, uint64, nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	return nfs3.Written{}, nfs3.WCC{}, nfs3.ErrStale
}

func (restarted) Remove(context.Context, *nfs3.Cred, nfs3.Handle, string) (nfs3.WCC, error) {
	return nfs3.WCC{}, nfs3.ErrStale
}

// TestNFSPutSaysWhatItLeaves checks that the part of a file that stays at a server that was started again is named, over both transports.
func TestNFSPutSaysWhatItLeaves(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, restarted{localfs.NewMemory(nil)}, nil)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	for i := range 2 * nfsAtOnce {
		r.must(os.WriteFile(fmt.Sprint(file, i), random(9, 5<<10), 0o600))
	}
	r.must(os.WriteFile(file, random(9, 5<<10), 0o600))
	r.overBoth(func(t *testing.T, at string) {
		into := at + "/" + at[:3] // a directory
		code, _, stderr := runFor(t, patient(t), "nfs", "put", "-r", dir, into)
		entries, err := r.ReadDir(at[:3])
		for _, e := range entries {
			if says := into + "/" + e.Name() + " is left there, and is not whole: nfs rm removes it\n"; !strings.Contains(stderr, says) {
				t.Errorf("no %s", says)
			}
		}
		if n := strings.Count(stderr, "\n"); code != exitError || err != nil || n < 2 || n != 1+len(entries) {
			t.Errorf("code %d, %v, %d entries: %s", code, err, len(entries), stderr)
		}
		code, _, stderr = runFor(t, patient(t), "nfs", "put", file, at+"/copy")
		if code != exitError || !strings.Contains(stderr, "/.dgrdma-") || !strings.Contains(stderr, ".part is left there, and is not whole: nfs rm removes it\n") {
			t.Errorf("code %d, %s", code, stderr)
		}
	})
}

// begunAgain is a server that is started again while it is written to. It knows no handle until a client asks for one again.
type begunAgain struct {
	nfs3.FS
	takes   time.Duration // to tell the first handle then
	unknown atomic.Bool   // all handles
}

func (b *begunAgain) Root(ctx context.Context) (nfs3.Object, error) {
	if b.unknown.Load() {
		time.Sleep(b.takes)
	}
	b.unknown.Store(false)
	return b.FS.Root(ctx)
}

func (b *begunAgain) Write(context.Context, *nfs3.Cred, nfs3.Handle, []byte, uint64, nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	b.unknown.Store(true)
	return nfs3.Written{}, nfs3.WCC{}, nfs3.ErrStale
}

func (b *begunAgain) Remove(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.WCC, error) {
	if b.unknown.Load() {
		return nfs3.WCC{}, nfs3.ErrStale
	}
	return b.FS.Remove(ctx, c, dir, name)
}

// TestNFSPutMountsAgain checks that the part of a file is removed from a server that was started again, by the handles that it has then,
// though it takes its time to tell them.
func TestNFSPutMountsAgain(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, &begunAgain{FS: localfs.NewMemory(nil), takes: 2 * nfsTidy}, nil)
	file := filepath.Join(t.TempDir(), "file")
	r.must(os.WriteFile(file, random(9, 5<<10), 0o600))
	r.overBoth(func(t *testing.T, at string) {
		r.wants(t, []string{"nfs", "put", file, at + "/copy"}, exitError, "", at+"/copy: the server does not know it any more: it was removed, or the server was started again\n")
		if entries, err := r.ReadDir("."); err != nil || len(entries) != 0 {
			t.Errorf("left: %v, %v", entries, err)
		}
	})
}

// unremovable is an FS in which nothing can be removed.
type unremovable struct{ nfs3.FS }

func (unremovable) Remove(context.Context, *nfs3.Cred, nfs3.Handle, string) (nfs3.WCC, error) {
	return nfs3.WCC{}, nfs3.ErrIO
}

// TestNFSPutKeepsItsName checks that a file is said to be there if only its other name could not be removed.
func TestNFSPutKeepsItsName(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, unremovable{localfs.NewMemory(nil)}, nil)
	file := filepath.Join(t.TempDir(), "file")
	r.must(os.WriteFile(file, random(9, 5<<10), 0o600))
	r.wants(t, []string{"nfs", "put", file, r.tcp + "/copy"}, exitError, "", ".part is another name of "+r.tcp+"/copy, and is left there: nfs rm removes it\n")
}

// TestNFSPutFails checks that a file that cannot be read or written leaves nothing at the server, over both transports.
func TestNFSPutFails(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(&localfs.MemoryOptions{MaxBytes: 3 << 20}), nil)
	file := filepath.Join(t.TempDir(), "file")
	r.must(os.WriteFile(file, random(9, 5<<20), 0o600))
	r.overBoth(func(t *testing.T, at string) {
		r.wants(t, []string{"nfs", "put", file, at + "/copy"}, exitError, "", at+"/copy: no space left\n")
		r.wants(t, []string{"nfs", "put", "/proc/self/mem", at + "/copy"}, exitError, "", "/proc/self/mem: input/output error\n")
		if entries, err := r.ReadDir("."); err != nil || len(entries) != 0 {
			t.Errorf("left: %v, %v", entries, err)
		}
	})
}

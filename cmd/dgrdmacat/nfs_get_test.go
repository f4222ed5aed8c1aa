package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// TestNFSGet checks where a file is copied to, its mode, and that a file that is there is replaced with --force only, over both transports.
func TestNFSGet(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	big := random(3, 9<<20+5)
	r.must(r.WriteFile("big", big, 0o751))
	r.must(r.Mkdir("dir", 0o755))
	r.must(r.Symlink("big", "link"))
	r.overBoth(func(t *testing.T, at string) {
		dir := t.TempDir()
		to := filepath.Join(dir, "copy")
		code, out, stderr := runFor(t, patient(t), "nfs", "get", at+"/link", to)
		if got, err := os.ReadFile(to); code != exitOK || out != "" || !strings.HasPrefix(stderr, "copied 1 file, 9437189 bytes in ") || !bytes.Equal(got, big) {
			t.Fatalf("code %d, %s%s: %d bytes, %v", code, out, stderr, len(got), err)
		}
		plain := filepath.Join(dir, "plain")
		r.must(os.WriteFile(plain, nil, 0o666))
		was, _ := os.Stat(plain)
		if info, _ := os.Stat(to); info.Mode() != 0o751&(was.Mode()|(was.Mode()&0o444)>>2) {
			t.Errorf("%v, where new files have %v", info.Mode(), was.Mode())
		}
		r.wants(t, []string{"nfs", "get", at + "/big", to}, exitError, "", "copy: exists already; --force replaces it\n")
		r.must(os.WriteFile(to, []byte("old"), 0o600))
		r.must(os.Chmod(to, 0o604))
		_, out, _ = runFor(t, patient(t), "nfs", "get", "--json", "--force", at+"/big", to)
		var copied nfsCopied
		if err := json.Unmarshal([]byte(out), &copied); err != nil || copied.Bytes != int64(len(big)) || copied.Files != 1 || copied.Address != at+"/big" || copied.File != to || copied.Error != "" {
			t.Errorf("%v: %s", err, out)
		}
		if info, err := os.Stat(to); err != nil || info.Mode() != 0o604 || info.Size() != int64(len(big)) {
			t.Errorf("%v, %v", info, err)
		}
		into := t.TempDir()
		p := asProcess(t, "nfs", "get", at+"/big")
		p.Dir = into
		if p.start(); p.code() != exitOK {
			t.Error(&p.err)
		}
		wantFiles(t, into, map[string][]byte{"big": big})
		r.wants(t, []string{"nfs", "get", at + "/big", into}, exitError, "", "big: exists already")
		r.wants(t, []string{"nfs", "get", at + "/none", into}, exitError, "", at+"/none: no such file or directory\n")
		r.wants(t, []string{"nfs", "get", at + "/dir", into}, exitError, "", at+"/dir is a directory: -r copies all that is in it\n")
		r.wants(t, []string{"nfs", "get", at + "/big", "-"}, exitUsage, "", "nfs cat prints files on standard output")
		r.wants(t, []string{"nfs", "get", at + "/big", ""}, exitUsage, "", "the name of a file is empty")
		code, out, _ = runFor(t, patient(t), "nfs", "get", "--json", at+"/none", into)
		if err := json.Unmarshal([]byte(out), &copied); code != exitError || err != nil || !strings.Contains(copied.Error, "no such file") {
			t.Errorf("code %d, %v: %s", code, err, out)
		}
		wantFiles(t, into, map[string][]byte{"big": big})
	})
}

// TestNFSGetTree checks a directory that is copied with all that is in it, also over itself; and what is said of a FIFO in it.
func TestNFSGetTree(t *testing.T) {
	t.Parallel()
	files := localfs.NewMemory(nil)
	r := serveNFS(t, files, nil)
	want := make(map[string]string)
	for _, dir := range []string{"tree", "tree/a", "tree/a/b", "tree/empty"} {
		r.must(r.Mkdir(dir, 0o755))
	}
	for i, name := range []string{"tree/one", "tree/a/two", "tree/a/b/three"} {
		for j := range 20 {
			name := name + strings.Repeat("x", j)
			want[strings.TrimPrefix(name, "tree/")] = string(random(uint64(i), j*1000))
			r.must(r.WriteFile(name, random(uint64(i), j*1000), 0o644))
		}
	}
	r.must(r.Symlink("a/two", "tree/link"))
	r.must(r.Symlink("/nowhere", "tree/a/away"))
	r.overBoth(func(t *testing.T, at string) {
		dir := t.TempDir()
		to := filepath.Join(dir, "tree")
		for _, args := range []string{to, to, dir + "/"} { // a new directory, the same again, and into one that is there
			code, out, stderr := runFor(t, patient(t), "nfs", "get", "-r", "--force", at+"/tree", args)
			if code != exitOK || out != "" || !strings.HasPrefix(stderr, "copied 6") {
				t.Fatalf("code %d, %s%s", code, out, stderr)
			}
			for name, data := range want {
				if got, err := os.ReadFile(filepath.Join(to, name)); string(got) != data {
					t.Errorf("%s: %d bytes, %v", name, len(got), err)
				}
			}
		}
		for link, target := range map[string]string{"link": "a/two", "a/away": "/nowhere"} {
			if got, err := os.Readlink(filepath.Join(to, link)); got != target {
				t.Errorf("%s: %s, %v", link, got, err)
			}
		}
		if info, err := os.Stat(filepath.Join(to, "empty")); err != nil || !info.IsDir() {
			t.Error(info, err)
		}
		code, _, stderr := runFor(t, patient(t), "nfs", "get", "-r", at+"/tree", to)
		if code != exitError || strings.Count(stderr, "exists already; --force replaces it\n") != mostListed || !strings.HasSuffix(stderr, "52 more files not copied either\n") {
			t.Errorf("code %d, %s", code, stderr)
		}
		r.wants(t, []string{"nfs", "get", "-r", at + "/tree", dir}, exitError, "", dir+" is there already: "+dir+"/ copies to "+dir+"/tree, and "+at+"/tree/. copies what is in "+at+"/tree to "+dir+"\n")
		if code, _, stderr := runFor(t, patient(t), "nfs", "get", "-r", at+"/tree/.", t.TempDir()); code != exitOK {
			t.Error(stderr)
		}
		if _, err := os.Stat(filepath.Join(to, "tree")); err == nil {
			t.Error("a copy in the copy")
		}
	})
	root, err := files.Root(t.Context())
	r.must(err)
	_, _, err = files.Mknod(t.Context(), nil, root.Handle, "pipe", &nfs3.NodeSpec{Type: nfs3.TypeFIFO})
	r.must(err)
	r.overBoth(func(t *testing.T, at string) {
		for _, args := range [][]string{{"get", at + "/pipe", t.TempDir()}, {"cat", at + "/pipe"}} {
			r.wants(t, append([]string{"nfs"}, args...), exitError, "", at+"/pipe is a fifo, and not a file\n")
		}
	})
	to := filepath.Join(t.TempDir(), "all")
	r.wants(t, []string{"nfs", "get", "-r", r.tcp, to}, exitError, "", r.tcp+"/pipe is neither a file nor a directory nor a symbolic link, and so not copied\n")
	for _, name := range []string{"pipe2", "pipe3"} {
		_, _, err = files.Mknod(t.Context(), nil, root.Handle, name, &nfs3.NodeSpec{Type: nfs3.TypeFIFO})
		r.must(err)
	}
	code, _, stderr := runFor(t, patient(t), "nfs", "get", "-r", "--force", r.tcp+"/.", to)
	if n := strings.Count(stderr, ", and so not copied\n"); code != exitError || n != 3 {
		t.Errorf("code %d, %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(to, "tree/one")); err != nil {
		t.Errorf("the rest is not copied: %v", err)
	}
}

// evil is an FS that lists entries that it should not.
type evil struct {
	nfs3.FS
	entries []nfs3.DirEntry
	fails   atomic.Bool // reads do, after the first MiB
}

func (e *evil) ReadDir(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, from nfs3.DirPosition, plus bool, each func(*nfs3.DirEntry) bool) (nfs3.DirEnd, error) {
	if e.entries == nil {
		return e.FS.ReadDir(ctx, c, dir, from, plus, each)
	}
	for i := range e.entries {
		if entry := e.entries[i]; uint64(i) >= from.Cookie {
			entry.Cookie = uint64(i + 1)
			each(&entry)
		}
	}
	return nfs3.DirEnd{EOF: true}, nil
}

func (e *evil) Read(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, dst []byte, offset uint64) (int, bool, error) {
	if offset >= 1<<20 && e.fails.Load() {
		return 0, false, nfs3.ErrIO
	}
	return e.FS.Read(ctx, c, h, dst, offset)
}

// TestNFSGetEvil checks that no server has a file written outside of the directory that a tree is copied to, by a name or by a link that
// it lists, and that a name that it lists twice is refused.
func TestNFSGetEvil(t *testing.T) {
	t.Parallel()
	files := localfs.NewMemory(nil)
	e := &evil{FS: files}
	r := serveNFS(t, e, nil)
	r.must(r.WriteFile("file", []byte("evil"), 0o644))
	dir := t.TempDir()
	r.must(r.Symlink(dir+"/victim", "link"))
	root, err := files.Root(t.Context())
	r.must(err)
	entry := func(name, of string) nfs3.DirEntry {
		o, err := files.Lookup(t.Context(), nil, root.Handle, of)
		r.must(err)
		return nfs3.DirEntry{Name: name, FileID: o.Attr.FileID, Attr: nfs3.Post(o.Attr), Object: nfs3.PostHandle{Present: true, Handle: o.Handle}}
	}
	for name, entries := range map[string][]nfs3.DirEntry{
		"path": {entry("../victim", "file")}, "absolute": {entry(dir+"/victim", "file")}, "nul": {entry("a\x00b", "file")}, "empty": {entry("", "file")},
		"twice": {entry("victim", "link"), entry("victim", "file")}, "reversed": {entry("victim", "file"), entry("victim", "link")},
	} {
		e.entries = entries
		code, out, stderr := runFor(t, patient(t), "nfs", "get", "-r", "--force", r.tcp, filepath.Join(dir, name))
		if code != exitError || out != "" || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%s: code %d, %s%s", name, code, out, stderr)
		}
		if _, err := os.Lstat(filepath.Join(dir, "victim")); err == nil {
			t.Fatalf("%s: written", name)
		}
	}
	e.entries = []nfs3.DirEntry{entry("there", "file")}
	into := filepath.Join(dir, "links")
	r.must(os.Mkdir(into, 0o755))
	r.must(os.Symlink(dir+"/victim", filepath.Join(into, "there")))
	r.must(os.Rename(into, filepath.Join(dir, "export")))
	r.wants(t, []string{"nfs", "get", "-r", "--force", r.tcp, dir + "/"}, exitError, "", "there is there, and is no file\n")
}

// TestNFSGetFails checks that a file that cannot be read to its end leaves nothing, over both transports.
func TestNFSGetFails(t *testing.T) {
	t.Parallel()
	e := &evil{FS: localfs.NewMemory(nil)}
	r := serveNFS(t, e, nil)
	r.must(r.WriteFile("big", random(4, 5<<20), 0o644))
	e.fails.Store(true)
	r.overBoth(func(t *testing.T, at string) {
		dir := t.TempDir()
		r.wants(t, []string{"nfs", "get", at + "/big", dir + "/copy"}, exitError, "", at+"/big: input/output error\n")
		r.must(os.WriteFile(dir+"/old", []byte("old"), 0o600))
		r.wants(t, []string{"nfs", "get", "--force", at + "/big", dir + "/old"}, exitError, "", at+"/big: input/output error\n")
		wantFiles(t, dir, map[string][]byte{"old": []byte("old")})
		r.wants(t, []string{"nfs", "get", at + "/big", dir + "/none/copy"}, exitError, "", "no such file or directory\n")
		if err := os.Mkdir(dir+"/big", 0o755); err == nil {
			r.wants(t, []string{"nfs", "get", at + "/big", dir}, exitError, "", "is a directory")
		}
	})
}

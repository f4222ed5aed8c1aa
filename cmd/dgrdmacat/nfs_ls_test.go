package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// TestNFSLs checks the lines and the objects of all kinds of entries, of a directory, of a file, and of a link with and without a slash,
// over both transports.
func TestNFSLs(t *testing.T) {
	t.Parallel()
	files := localfs.NewMemory(nil)
	r := serveNFS(t, files, nil)
	var err error
	r.Volume, err = nfs3.NewVolume(t.Context(), files, nil) // devices are user 0's
	r.must(err)
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.Local)
	r.must(r.Mkdir("dir", 0o755))
	r.must(r.WriteFile("dir/file", make([]byte, 12345), 0o640))
	r.must(r.WriteFile("dir/two\nlines", nil, 0o711|fs.ModeSetuid))
	r.must(r.Symlink("file", "dir/link"))
	r.must(r.Mkdir("dir/sticky", 0o777|fs.ModeSticky))
	r.must(r.Symlink("dir", "todir"))
	dir, err := files.Lookup(t.Context(), nil, must(t)(files.Root(t.Context())).Handle, "dir")
	r.must(err)
	_, _, err = files.Mknod(t.Context(), nil, dir.Handle, "null", &nfs3.NodeSpec{Type: nfs3.TypeChar, Major: 1, Minor: 3})
	r.must(err)
	for _, name := range []string{"dir/file", "dir/two\nlines", "dir/sticky", "dir/null"} {
		r.must(r.Chtimes(name, time.Time{}, when))
	}
	r.overBoth(func(t *testing.T, at string) {
		code, out, stderr := runFor(t, patient(t), "nfs", "ls", at+"/dir")
		link := strings.Index(out, "lrwxrwxrwx")
		if code != exitOK || stderr != "" || link < 0 || strings.Count(out, "\n") != 5 {
			t.Fatalf("code %d, %s%s", code, out, stderr)
		}
		for _, want := range []string{
			"-rw-r----- 1 0 0 12345 2026-01-02 03:04 file\n", "-rws--x--x 1 0 0     0 2026-01-02 03:04 two\\nlines\n", "drwxrwxrwt 2 0 0 ",
			" link -> file\n", " 0 0   1,3 2026-01-02 03:04 null\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
		r.wants(t, []string{"nfs", "ls", at + "/dir/file"}, exitOK, "-rw-r----- 1 0 0 12345 2026-01-02 03:04 file\n", "")
		if _, out, _ := runFor(t, patient(t), "nfs", "ls", at+"/todir", at+"/todir/"); !strings.Contains(out, " todir -> dir\n") || !strings.Contains(out, " file\n") {
			t.Errorf("a link without and with a slash: %s", out)
		}
		r.wants(t, []string{"nfs", "ls", at + "/dir/file", at + "/dir/link/../file"}, exitOK, at+"/dir/file:\n-rw-r----- 1 0 0 12345 2026-01-02 03:04 file\n\n"+at+"/dir/file:\n-rw-r----- 1 0 0 12345 2026-01-02 03:04 file\n", "")
		_, out, _ = runFor(t, patient(t), "nfs", "ls", "--json", at+"/dir")
		objects := json.NewDecoder(strings.NewReader(out))
		byName := make(map[string]nfsEntry)
		for range 5 {
			var e nfsEntry
			if err := objects.Decode(&e); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			byName[e.Name] = e
		}
		if e := byName["file"]; e.Size != 12345 || e.Mode != "0640" || e.Type != "file" || e.Links != 1 || !e.Modified.Equal(when) || e.Address != at+"/dir/file" {
			t.Errorf("%+v", e)
		}
		if e := byName["link"]; e.Type != "symlink" || e.Target != "file" {
			t.Errorf("%+v", e)
		}
		if e := byName["two\nlines"]; e.Mode != "4711" {
			t.Errorf("%+v", e)
		}
		r.wants(t, []string{"nfs", "ls", at + "/none"}, exitError, "", at+"/none: no such file or directory\n")
	})
}

// TestNFSLsExports checks that exports are listed without a path and with one above them, and where an address is in none of them.
func TestNFSLsExports(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), &nfs3.ServerOptions{Export: "/srv/data"})
	r.overBoth(func(t *testing.T, at string) {
		server := strings.TrimSuffix(at, "/srv/data")
		for _, path := range []string{"", "/", "/srv", "/srv/"} {
			r.wants(t, []string{"nfs", "ls", server + path}, exitOK, "/srv/data  to all clients\n", "")
		}
		r.wants(t, []string{"nfs", "ls", "--json", server}, exitOK, `{"export":"/srv/data","clients":[]}`+"\n", "")
		r.wants(t, []string{"nfs", "ls", server + "/srv/data"}, exitOK, "", "")
		for _, path := range []string{"/sr", "/srv/data2", "/other"} {
			r.wants(t, []string{"nfs", "ls", server + path}, exitError, "", server+path+": the server does not export that; it exports /srv/data\n")
		}
		r.wants(t, []string{"nfs", "cat", server + "/"}, exitError, "", server+"/: the server does not export that; it exports /srv/data\n")
	})
}

// must returns a value that comes without an error.
func must(t *testing.T) func(o nfs3.Object, err error) nfs3.Object {
	return func(o nfs3.Object, err error) nfs3.Object {
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
}

// TestNFSLsPermission checks what is said where the server refuses a user.
func TestNFSLsPermission(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), &nfs3.ServerOptions{Export: "/export", Squash: nfs3.SquashAll})
	r.must(r.Mkdir("private", 0o700))
	r.overBoth(func(t *testing.T, at string) {
		says := "/private: permission denied for user "
		switch {
		case os.Geteuid() == 0:
			says += "0; most servers take root for a user without rights: run it as another user, or serve with no_root_squash (nfs serve: --squash none)\n"
		default: // the server takes other calls from that port
			says += strconv.Itoa(os.Geteuid()) + "\n"
		}
		r.wants(t, []string{"nfs", "ls", at + "/private"}, exitError, "", says)
	})
	const insecure = "; if the server is Linux's: has the export the option insecure, which calls from ports above 1023 need?"
	for transport, hint := range map[string]string{"rdma": "", "tcp": insecure} {
		if s := (&nfsServerAt{at: nfsAddress{rpcAddress: rpcAddress{transport: transport}}}); os.Geteuid() != 0 && s.permission(nfs3.ErrPerm) != fmt.Sprintf("%v for user %d%s", nfs3.ErrPerm, os.Geteuid(), hint) {
			t.Error(s.permission(nfs3.ErrPerm))
		}
	}
}

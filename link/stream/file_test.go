package stream

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestWholeFileWithName checks that, where files need a name at once, it is one that no program looks
// at, and that it is gone in the end.
func TestWholeFileWithName(t *testing.T) {
	none := func(string) (*os.File, error) { return nil, errors.ErrUnsupported }
	for _, unnamed := range []func(string) (*os.File, error){none, openUnnamed} {
		for _, c := range []struct {
			name, there     string
			replace, commit bool
			want            string
			err             error
		}{
			{"new", "", false, true, "new", nil},
			{"exists", "old", false, true, "old", fs.ErrExist},
			{"replaced", "old", true, true, "new", nil},
			{"failed", "old", true, false, "old", nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				dir := t.TempDir()
				name := filepath.Join(dir, "f")
				w, err := createWhole(name, c.replace, unnamed)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(w, "new"); err != nil {
					t.Fatal(err)
				}
				if c.there != "" {
					os.WriteFile(name, []byte(c.there), 0o644)
				}
				if c.commit {
					if err := w.Commit(); !errors.Is(err, c.err) {
						t.Errorf("%v, want %v", err, c.err)
					}
				}
				w.Discard()
				w.Discard()
				fixture.WantFiles(t, dir, map[string][]byte{"f": []byte(c.want)})
			})
		}
	}
}

// TestReplacedFileKeepsItsMode checks that users that could not read the old file cannot read the one
// that replaces it. A new file has the usual mode.
func TestReplacedFileKeepsItsMode(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o444, 0o777, 0} {
		want := mode
		if os.Remove(name); mode == 0 {
			f, err := os.Create(name + ".new")
			if err != nil {
				t.Fatal(err)
			}
			info, _ := f.Stat()
			f.Close()
			want = info.Mode().Perm()
		} else if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
		w, err := CreateFile(name, true)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := w.(*wholeFile).Stat(); err != nil || info.Mode().Perm() != want {
			t.Errorf("%v: begun with %v, %v", want, info.Mode(), err)
		}
		if err := w.Commit(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%v: became %v, %v", want, info.Mode(), err)
		}
	}
}

// TestCheckFile checks that what cannot be written is known before anything comes.
func TestCheckFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	os.WriteFile(in("there"), []byte("old"), 0o644)
	os.Symlink(in("nowhere"), in("dangling"))
	os.Symlink("there", in("to-there"))
	for _, c := range []struct {
		name    string
		replace bool
		is      error
		says    string
	}{
		{in("new"), false, nil, ""},
		{in("there"), true, nil, ""},
		{in("there"), false, fs.ErrExist, "write " + in("there") + ": exists already"},
		{in("to-there"), false, fs.ErrExist, "exists already"},
		{dir, true, nil, "is a directory: name a file in it"},
		{in("no/file"), true, fs.ErrNotExist, "write into " + in("no")},
		{in("dangling"), true, nil, "is a symbolic link to nowhere"},
		{"/dev/null", false, nil, ""},
	} {
		err := CheckFile(c.name, c.replace)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %s", c.name, err, c.says)
		}
		sink, err := CreateFile(c.name, c.replace)
		if (err == nil) != (c.says == "") {
			t.Errorf("%s was created: %v", c.name, err)
		}
		if err == nil {
			sink.Discard()
		}
	}

	os.Remove(in("dangling"))

	// What a symbolic link points to is replaced, not the link.
	sink, err := CreateFile(in("to-there"), true)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(sink, "new")
	if err := sink.Commit(); err != nil {
		t.Fatal(err)
	}
	sink.Discard()
	if to, err := os.Readlink(in("to-there")); to != "there" {
		t.Errorf("the link was replaced: %v", err)
	}
	fixture.WantFiles(t, dir, map[string][]byte{"there": []byte("new"), "to-there": []byte("new")})
}

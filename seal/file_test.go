package seal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadFile(t *testing.T) {
	a, b := NewKey(), NewKey()
	path := filepath.Join(t.TempDir(), "keys")
	for _, x := range []struct {
		text, wrong string
		mode        os.FileMode
	}{
		{"# of the lab\n\n" + a.Text() + "\n7 " + b.Text() + "\n", "", 0o600},
		{a.Text(), "", 0o400},
		{a.Text(), "keys: others can read or write it", 0o640},
		{a.Text(), "keys: others can read or write it", 0o602},
		{"", "keys: there is no key in it", 0o600},
		{"abc", "keys: line 1: need 32 bytes", 0o600},
		{a.Text() + "\n" + b.Text(), "line 2 has a second key for all", 0o600},
		{"0 " + a.Text(), "line 1 begins with none of the ids", 0o600},
		{"65536 " + a.Text(), "line 1 begins with none of the ids", 0o600},
		{"7 " + a.Text() + "\n7 " + b.Text(), "second key for peer 7", 0o600},
		{"7 8 " + a.Text(), "3 words", 0o600},
		{a.Text() + " " + b.Text(), "line 1 begins with none of the ids", 0o600},
		{strings.Repeat("x", 100_000), "too long", 0o600},
	} {
		os.Remove(path)
		if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Chmod(path, x.mode)
		r, err := ReadKeys(path)
		if (err != nil) != (x.wrong != "") || err != nil && (!errors.Is(err, ErrKey) || !strings.Contains(err.Error(), x.wrong) || strings.Count(err.Error(), "keys: ") != 1 || strings.Contains(err.Error(), a.Text())) {
			t.Errorf("%.80q: %v, want %q", x.text, err, x.wrong)
		}
		if err == nil && *r.Of(9) != a {
			t.Errorf("%.80q: another key", x.text)
		}
	}
	for name, is := range map[string]error{"none": os.ErrNotExist, ".": syscall.EISDIR} {
		path := filepath.Join(t.TempDir(), name)
		if _, err := ReadKeys(path); !errors.Is(err, ErrKey) || !errors.Is(err, is) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

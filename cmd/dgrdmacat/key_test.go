package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestKeyNew: a key that is one, in a file that its owner alone can read, and that is not written over.
func TestKeyNew(t *testing.T) {
	code, first, _ := runFor(t, t.Context(), "key", "new")
	_, second, _ := runFor(t, t.Context(), "key", "new")
	if _, err := dgrdma.ParseKey(strings.TrimSpace(first)); err != nil || code != exitOK || first == second {
		t.Errorf("code %d: %q, %q: %v", code, first, second, err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if code, out, stderr := runFor(t, t.Context(), "key", "new", "-o", path); code != exitOK || out+stderr != "" {
		t.Fatalf("code %d: %s%s", code, out, stderr)
	}
	text, _ := os.ReadFile(path)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if _, err := dgrdma.ReadKeys(path); err != nil {
		t.Error(err)
	}
	if code, _, stderr := runFor(t, t.Context(), "key", "new", "-o", path); code != exitError || !strings.Contains(stderr, "is there already") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if again, _ := os.ReadFile(path); !bytes.Equal(text, again) {
		t.Error("the key was written over")
	}
	for _, args := range [][]string{{"key"}, {"key", "old"}, {"key", "new", "new"}} {
		if code, _, _ := runFor(t, t.Context(), args...); code != exitUsage {
			t.Errorf("%v: code %d", args, code)
		}
	}
}

// TestKeyNewIntoAnOpenFile: of one that a shell made for it, and that others can read, it says that it would be refused.
func TestKeyNewIntoAnOpenFile(t *testing.T) {
	for mode, want := range map[os.FileMode]string{0o600: "", 0o644: "others can read that file (-rw-r--r--): chmod 600 it, or it will not be taken\n"} {
		f, err := os.Create(filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		f.Chmod(mode)
		var stderr bytes.Buffer
		if code := run(t.Context(), []string{"key", "new"}, &stdio{nil, f, &stderr}); code != exitOK || stderr.String() != want {
			t.Errorf("%v: code %d, %s", mode, code, &stderr)
		}
		f.Close()
	}
}

func keyFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(dgrdma.NewKey().Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeyFile: both with the key, as a flag or in the string, send a file; with another key, or with none at either side, nothing gets through, and who
// sends says so.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	ours, another := keyFile(t), keyFile(t)
	data := random(1, 3<<20)
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := os.WriteFile(from, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name         string
		there, here  []string
		option, says string
	}{
		{name: "both", there: []string{"--key-file", ours}, here: []string{"--key-file", ours}},
		{name: "in the string", there: []string{"--key-file", ours}, option: "&key-file=" + ours},
		{name: "another", there: []string{"--key-file", ours}, here: []string{"--key-file", another}, says: "does not accept our key"},
		{name: "not there", here: []string{"--key-file", ours}, says: "nobody answers the question for a key"},
		{name: "not here", there: []string{"--key-file", ours}, says: "does dgrdmacat listen run there without --key-file, is this"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			to := filepath.Join(t.TempDir(), "to")
			urlFile := filepath.Join(t.TempDir(), "url")
			listens := startCat(t, append([]string{"listen", "-o", to, "--url-file", urlFile, "udp:127.0.0.1"}, x.there...))
			var at string
			eventually(t, "a string", func() bool {
				b, err := os.ReadFile(urlFile)
				at = strings.TrimSpace(string(b))
				return err == nil && strings.HasSuffix(string(b), "\n")
			})
			code, _, stderr := runFor(t, t.Context(), append([]string{"send", from, at + "?giveup=1s" + x.option}, x.here...)...)
			if x.says != "" {
				if code != exitError || !strings.Contains(stderr, x.says) {
					t.Errorf("code %d: %s", code, stderr)
				}
				if _, err := os.Stat(to); err == nil {
					t.Error("a file is there")
				}
				listens.cmd.Process.Kill()
				return
			}
			if code != exitOK {
				t.Fatalf("code %d: %s", code, stderr)
			}
			listens.finish()
			if got, _ := os.ReadFile(to); !bytes.Equal(got, data) {
				t.Error("another file arrived")
			}
		})
	}
}

// TestKeyFileByAddress: with the key an address is enough, whichever command it is, as it is without one.
func TestKeyFileByAddress(t *testing.T) {
	t.Parallel()
	key := " --key-file " + keyFile(t)
	for _, x := range []struct{ there, here string }{
		{"listen -o " + filepath.Join(t.TempDir(), "to"), "send " + fileWith(t, []byte("data"))},
		{"serve --accept any --until 0=1", "write --addr 64 --text x --flag-addr 0 --to"},
		{"ping --once --serve", "ping -n 10 --to"},
		{"ping --link --once --serve", "ping --link -n 10 --to"},
		{"bench --once --serve", "bench --seconds 0.05 --size 4096 --to"},
		{"bench --link --once --serve", "bench --link --seconds 0.05 --size 4096 --to"},
	} {
		_, there, here := servesOnce(t, x.there+" udp:127.0.0.1"+key, func(url string) string { return x.here + " " + addressOf(t, url) + key })
		if here.code != exitOK {
			t.Errorf("%s: %+v", x.here, here)
			continue
		}
		if there.code != exitOK || strings.Contains(there.err, "any peer") && !strings.Contains(there.err, "any peer that shares a key with it may ") {
			t.Errorf("%s: %+v", x.there, there)
		}
	}
}

// TestOtherKeyByAddress: of another key it is said that it is one, and of none that there may be one.
func TestOtherKeyByAddress(t *testing.T) {
	t.Parallel()
	at, _, _ := servingMemory(t, "--accept", "any", "--key-file", keyFile(t), "udp:127.0.0.1")
	for _, x := range []struct{ with, says string }{
		{"--key-file " + keyFile(t), "does not accept our key: has it the same one for us, and room for another peer?\n"},
		{"", "does it accept peers without a key?"},
	} {
		args := strings.Fields("write --addr 0 --text x --to " + addressOf(t, at) + " " + x.with)
		if code, _, stderr := runFor(t, t.Context(), args...); code != exitError || !strings.Contains(stderr, x.says) {
			t.Errorf("%v: code %d: %s", args, code, stderr)
		}
	}
}

// TestMissingFiles checks that whatever file is missing, the command says so and ends with 1: with 2 alone ends what the command line
// by itself shows to be a mistake (N19).
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, args := range []string{
		"send --key-file FILE /dev/null udp:127.0.0.1:7", "send FILE udp:127.0.0.1:7", "listen --key-file FILE udp:127.0.0.1", "listen udp:127.0.0.1?key-file=FILE",
		"serve --accept any --key-file FILE udp:127.0.0.1", "serve --accept any --file FILE udp:127.0.0.1", "serve --peer " + localString(free(t), 64, 2) + " udp:127.0.0.1?key-file=FILE",
		"write --key-file FILE --to udp:127.0.0.1:7 --flag-addr 0", "write --file FILE --addr 0 --to udp:127.0.0.1:7", "ping --key-file FILE --to udp:127.0.0.1:7",
		"ping --serve udp --key-file FILE", "bench --key-file FILE", "bench --serve udp --key-file FILE", "decode FILE", "decode -i lo --bpf FILE", "report FILE", "url udp:127.0.0.1?key-file=FILE",
	} {
		code, _, stderr := runFor(t, patient(t), strings.Fields(strings.ReplaceAll(args, "FILE", missing))...)
		if code != exitError || !strings.Contains(stderr, missing) {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
	}
}

// TestKeyFileRefused: one that others may read, with what to do about it; and over TCP, where nothing is sealed.
func TestKeyFileRefused(t *testing.T) {
	path := keyFile(t)
	for _, args := range []string{
		"ping --to tcp:127.0.0.1:7 --op send", "ping --serve tcp:127.0.0.1", "bench --serve tcp:127.0.0.1", "bench --to tcp:127.0.0.1:7", "bench --op write --seconds 0.05",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a server goes on
		if code, _, stderr := runFor(t, ctx, append(strings.Fields(args), "--key-file", path)...); code != exitUsage || !strings.Contains(stderr, "nothing is sealed over TCP") {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
		cancel()
	}
	os.Chmod(path, 0o644)
	for _, args := range [][]string{{"listen", "udp:127.0.0.1"}, {"serve", "udp:127.0.0.1"}, {"ping", "--serve", "udp:127.0.0.1"}, {"bench", "--serve", "udp:127.0.0.1"}, {"send", "/dev/null", "udp:127.0.0.1:7"}, {"write", "--to", "udp:127.0.0.1:7", "--addr", "0", "--text", "x"}} {
		if code, _, stderr := runFor(t, t.Context(), append(args, "--key-file", path)...); code != exitError || !strings.HasPrefix(stderr, "dgrdmacat "+args[0]+": key file "+path+": others can read or write it (-rw-r--r--): chmod 600") {
			t.Errorf("%v: code %d: %s", args, code, stderr)
		}
	}
}

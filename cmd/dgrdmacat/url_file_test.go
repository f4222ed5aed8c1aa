package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// urlFileServers are the commands that have --url-file.
var urlFileServers = []string{
	"listen udp:127.0.0.1", "serve --accept any udp:127.0.0.1", "bench --serve udp:127.0.0.1", "bench --link --serve udp:127.0.0.1",
	"ping --serve udp:127.0.0.1", "ping --link --serve udp:127.0.0.1",
}

const earlierURL = "ocpi-udp-rdma:192.0.2.1;7;64.3.65535\n"

// urlIn waits for the string of a server that is there now.
func urlIn(t *testing.T, file string) (url string) {
	t.Helper()
	eventually(t, "the URL is there", func() bool {
		b, _ := os.ReadFile(file)
		url = string(b)
		return url != "" && url != earlierURL
	})
	return strings.TrimSpace(url)
}

// TestURLFileIsThereWhileServing: what an earlier run left is never taken for the string of
// this one, and this one leaves nothing; a file keeps its mode.
func TestURLFileIsThereWhileServing(t *testing.T) {
	noGoroutineLeft(t)
	for _, server := range urlFileServers {
		t.Run(strings.ReplaceAll(server, " ", "_"), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "url")
			if err := os.WriteFile(file, []byte(earlierURL), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				runFor(t, ctx, append(strings.Fields(server), "--url-file", file)...)
			}()
			if url := urlIn(t, file); !strings.HasPrefix(url, "ocpi-udp-rdma:127.0.0.1;") {
				t.Errorf("it says %q", url)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			stop()
			<-ended
			wantFiles(t, filepath.Dir(file), map[string][]byte{})
		})
	}
}

// TestURLFileIsRemovedWhatever: a mistake, or a port that is taken, leaves no string of an
// earlier run for others to take for this one's.
func TestURLFileIsRemovedWhatever(t *testing.T) {
	noGoroutineLeft(t)
	for _, args := range []string{
		"listen --url-file FILE --bogus", "listen --bogus --url-file FILE", "listen --bogus=1 x --url-file=FILE y", "listen ---x --url-file FILE",
		"listen --force --url-file FILE", "listen --url-file FILE udp:192.0.2.1", "listen --metrics nonsense --url-file FILE",
		"serve --url-file FILE", "bench --serve nonsense --url-file FILE", "bench --seconds x --serve udp --url-file FILE", "bench --serve= --url-file FILE",
		"ping --url-file FILE", "ping --link --serve ether:none9 --url-file FILE", "serve --accept any --url-file FILE stray udp", "listen --url-file FILE -o",
	} {
		file := filepath.Join(t.TempDir(), "url")
		if err := os.WriteFile(file, []byte(earlierURL), 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := runFor(t, patient(t), strings.Fields(strings.ReplaceAll(args, "FILE", file))...)
		if code == exitOK || stderr == "" {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: what an earlier run left is still there", args)
		}
	}
	// Who asks for help starts nothing.
	file := fileOf(t, []byte(earlierURL))
	if code, _, _ := runFor(t, patient(t), "listen", "--url-file", file, "-h"); code != exitOK {
		t.Errorf("help: code %d", code)
	}
	wantFiles(t, filepath.Dir(file), map[string][]byte{filepath.Base(file): []byte(earlierURL)})
}

// TestURLFileOfSomebody: a file that is none of ours is neither removed nor replaced, be it
// there at once or come while the endpoint opens.
func TestURLFileOfSomebody(t *testing.T) {
	noGoroutineLeft(t)
	for _, precious := range []string{"precious", earlierURL + "and more", strings.Repeat(" ", longestURL) + "x", "udp:7100", "\x00"} {
		file := fileOf(t, []byte(precious))
		for _, server := range urlFileServers {
			code, _, stderr := runFor(t, patient(t), append(strings.Fields(server), "--url-file", file)...)
			if code != exitError || !strings.Contains(stderr, "--url-file "+file+": what is in it is no endpoint string, so it is not replaced") {
				t.Errorf("%s: code %d: %s", server, code, stderr)
			}
		}
		u := urlFile{fileFlag: fileFlag(file)}
		if err := u.write("ocpi-udp-rdma:192.0.2.1;7;64.3.65535"); err == nil {
			t.Error("what came meanwhile is replaced")
		}
		if err := u.end(); err != nil {
			t.Error(err)
		}
		wantFiles(t, filepath.Dir(file), map[string][]byte{filepath.Base(file): []byte(precious)})
	}
	if code, _, stderr := runFor(t, patient(t), "listen", "--url-file", ""); code != exitUsage || !strings.Contains(stderr, "the name of a file is empty") {
		t.Errorf("empty: code %d: %s", code, stderr)
	}
}

// TestURLFileThatWasEmpty: it is somebody's, as mktemp makes one, so it is there at the end, and
// empty, with its mode, whether or not the server ever opened.
func TestURLFileThatWasEmpty(t *testing.T) {
	for _, server := range []string{"serve --for 50ms --accept any udp:127.0.0.1", "listen udp:192.0.2.1", "listen --bogus"} {
		file := fileOf(t, nil)
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := runFor(t, patient(t), append(strings.Fields(server), "--url-file", file)...)
		if (code == exitOK) != strings.HasPrefix(server, "serve") {
			t.Errorf("%s: code %d: %s", server, code, stderr)
		}
		wantFiles(t, filepath.Dir(file), map[string][]byte{filepath.Base(file): {}})
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", server, info, err)
		}
	}
}

// TestURLFileOfAnotherServer: the string of who began with the same file later, as the first one was removed, stays.
func TestURLFileOfAnotherServer(t *testing.T) {
	file := fileOf(t, nil)
	first, second := urlFile{fileFlag: fileFlag(file)}, urlFile{fileFlag: fileFlag(file)}
	for _, err := range []error{
		first.begin(), first.write("ocpi-udp-rdma:192.0.2.1;7;64.1.65535"), os.Remove(file), second.begin(), second.write("ocpi-udp-rdma:192.0.2.1;8;64.2.65535"), first.end(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantFiles(t, filepath.Dir(file), map[string][]byte{filepath.Base(file): []byte("ocpi-udp-rdma:192.0.2.1;8;64.2.65535\n")})
	if err := second.end(); err != nil {
		t.Error(err)
	}
	wantFiles(t, filepath.Dir(file), map[string][]byte{})
}

// TestURLFileBehindALink: a symbolic link goes on pointing to something, and a device takes
// the string as it is.
func TestURLFileBehindALink(t *testing.T) {
	target := fileOf(t, []byte(earlierURL))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		u := urlFile{fileFlag: fileFlag(link)}
		for _, err := range []error{u.begin(), u.write(strings.TrimSpace(earlierURL))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if b, err := os.ReadFile(target); string(b) != earlierURL {
			t.Errorf("%q, %v", b, err)
		}
		if err := u.end(); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(link); len(b) != 0 || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
	u := urlFile{fileFlag: os.DevNull}
	for _, err := range []error{u.begin(), u.write("x"), u.end()} {
		if err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&fs.ModeDevice == 0 {
		t.Fatalf("%s is no device any more: %v", os.DevNull, err)
	}
}

// TestURLFileGoesWithASignal: ^C and SIGTERM end a server like anything else.
func TestURLFileGoesWithASignal(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		file := filepath.Join(t.TempDir(), "url")
		p := asProcess(t, "serve", "--accept", "any", "--url-file", file, "udp:127.0.0.1").start()
		p.url(file)
		p.Process.Signal(s)
		if code := p.code(); code != exitOK {
			t.Errorf("%v: code %d: %s", s, code, &p.err)
		}
		wantFiles(t, filepath.Dir(file), map[string][]byte{})
	}
}

// TestURLFileWhereNothingMayBeWritten is said before anything is opened.
func TestURLFileWhereNothingMayBeWritten(t *testing.T) {
	file := fileOf(t, []byte(earlierURL))
	dir := filepath.Dir(file)
	t.Cleanup(func() { os.Chmod(dir, 0o755) }) // to be removed
	for _, err := range []error{os.Chmod(file, 0o444), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o555)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := asNobody(asProcess(t, "listen", "--url-file", file, "udp:127.0.0.1")).start()
	if code := p.code(); code != exitError || !strings.Contains(p.err.String(), "permission denied") || strings.Contains(p.err.String(), "listening") {
		t.Errorf("code %d: %s", code, &p.err)
	}
}

// TestURLFileOfARunningServer checks that a second server with the same file leaves it to the first one, which runs, and says so, whichever
// commands they are; and that it takes the file when the first one has ended.
func TestURLFileOfARunningServer(t *testing.T) {
	noGoroutineLeft(t)
	for i, first := range urlFileServers {
		for _, there := range []string{"", "empty"} {
			second := urlFileServers[(i+1)%len(urlFileServers)]
			file := filepath.Join(t.TempDir(), "url")
			if there != "" {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				runFor(t, ctx, append(strings.Fields(first), "--url-file", file)...)
			}()
			url := urlIn(t, file)
			soon, cancel := context.WithTimeout(t.Context(), patience)
			code, _, said := runFor(t, soon, append(strings.Fields(second), "--url-file", file)...)
			cancel()
			if code != exitError || !strings.Contains(said, "--url-file "+file+": the server whose URL is in it still runs, so it is not replaced: name another file, or end that server first\n") {
				t.Errorf("%s after %s: code %d, %s", second, first, code, said)
			}
			if got := urlIn(t, file); got != url {
				t.Errorf("%s after %s: the file has %q, want %q", second, first, got, url)
			}
			stop()
			<-ended
		}
	}
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestSendOfAFileThatIsCut: a file that shrinks while it is sent is not whole at either end,
// and both say how much of it there was; one that grows is sent as it was at the beginning.
func TestSendOfAFileThatIsCut(t *testing.T) {
	t.Parallel()
	const size = 3 * allBuffers
	for _, c := range []struct {
		name         string
		becomes      int64
		sends, takes string
		code         int
	}{
		{"cut", 1000,
			`sent \d+ bytes` + saysTime + `, not whole\ndgrdmacat send: \S+/in became shorter while it was sent: \d+ of 100663296 bytes\n`,
			`received \d+ bytes` + saysTime + `, not whole\ndgrdmacat listen: the sender, ` + saysPeer + `, gave up: \S+/in became shorter while it was sent: \d+ of 100663296 bytes\n`, exitError},
		{"grown", size + 1000, saysSent(size), saysReceived(size), exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := fileWith(t, nil)
			if err := os.Truncate(in, size); err != nil {
				t.Fatal(err)
			}
			l, url := listenCat(t, []string{anyPort + "?giveup=60s"}, stdoutOpen)
			s := startCat(t, []string{"send", in, url + "?giveup=60s"})
			l.read(1) // it is under way, and cannot go on before all buffers are taken
			if err := os.Truncate(in, c.becomes); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, l.stdout); err != nil || c.code == exitOK && n != size-1 {
				t.Errorf("%d bytes came, %v", n+1, err)
			}
			s.end(c.code, c.sends)
			l.end(c.code, saysAccepted+c.takes)
		})
	}
}

// TestSendWhatTheKernelMakes: a file whose size says nothing of what it has is sent whole.
func TestSendWhatTheKernelMakes(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		want, err := os.ReadFile(in)
		if err != nil {
			t.Logf("%v: not sent", err)
			continue
		}
		l, url := listenCat(t, []string{anyPort})
		startCat(t, []string{"send", in, url}).end(exitOK, saysSent(len(want)))
		l.end(exitOK, saysAccepted+saysReceived(len(want)))
		if got := l.out.String(); got != string(want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// TestListenWhereNothingCanBeWritten any more, though it could when listen began: nothing was
// received, and the line says so.
func TestListenWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		file string
		then func(file string) error
		why  string
	}{
		{"a file appeared", "out", func(file string) error { return os.WriteFile(file, nil, 0o600) }, `write \S+/out: exists already; --force replaces it`},
		{"the directory was removed", "in/out", func(file string) error { return os.Remove(filepath.Dir(file)) }, `write into \S+/in: no such file or directory`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			l, url := listenCat(t, []string{"-o", file, anyPort})
			if err := c.then(file); err != nil {
				t.Fatal(err)
			}
			s := startCat(t, []string{"send", url}, stdinFrom([]byte("x")))
			l.end(exitError, saysAccepted+`received 0 bytes`+saysTime+`, not whole\ndgrdmacat listen: `+c.why+`\n`)
			s.end(exitError, `sent \d bytes?`+saysTime+`, not whole\ndgrdmacat send: the receiver, .*, gave up: cannot write the file: .*\n`)
		})
	}
}

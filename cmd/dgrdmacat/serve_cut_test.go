package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeOfAFileThatIsCut: what is cut while it is served ends serving with an error that
// names it, whatever touches it first, a peer's bytes, its flag, or what is dumped at the end; and the
// peer that wrote is told at once that the server has ended (N10).
func TestServeOfAFileThatIsCut(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	for _, c := range []struct {
		flags, write string // "": it is interrupted
	}{
		{"", "--addr 0x8000 --text x"},
		{"", "--flag-addr 0x8000"},
		{"--watch 0x8000", "--addr 0x8000 --text x"},
		{"--watch 0x8000", "--addr 0x1000 --text x --flag-addr 0x8000"},
		{"--dump DUMP", ""},
		{"--until 0x8000=1", ""},
	} {
		name := fileOf(t, make([]byte, size))
		dump := filepath.Join(t.TempDir(), "dump")
		p, url := serveProcess(t, strings.Fields("--accept any --file "+name+" "+strings.ReplaceAll(c.flags, "DUMP", dump)+" udp:127.0.0.1")...)
		mustWrite(t, url, strings.Fields("--addr 0x4000 --text before")...)
		if err := os.Truncate(name, 0x2000); err != nil {
			t.Fatal(err)
		}
		if c.write == "" {
			p.Process.Signal(os.Interrupt)
		} else if code, _, stderr := runFor(t, patient(t), append([]string{"write", "--to", url + "?giveup=1h"}, strings.Fields(c.write)...)...); code != exitError || !strings.Contains(stderr, "the peer closed") {
			t.Errorf("%+v: write: code %d, %s", c, code, stderr)
		}
		code, says := p.code(), p.err.String()
		if want := "dgrdmacat serve: --file " + name + ": was cut from 65536 bytes to 8192: the file must keep its size while it is served\n"; code != exitError || !strings.HasSuffix(says, want) || strings.Contains(says, "goroutine") {
			t.Errorf("%+v: code %d: %s", c, code, says)
		}
		wantFiles(t, filepath.Dir(dump), map[string][]byte{})
		if info, err := os.Stat(name); err != nil || info.Size() != 0x2000 {
			t.Errorf("%+v: the file: %v, %v", c, info, err)
		}
	}
}

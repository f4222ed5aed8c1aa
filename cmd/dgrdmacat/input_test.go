package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptedBeforeAnyInput: neither a pipe that nobody has opened yet nor one
// that stays silent, nor standard input, keeps a command from ending.
func TestInterruptedBeforeAnyInput(t *testing.T) {
	const nobody = "ocpi-udp-rdma:127.0.0.1;9;17891328.2.16"
	fifo := newFIFO(t)
	for _, opened := range []bool{false, true} {
		if opened {
			writer, err := os.OpenFile(fifo, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
		}
		for args, says := range map[string]string{
			"decode " + fifo:        "decode: " + fifo + ": interrupted\n",
			"report --json " + fifo: "report: fifo: interrupted before there was anything to report\n",
			"write --to " + nobody + " --addr 0 --file " + fifo: "write: interrupted before all bytes to be written were read\n",
		} {
			p := asProcess(t, strings.Fields(args)...).start()
			p.opens(fifo)
			p.Process.Signal(syscall.SIGINT)
			if code := p.code(); code != exitInterrupted || p.err.String() != "dgrdmacat "+says {
				t.Errorf("%s, with a writer %v: code %d, %s", args, opened, code, &p.err)
			}
		}
	}
}

func newFIFO(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// opens waits until the process has opened a file.
func (p *process) opens(name string) {
	p.t.Helper()
	eventually(p.t, "it opens "+name, func() bool {
		links, _ := filepath.Glob("/proc/" + strconv.Itoa(p.Process.Pid) + "/fd/*")
		for _, l := range links {
			if to, _ := os.Readlink(l); to == name {
				return true
			}
		}
		return false
	})
}

// TestFIFOIsReadToItsEnd: a writer may come late, and what it wrote before it went
// is read.
func TestFIFOIsReadToItsEnd(t *testing.T) {
	noGoroutineLeft(t)
	fifo := newFIFO(t)
	in, err := openInput(t.Context(), fifo, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	want := random(9, 300_000)
	go os.WriteFile(fifo, want, 0)
	if got, err := io.ReadAll(in); err != nil || string(got) != string(want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestEmptyName: what a shell makes of a variable that is not set names no file.
func TestEmptyName(t *testing.T) {
	const nobody = "ocpi-udp-rdma:127.0.0.1;9;17891328.2.16"
	for _, args := range [][]string{{"decode", ""}, {"report", "--json", ""}, {"send", "", nobody}} {
		code, stdout, stderr := runFor(t, t.Context(), args...)
		if want := "dgrdmacat " + args[0] + ": the name of a file is empty; - is standard input\n"; code != exitUsage || stdout != "" || stderr != want {
			t.Errorf("%q: code %d, %q", args, code, stderr)
		}
	}
}

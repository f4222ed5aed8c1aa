package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// recordsIn is what a capture has, in words.
func recordsIn(t *testing.T, b []byte) (all []string) {
	t.Helper()
	f, err := capture.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := f.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%v %s %d %d %x", rec.Time.UnixNano(), rec.Name, rec.LinkType, rec.Length, rec.Data))
	}
}

// What is written is what was read and passes the filters: bytes, times, and names.
func TestDecodeWrites(t *testing.T) {
	single, loss := readCapture(t, "udp-single"), readCapture(t, "udp-loss7")
	path := filepath.Join(t.TempDir(), "out.pcapng")
	code, stdout, stderr := runDecode(t, nil, "-w", path, captures+"udp-loss7.pcap")
	if code != exitOK || stdout+stderr != "" {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	written, err := os.ReadFile(path)
	if err != nil || fmt.Sprint(recordsIn(t, written)) != fmt.Sprint(recordsIn(t, loss)) {
		t.Errorf("%d bytes are not what was read, %v", len(written), err)
	}
	// It is shown as what it was made of.
	_, want, _ := runDecode(t, nil, captures+"udp-loss7.pcap")
	if code, got, stderr := runDecode(t, nil, path); code != exitOK || got != want || stderr != "" {
		t.Errorf("code %d: %d bytes are shown, not %d; %s", code, len(got), len(want), stderr)
	}

	if code, _, stderr = runDecode(t, nil, "-w", path, captures+"udp-single.pcap"); code != exitError || !strings.Contains(stderr, path+" exists already; --force replaces it") && !strings.Contains(stderr, "exists already; --force replaces it") {
		t.Errorf("code %d, %s", code, stderr)
	}
	code, stdout, stderr = runDecode(t, nil, "--force", "--stats", "-w", path, "--addr", "127.0.0.1:33024", "--txn", "1", captures+"udp-single.pcap", captures+"ether-single.pcap")
	if written, _ = os.ReadFile(path); code != exitOK || stdout != "" || fmt.Sprint(recordsIn(t, written)) != fmt.Sprint(recordsIn(t, single)[:1]) ||
		!strings.HasSuffix(stderr, "; 4 frames, 1 written, 0 malformed, 0 cut\n") {
		t.Errorf("code %d, %d records, %s%s", code, len(recordsIn(t, written)), stdout, stderr)
	}
	// Of several files, all is written; and both is done that is asked for.
	code, stdout, stderr = runDecode(t, nil, "--force", "--print", "-w", path, captures+"udp-single.pcap", captures+"ether-flagonly.pcap")
	if written, _ = os.ReadFile(path); code != exitOK || strings.Count(stdout, "\n") != 4 || len(recordsIn(t, written)) != 4 || stderr != "" {
		t.Errorf("code %d, %d records, %s%s", code, len(recordsIn(t, written)), stdout, stderr)
	}
	// Nothing is a capture too.
	code, stdout, stderr = runDecode(t, nil, "--force", "-w", path, "--id", "77", captures+"udp-single.pcap")
	if written, _ = os.ReadFile(path); code != exitOK || stdout != "" || len(recordsIn(t, written)) != 0 || !strings.Contains(stderr, "0 written") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}

// A record of several datagrams is written once, whole, if one of its frames is wanted.
func TestDecodeWritesJoinedOnce(t *testing.T) {
	file := pcapOf(101, inIPv4(prefixed(oneFrame(1, 20), oneFrame(2, 20), oneFrame(3, 7))), inIPv4(prefixed(oneFrame(4, 20))))
	var out, stderr bytes.Buffer
	code := run(t.Context(), []string{"decode", "-w", "-", "--stats", "--range", "0x2000", "-"}, &stdio{bytes.NewReader(file), &out, &stderr})
	if code != exitOK || fmt.Sprint(recordsIn(t, out.Bytes())) != fmt.Sprint(recordsIn(t, file)) || !strings.Contains(stderr.String(), "4 frames, 4 written") {
		t.Errorf("code %d, %q, %s", code, recordsIn(t, out.Bytes()), stderr.String())
	}
	again, more := bytes.NewReader(out.Bytes()), bytes.Buffer{}
	code = run(t.Context(), []string{"decode", "-"}, &stdio{again, &more, &stderr})
	if want := "1.1 1.2 1.3 2"; code != exitOK || fieldOf(more.String(), 0) != want {
		t.Errorf("code %d, records %s, want %s", code, fieldOf(more.String(), 0), want)
	}
}

// fieldOf is one of the words of each line.
func fieldOf(lines string, n int) string {
	var all []string
	for line := range strings.Lines(lines) {
		all = append(all, strings.Fields(line)[n])
	}
	return strings.Join(all, " ")
}

// Lines name the interface where a capture has several, and JSON wherever it has a name.
func TestDecodeNamesInterfaces(t *testing.T) {
	record := func(number int, name string) *capture.Record {
		p := inIPv4(prefixed(oneFrame(1, 20)))
		return &capture.Record{Interface: number, Name: name, LinkType: 101, Data: p, Length: len(p), Time: capturetest.Stamp}
	}
	var w capture.Writer
	two := w.Begin(nil, []capture.Interface{{Name: "eth0", LinkType: 101}, {Name: "eth1", LinkType: 101}})
	two = w.Append(w.Append(two, record(1, "eth1")), record(0, "eth0"))
	w = capture.Writer{}
	one := w.Append(w.Begin(nil, nil), record(0, "eth0"))
	files := []string{writeFile(t, "two.pcapng", two), writeFile(t, "one.pcapng", one)}

	_, stdout, _ := runDecode(t, nil, files[0])
	if got := fieldOf(stdout, 2); got != "eth1 eth0" {
		t.Errorf("interfaces %s", got)
	}
	_, stdout, _ = runDecode(t, nil, files[1])
	if got := fieldOf(stdout, 2); got != "10.0.0.1:40001" {
		t.Errorf("behind the time: %s", got)
	}
	// So does one that was made of it.
	_, made, _ := runDecode(t, nil, "-w", "-", files[0])
	_, stdout, _ = runDecode(t, strings.NewReader(made), "-")
	if got := fieldOf(stdout, 2); got != "eth1 eth0" {
		t.Errorf("after it was written: %s", got)
	}
	_, stdout, _ = runDecode(t, nil, "--json", files[1])
	if !strings.Contains(stdout, `"interface":0,"interface_name":"eth0","time"`) {
		t.Error(stdout)
	}
}

// A disk that is full, a file that cannot be made, and one that is damaged where it is read.
func TestDecodeCannotWriteTheFile(t *testing.T) {
	const many = captures + "udp-many.pcap"
	code, stdout, stderr := runDecode(t, nil, "-w", "/dev/full", many, many)
	if code != exitError || stdout != "" || stderr != "dgrdmacat decode: write /dev/full: no space left on device\n" {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	dir := t.TempDir()
	whole := readCapture(t, "udp-single")
	in, out := writeFile(t, "in.pcap", whole), filepath.Join(dir, "out.pcapng")
	for _, c := range []struct{ args, want string }{
		{"-w " + dir + " " + many, "is a directory"},
		{"-w " + dir + "/none/out " + many, "no such file or directory"},
		{"--force -w " + in + " " + many + " " + in, "-w " + in + " would overwrite what is read"},
	} {
		code, stdout, stderr := runDecode(t, nil, strings.Fields(c.args)...)
		if code != exitError || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, %s%s", c.args, code, stdout, stderr)
		}
	}
	if got, err := os.ReadFile(in); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("what was to be read has %d bytes, %v", len(got), err)
	}
	if code, _, stderr := runDecode(t, nil, "-w", "", many); code != exitUsage || !strings.Contains(stderr, "the name of a file is empty") {
		t.Errorf("code %d, %s", code, stderr)
	}
	// Without anything to read, there is nothing to write.
	if code, _, _ := runDecode(t, nil, "-w", out, dir+"/none"); code != exitError {
		t.Errorf("code %d", code)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was made of nothing")
	}
	code, _, stderr = runDecode(t, bytes.NewReader(whole[:len(whole)-1]), "-w", out, "-")
	written, err := os.ReadFile(out)
	if code != exitError || !strings.Contains(stderr, "is damaged") || err != nil || fmt.Sprint(recordsIn(t, written)) != fmt.Sprint(recordsIn(t, whole)[:1]) {
		t.Errorf("code %d, %v, %s", code, err, stderr)
	}
}

func TestDecodeWritesNoCaptureToATerminal(t *testing.T) {
	p := openTerminal(t, 80, 24)
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"decode", "-w", "-", captures + "udp-single.pcap"}, &stdio{nil, p.user, &stderr})
	if code != exitUsage || !strings.Contains(stderr.String(), "terminal") {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/inspect"
)

func captureFile(name string) string {
	return filepath.Join("..", "..", "frame", "testdata", "captures", name+".pcap")
}

func TestReportWritesAPage(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report.html")
	code, stdout, stderr := runFor(t, context.Background(), "report", captureFile("udp-loss7"), "-o", out)
	if want := "udp-loss7.pcap: 153 frames in 153 records, 2 flows; problems 0, warnings 4, notes 0\n"; code != exitOK || stdout != "" || stderr != want {
		t.Fatalf("code %d, %q, %q, want %q", code, stdout, stderr, want)
	}
	b, err := os.ReadFile(out)
	if err != nil || !bytes.HasPrefix(b, []byte("<!DOCTYPE html>")) || !bytes.Contains(b, []byte("udp-loss7.pcap")) || !bytes.HasSuffix(b, []byte("</html>\n")) {
		t.Errorf("%v, %.100s", err, b)
	}
	onlyFile(t, out)

	code, _, stderr = runFor(t, context.Background(), "report", captureFile("udp-many"), "-o", out)
	if code != exitError || !strings.Contains(stderr, out+": exists already; --force replaces it") {
		t.Errorf("code %d, %q", code, stderr)
	}
	if again, _ := os.ReadFile(out); !bytes.Equal(again, b) {
		t.Error("the page was touched")
	}
	code, _, stderr = runFor(t, context.Background(), "report", captureFile("ether2-single"), "-o", filepath.Join(t.TempDir(), "one.html"))
	if want := "ether2-single.pcap: 1 frame in 1 record, 1 flow; problems 0, warnings 0, notes 1\n"; code != exitOK || stderr != want {
		t.Errorf("code %d, %q, want %q", code, stderr, want)
	}
	if code, _, stderr = runFor(t, context.Background(), "report", "--force", captureFile("udp-many"), "-o", out); code != exitOK {
		t.Error(stderr)
	}
	if again, _ := os.ReadFile(out); !bytes.Contains(again, []byte("udp-many.pcap")) {
		t.Error("the page was not replaced")
	}
	onlyFile(t, out)
}

func TestReportOnStandardInputAndOutput(t *testing.T) {
	b, err := os.ReadFile(captureFile("udp-many"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"report - -o -", "<title>standard input"},
		{"report -", "<title>standard input"},
		{"report - --json", `"kind":"window"`},
		{"report --json -o - -", `"capture":{"records":113,`},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), strings.Fields(tt.args), &stdio{bytes.NewReader(b), &out, &errs}); code != exitOK {
			t.Errorf("%s: code %d, %s", tt.args, code, errs.String())
		}
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: no %s in %.300s", tt.args, tt.want, out.String())
		}
	}
}

// TestReportIsNotForATerminal: nobody means to read a page there.
func TestReportIsNotForATerminal(t *testing.T) {
	screen := openTerminal(t, 80, 24)
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"report", captureFile("fpga-many")}, &stdio{nil, screen.user, &errs}); code != exitUsage ||
		!strings.Contains(errs.String(), "the page is not for a terminal: give -o FILE, or > FILE") {
		t.Errorf("code %d, %s", code, &errs)
	}
}

func TestReportAsJSON(t *testing.T) {
	code, stdout, stderr := runFor(t, context.Background(), "report", "--json", captureFile("udp-loss7"))
	var r inspect.Report
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil {
		t.Fatal(code, err, stderr)
	}
	f := r.Flows[0]
	if f.Resent != 74 || f.ResentIDs != 41 || f.Acked != 50 || f.Transactions.Completed != 10 || r.Capture.Frames != 153 || len(r.Findings) != 4 {
		t.Errorf("%+v", f)
	}
}

// What was read before the damage is reported, and that there is some.
func TestReportOfADamagedFile(t *testing.T) {
	b, err := os.ReadFile(captureFile("udp-loss7"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "cut.pcap"), filepath.Join(dir, "out", "report.html")
	if err := os.Mkdir(filepath.Dir(out), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in, b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runFor(t, context.Background(), "report", in, "-o", out)
	if code != exitError || !strings.Contains(stderr, "cut.pcap is damaged: it ends within record 69, which begins at offset 31384; the report is of what comes before") {
		t.Errorf("code %d, %q", code, stderr)
	}
	page, err := os.ReadFile(out)
	if err != nil || !bytes.Contains(page, []byte("The capture is incomplete, which says nothing of the link: it ends within record 69, which begins at offset 31384.")) || bytes.Contains(page, []byte("EOF")) || !bytes.Contains(page, []byte("were sent again")) {
		t.Errorf("%v, %d bytes", err, len(page))
	}
	onlyFile(t, out)

	if err := os.WriteFile(in, b[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(out)
	code, _, stderr = runFor(t, context.Background(), "report", in, "-o", out)
	if _, err := os.Stat(out); code != exitError || err == nil || !strings.HasSuffix(stderr, "cut.pcap ends within its header\n") {
		t.Errorf("code %d, %q, %v", code, stderr, err)
	}
}

// A page that cannot be written whole leaves nothing behind.
func TestReportThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		dir:                               "is a directory",
		filepath.Join(dir, "no", "where"): "no such file or directory",
		"/dev/full":                       "no space left on device",
	} {
		code, _, stderr := runFor(t, context.Background(), "report", captureFile("udp-many"), "-o", name)
		if code != exitError || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %q, want %q", name, code, stderr, want)
		}
	}
	code, _, stderr := runFor(t, context.Background(), "report", captureFile("udp-many"), "--flow", "9", "-o", filepath.Join(dir, "x"))
	if entries, _ := os.ReadDir(dir); code != exitUsage || len(entries) != 0 || !strings.Contains(stderr, "--flow 9: udp-many.pcap has 2 flows") {
		t.Errorf("code %d, %q, %v", code, stderr, entries)
	}
}

// Interrupted while it waits for more, it reports what it has.
func TestInterruptedReport(t *testing.T) {
	b, err := os.ReadFile(captureFile("udp-many"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	go func() {
		feed.Write(b)
		eventually(t, "all is read", func() bool { return unread(in) == 0 })
		cancel()
	}()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"report", "-", "--json"}, &stdio{in, &out, &errs})
	if code != exitOK || !strings.Contains(out.String(), `"frames":113,`) || !strings.Contains(errs.String(), "interrupted; ") {
		t.Errorf("code %d, %.200s, %s", code, out.String(), errs.String())
	}
}

// unread is how much of what was written into a pipe is still there.
func unread(pipe *os.File) (n int) {
	onDescriptor(pipe, func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.TIOCINQ) })
	return n
}

func TestReportPortsAndType(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--port 47214 " + captureFile("udp-loss7"), `"frames":153,`},
		{"--port 1,2 " + captureFile("udp-loss7"), `"frames":0,`},
		{"--ethertype 0x8888 " + captureFile("ether-multi"), `"frames":0,`},
		{captureFile("ether-multi"), `"frames":5,`},
		{"--port tcp:9 " + captureFile("ether-multi"), `"frames":0,`}, // a port of iWARP alone leaves DG/RDMA out
		{"--port tcp:9 " + captureFile("udp-loss7"), `"frames":0,`},
		{"--port tcp:9,udp:47214 " + captureFile("udp-loss7"), `"frames":153,`},
		{"--port tcp:9 --ethertype 0xf042 " + captureFile("ether-multi"), `"frames":5,`},
		{"--addr 192.0.2.1 " + captureFile("udp-loss7"), `"flows":[]`},
	} {
		code, stdout, stderr := runFor(t, context.Background(), append([]string{"report", "--json"}, strings.Fields(tt.args)...)...)
		if code != exitOK || !strings.Contains(stdout, tt.want) {
			t.Errorf("%s: code %d, no %s; %s", tt.args, code, tt.want, stderr)
		}
	}
}

func TestReportOfIWARP(t *testing.T) {
	in := iwarpCaptures + "term-write-bounds.pcap"
	for args, want := range map[string]string{
		"":                "term-write-bounds.pcap: 4 frames in 13 records, 1 connection; problems 1, warnings 0, notes 0\n",
		"--port tcp:7000": "term-write-bounds.pcap: 4 frames in 13 records, 1 connection; problems 1, warnings 0, notes 0\n",
		"--port tcp:9":    "term-write-bounds.pcap: 0 frames in 13 records, 0 flows; problems 0, warnings 0, notes 1\n",

		"--addr 10.99.0.3":              "term-write-bounds.pcap: 4 frames in 13 records, 1 connection; problems 1, warnings 0, notes 0\n",
		"--addr 1.2.3.4,10.99.0.2:7000": "term-write-bounds.pcap: 4 frames in 13 records, 1 connection; problems 1, warnings 0, notes 0\n",
		"--addr 10.99.0.3:7000":         "term-write-bounds.pcap: 0 frames in 13 records, 0 flows; problems 0, warnings 0, notes 1\n",
	} {
		code, stdout, stderr := runFor(t, context.Background(), append([]string{"report", "--json", in}, strings.Fields(args)...)...)
		var r inspect.Report
		if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil || stderr != want {
			t.Errorf("%s: code %d, %v, %q, want %q", args, code, err, stderr, want)
		}
		if len(r.Connections) == 1 && (r.Findings[0].Kind != "terminate" || r.Findings[0].Connection != 1) {
			t.Errorf("%+v", r.Findings)
		}
	}
}

// TestReportOfAnyYear checks that report writes its page and its JSON whatever the time is that a capture begins at: what no calendar
// has is left out (F5).
func TestReportOfAnyYear(t *testing.T) {
	_, f := capturetest.Frame()
	for _, form := range []string{"--json", ""} {
		for _, c := range []struct {
			name    string
			seconds int64 // since 1970
			known   bool
		}{
			{"1970", 0, true}, {"9999", 253402300799, true}, {"10000", 253402300800, false}, {"0", -62167219200, true}, {"-1", -62167219201, false},
			{"292277026596", 1<<63 - 1, false}, {"-292277022656", -1 << 63, false},
		} {
			o := binary.LittleEndian
			var offset [8]byte
			o.PutUint64(offset[:], uint64(c.seconds))
			file := append(capturetest.Section(o), capturetest.Interface(o, 1, 0, capturetest.Option(o, 14, offset[:]...)...)...)
			for ticks := range uint64(2) {
				p := capturetest.Of(1, append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0xF0, 0x42}, f...))
				file = append(file, capturetest.Enhanced(o, 0, ticks, p)...)
			}
			path := filepath.Join(t.TempDir(), "y.pcapng")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"report", path}
			if form != "" {
				args = append(args, form)
			}
			code, stdout, stderr := runFor(t, t.Context(), args...)
			if code != exitOK || len(stdout) < 500 {
				t.Errorf("%s of year %s: code %d, %d bytes, %s", form, c.name, code, len(stdout), stderr)
				continue
			}
			var r inspect.Report
			if form == "" {
				continue
			}
			if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Capture.Frames != 2 || r.Capture.Begin.IsZero() == c.known || c.known && r.Capture.Begin.Unix() != c.seconds {
				t.Errorf("year %s: %v, %+v", c.name, err, r.Capture)
			}
		}
	}
}

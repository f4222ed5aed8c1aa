package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/inspect"
)

// TestDecodeKeepsWhatWasDropped checks that a capture that tells what the kernel dropped does so still when decode -w has written it
// again, and that report says it first (N4).
func TestDecodeKeepsWhatWasDropped(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.pcapng"), filepath.Join(dir, "out.pcapng")
	f, err := capture.NewFile(bytes.NewReader(readCapture(t, "udp-loss7")))
	if err != nil {
		t.Fatal(err)
	}
	var w capture.Writer
	b := w.Begin(nil, nil)
	for rec, err := f.Next(); err == nil; rec, err = f.Next() {
		b = w.Append(b, &rec)
	}
	if err := os.WriteFile(in, w.Dropped(b, 10_668, capturetest.Stamp), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runDecode(t, nil, "--stats", "-w", out, in, in)
	if code != exitOK || !strings.HasSuffix(stderr, "; 21336 dropped when they were captured\n") {
		t.Errorf("code %d, %s", code, stderr)
	}
	code, stdout, stderr := runFor(t, t.Context(), "report", "--json", out)
	var r inspect.Report
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil {
		t.Fatal(code, err, stderr)
	}
	if first := r.Findings[0]; r.Capture.Dropped != 21_336 || first.Kind != "capture incomplete" || !strings.Contains(first.Text, "21,336 packets were dropped") {
		t.Errorf("%d dropped; first of all, %+v", r.Capture.Dropped, first)
	}
}

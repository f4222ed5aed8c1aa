package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/inspect"
)

// cutAt is a capture of siw as a snap length leaves it.
func cutAt(t *testing.T, name string, snap int) []byte {
	t.Helper()
	f, err := os.Open(iwarpCaptures + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := capture.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	var w capture.Writer
	b := w.Begin(nil, nil)
	for {
		r, err := src.Next()
		if err == io.EOF {
			return b
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Data = r.Data[:min(len(r.Data), snap)]
		b = w.Append(b, &r)
	}
}

// TestSnapLength checks that decode and report blame what is missing of iWARP on the snap length, and never say that the beginning of a
// connection was not captured that was (1).
func TestSnapLength(t *testing.T) {
	const hides = "the snap length hides whether there is iWARP in "
	for _, c := range []struct {
		snap            int
		args            string
		stdout, stderr  string // each has this
		finding         string // one of report has this
		hidden, setUpIn bool
	}{
		{96, "", "MPA request revision 2, CRC, IRD 4 ORD 4, private data 6 bytes 00007fc86f04; 10 bytes of it are not in the capture", "", "(snap length, or the capture lost packets)", false, true},
		{96, "--port tcp:7000", "MPA reply revision 2, CRC, IRD 4 ORD 4, private data 6 bytes 00007fa2eb5c; 10 bytes of it are not in the capture", "", "(snap length, or the capture lost packets)", false, true},
		{88, "", "MPA request revision 2, CRC; 18 bytes of it are not in the capture", "", "(snap length, or the capture lost packets)", false, true},
		{64, "", "", "13 records, 13 of them skipped (13 of TCP, cut before what would show iWARP)", "A snap length hides whether there is iWARP in 13 records of TCP", true, false},
		{50, "", "", "13 records, 13 of them skipped (13 of TCP, cut before what would show iWARP)", "A snap length hides whether there is iWARP in 13 records of TCP", true, false},
		{64, "--txn 1", "", "13 records, ", "", false, false},
	} {
		b := cutAt(t, "term-write-bounds", c.snap)
		args := strings.Fields(c.args)
		code, stdout, stderr := runDecode(t, bytes.NewReader(b), append(args, "-")...)
		if code != exitOK || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || strings.Contains(stderr, hides) != c.hidden || strings.Contains(stdout, "beginning of the connection") {
			t.Errorf("decode of %d bytes %s: code %d\n%s%s", c.snap, c.args, code, stdout, stderr)
		}
		if c.finding == "" {
			continue
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), append(append([]string{"report", "--json"}, args...), "-"), &stdio{bytes.NewReader(b), &out, &errs}); code != exitOK {
			t.Fatal(errs.String())
		}
		var r inspect.Report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		told := false
		for _, f := range r.Findings {
			told = told || strings.Contains(f.Text, c.finding)
			if f.Kind == "mid-connection" {
				t.Errorf("report of %d bytes %s: %s", c.snap, c.args, f.Text)
			}
		}
		if agreed := len(r.Connections) == 1 && r.Connections[0].State == "agreed"; !told || agreed != c.setUpIn {
			t.Errorf("report of %d bytes %s: %+v %+v", c.snap, c.args, r.Findings, r.Connections)
		}
	}
}

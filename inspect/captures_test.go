package inspect_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
)

func openCapture(t testing.TB, name string) *captured.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "frame", "testdata", "captures", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := captured.NewFileReader(f, captured.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What happened in the captures of OpenCPI's implementations, as their
// ORIGIN.md tells it, and that nothing else is said.
func TestCapturesOfRealPeers(t *testing.T) {
	type sums struct{ frames, resent, completed, acked, unacked, missing int }
	for _, tt := range []struct {
		name     string
		sums     sums     // over all flows
		findings []string // severity and kind, in order
	}{
		{"ether-flagonly", sums{2, 0, 1, 1, 0, 0}, nil},
		{"ether-loss5-pingpong", sums{40, 8, 24, 24, 0, 0}, []string{
			"warning sent again", "warning sent again", "warning frame", "warning frame", "warning frame", "warning frame",
		}},
		{"ether-many-doorbell", sums{114, 0, 113, 113, 0, 0}, nil},
		{"ether-multi", sums{5, 0, 1, 4, 0, 0}, nil},
		{"ether-single", sums{2, 0, 1, 1, 0, 0}, nil},
		{"ether2-coalesce", sums{3, 0, 16, 0, 0, 0}, []string{"note never acknowledges"}},
		{"ether2-flagonly", sums{1, 0, 1, 0, 0, 0}, []string{"note never acknowledges"}},
		{"ether2-odd", sums{1, 0, 1, 0, 0, 0}, []string{"note never acknowledges"}},
		{"ether2-single", sums{1, 0, 1, 0, 0, 0}, []string{"note never acknowledges"}},
		{"fpga-lost-ack-stalls", sums{76, 56, 7, 10, 8, 1}, []string{
			"problem not acknowledged", "warning sent again", "warning frame", "warning frame", "warning frame", "note gap",
		}},
		{"fpga-many", sums{38, 0, 100, 25, 0, 0}, nil},
		{"fpga-multi", sums{5, 0, 1, 4, 0, 0}, nil},
		{"fpga-send-ackonly-unpadded", sums{6, 0, 4, 4, 0, 0}, nil},
		{"fpga-send-w1-ocpi-dg", sums{7, 0, 4, 4, 0, 0}, nil},
		{"fpga-send-w4-ocpi-dg2", sums{4, 0, 4, 0, 0, 0}, []string{"note never acknowledges"}},
		{"fpga-single", sums{2, 0, 1, 1, 0, 0}, nil},
		{"udp-flagonly", sums{2, 0, 1, 1, 0, 0}, nil},
		{"udp-loss7", sums{153, 74, 10, 50, 0, 0}, []string{"warning sent again", "warning frame", "warning frame", "warning frame"}},
		{"udp-many", sums{113, 0, 100, 100, 0, 0}, []string{"note window"}},
		{"udp-multi", sums{12, 0, 1, 11, 0, 0}, nil},
		{"udp-single", sums{2, 0, 1, 1, 0, 0}, nil},
		{"udp-single-nometa", sums{2, 0, 1, 1, 0, 0}, []string{"warning count 0"}},
	} {
		r := analyze(t, openCapture(t, tt.name))
		var got sums
		for _, f := range r.Flows {
			got.frames += int(f.Frames)
			got.resent += f.Resent
			got.completed += f.Transactions.Completed
			got.acked += f.Acked
			got.unacked += f.Unacked
			got.missing += f.Missing
			if f.Duplicates+f.Late+f.Strays+f.Conflicts+f.Transactions.Never+len(f.Restarts) != 0 {
				t.Errorf("%s: what did not happen was seen: %+v", tt.name, f)
			}
		}
		if got != tt.sums {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.sums)
		}
		var said []string
		for _, f := range r.Findings {
			said = append(said, string(f.Severity)+" "+f.Kind)
		}
		if !slices.Equal(said, tt.findings) {
			t.Errorf("%s: %q, want %q", tt.name, said, tt.findings)
		}
	}
}

func said(r *inspect.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(string(f.Severity) + ": " + f.Text + "\n")
	}
	return b.String()
}

// The words of a few findings, against what can be looked up in the captures.
func TestFindingsInWords(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"ether-loss5-pingpong", "warning: Frame 11 of endpoint 1 is in the capture 3 times within 410 ms: it was acknowledged 206 ms after the first time, and came again all the same."},
		{"udp-loss7", "warning: 41 of 50 frames from endpoint 1 to endpoint 2 were sent again, 74 copies in all, 59.7 % of these frames in the capture."},
		{"udp-loss7", "warning: Frame 47 of endpoint 1 is in the capture 5 times within 818 ms; its first acknowledgement in the capture came 74.5 ms after the last time."},
		{"fpga-lost-ack-stalls", "8 frames from endpoint 1 (02:00:00:00:00:0a) have no acknowledgement in the capture, where endpoint 1 (02:00:00:00:00:0b) acknowledges others; the first is frame 9. 1 frame of endpoint 1 (02:00:00:00:00:0b) is missing in the capture: the acknowledgements may have been there."},
		{"udp-many", "note: A window of 8 seems to hold throughput from endpoint 1 to endpoint 2 at about 21.8 KB/s"},
	} {
		if got := said(analyze(t, openCapture(t, tt.name))); !strings.Contains(got, tt.want) {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}

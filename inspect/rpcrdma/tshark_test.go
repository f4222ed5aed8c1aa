package rpcrdma_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// headerFields are tshark's fields of a header, in the order in which headerWords has them. A field that is there several times, in one header or in the
// headers of one record, has its values in the order of the octets.
var headerFields = []string{"xid", "version", "flow_control", "msg_type", "reads_count", "writes_count", "reply_count", "position", "segment_count", "rdma_handle", "rdma_length", "rdma_offset"}

// headerWords returns the values of a header by field, as tshark prints them.
func headerWords(h *codec.Header) (all [12][]string) {
	add := func(field int, format string, v any) { all[field] = append(all[field], fmt.Sprintf(format, v)) }
	segments := func(c codec.Chunk) {
		for _, s := range c {
			add(9, "0x%08x", s.Handle)
			add(10, "%d", s.Length)
			add(11, "0x%016x", s.Offset)
		}
	}
	add(0, "0x%08x", h.XID)
	add(1, "%d", h.Version)
	add(2, "%d", h.Credit)
	add(3, "%d", map[codec.Type]int{codec.TypeMsg: 0, codec.TypeNoMsg: 1, codec.TypeError: 4}[h.Type])
	reads := 0
	for i := range h.Reads {
		for range h.Reads[i].Segments {
			add(7, "%d", h.Reads[i].Position)
			reads++
		}
		segments(h.Reads[i].Segments)
	}
	add(4, "%d", reads)
	add(5, "%d", len(h.Writes))
	for _, w := range h.Writes {
		add(8, "%d", len(w))
		segments(w)
	}
	reply := 0
	if h.HasReply {
		reply = 1
		add(8, "%d", len(h.Reply))
		segments(h.Reply)
	}
	add(6, "%d", reply)
	return all
}

// TestHeadersOfTshark checks every header of Linux's captures against tshark, field by field: XID, version, credits, type, and each chunk with its
// positions and segments (RPC1-002, 003, 020, 032).
func TestHeadersOfTshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no tshark in PATH; install it: apt-get install --no-install-recommends tshark")
		}
		t.Skip("no tshark in PATH: headers are not compared with it; apt-get install --no-install-recommends tshark")
	}
	files, err := filepath.Glob(captures + "*.pcap.gz")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	compared, chunks := 0, 0
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".pcap.gz")
		t.Run(name, func(t *testing.T) {
			want := headersOfTshark(t, name)
			got := map[string][12][]string{}
			follow(t, recordsOf(t, name), func(m *rpcrdma.Message) {
				if m.Fault != nil {
					t.Fatalf("record %d: %v", m.Last.Record, m.Fault)
				}
				all := got[fmt.Sprint(m.Last.Record)]
				for i, v := range headerWords(m.Header) {
					all[i] = append(all[i], v...)
				}
				got[fmt.Sprint(m.Last.Record)] = all
				compared++
				chunks += len(m.Header.Reads) + len(m.Header.Writes)
			})
			for record, words := range got {
				for i, field := range headerFields {
					if w := want[record]; w == nil || w[i] != strings.Join(words[i], ",") {
						t.Errorf("record %s: %s is %v, tshark: %q", record, field, words[i], w)
					}
				}
			}
			for record := range want {
				if _, ok := got[record]; !ok {
					t.Errorf("record %s: no header, tshark: %q", record, want[record])
				}
			}
		})
	}
	if compared < 800 || chunks < 60 {
		t.Errorf("%d headers with %d chunks were compared", compared, chunks)
	}
}

// headersOfTshark has tshark read a capture. It returns the values of all fields by record.
func headersOfTshark(t *testing.T, name string) map[string][]string {
	t.Helper()
	f, err := os.Open(captures + name + ".pcap.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	plain, err := os.Create(filepath.Join(home, name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(plain, z); err != nil {
		t.Fatal(err)
	}
	plain.Close()
	args := []string{"-n", "-r", plain.Name(), "-Y", "rpcordma", "-T", "fields", "-e", "frame.number"}
	for _, field := range headerFields {
		args = append(args, "-e", "rpcordma."+field)
	}
	cmd := exec.Command("tshark", args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "WIRESHARK_CONFIG_DIR="+home, "LC_ALL=C.UTF-8", "TZ=UTC")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		record, values, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		all[record] = strings.Split(values, "\t")
	}
	return all
}

package rpcrdma_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// headerFields are tshark's fields of a header, in the order in which headerWords has them. A field that is there several times, in one header or in the
// headers of one record, has its values in the order of the octets.
var headerFields = []string{
	"rpcordma.xid", "rpcordma.version", "rpcordma.flow_control", "rpcordma.msg_type", "rpcordma.reads_count", "rpcordma.writes_count", "rpcordma.reply_count",
	"rpcordma.position", "rpcordma.segment_count", "rpcordma.rdma_handle", "rpcordma.rdma_length", "rpcordma.rdma_offset",
}

// operationNames are those of tshark's operation numbers in Linux's captures (RFC 8881), written down apart from those of the package.
var operationNames = map[string]string{
	"3": "ACCESS", "4": "CLOSE", "5": "COMMIT", "6": "CREATE", "8": "DELEGRETURN", "9": "GETATTR", "10": "GETFH", "15": "LOOKUP", "18": "OPEN", "20": "OPEN_CONFIRM", "22": "PUTFH",
	"24": "PUTROOTFH", "25": "READ", "26": "READDIR", "28": "REMOVE", "29": "RENAME", "30": "RENEW", "32": "SAVEFH", "33": "SECINFO", "34": "SETATTR", "35": "SETCLIENTID", "36": "SETCLIENTID_CONFIRM",
	"38": "WRITE", "42": "EXCHANGE_ID", "43": "CREATE_SESSION", "44": "DESTROY_SESSION", "52": "SECINFO_NO_NAME", "53": "SEQUENCE", "57": "DESTROY_CLIENTID", "58": "RECLAIM_COMPLETE",
}

// requireTshark skips the test where tshark is missing. Where CI is set it fails.
func requireTshark(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no tshark in PATH; install it: apt-get install --no-install-recommends tshark")
	}
	t.Skip("no tshark in PATH: nothing is compared with it; apt-get install --no-install-recommends tshark")
}

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
	requireTshark(t)
	files, err := filepath.Glob(captures + "*.pcap.gz")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	compared, chunks := 0, 0
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".pcap.gz")
		t.Run(name, func(t *testing.T) {
			want := ofTshark(t, name, "rpcordma", headerFields...)
			got := map[string][12][]string{}
			follow(t, records.Of(t, captures+name+".pcap.gz"), func(m *rpcrdma.Message) {
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

// TestOperationsOfTshark checks the operations of every COMPOUND of Linux's captures, its minor version, and the status of its results, against tshark.
func TestOperationsOfTshark(t *testing.T) {
	requireTshark(t)
	compared := 0
	for _, name := range []string{"v4.0-basic", "v4.1-basic", "v4.2-basic", "v42-readdir"} {
		want := ofTshark(t, name, "rpc.programversion == 4 and nfs.opcode", "nfs.opcode", "nfs.minorversion", "nfs.nfsstat4")
		follow(t, records.Of(t, captures+name+".pcap.gz"), func(m *rpcrdma.Message) {
			w := want[fmt.Sprint(m.Last.Record)]
			if m.Call.Procedure == 0 || w == nil && len(m.Header.Reads)+len(m.Header.Writes) > 0 { // tshark has a Call with a Read chunk where it was fetched
				return
			}
			k := m.Call.Compound
			if w == nil || k == nil {
				t.Fatalf("%s, record %d: %+v, tshark: %q", name, m.Last.Record, k, w)
			}
			var codes []string
			for code := range strings.SplitSeq(w[0], ",") {
				codes = append(codes, operationNames[code])
			}
			got := k.Operations
			if m.Kind == rpcrdma.ReplyKind {
				statuses := strings.Split(w[2], ",")
				if m.Status.Refused() {
					got = got[:slices.Index(got, m.Status.At)+1]
				}
				if fmt.Sprint(m.Status.Result) != statuses[0] {
					t.Errorf("%s, record %d: status %d, tshark: %s", name, m.Last.Record, m.Status.Result, statuses[0])
				}
			} else if fmt.Sprint(k.Minor) != w[1] {
				t.Errorf("%s, record %d: minor version %d, tshark: %s", name, m.Last.Record, k.Minor, w[1])
			}
			if m.Kind == rpcrdma.ReplyKind && len(m.Header.Writes) > 0 { // tshark reads such a Reply twice
				codes = codes[:len(codes)/2]
			}
			if k.Count != len(k.Operations) || !slices.Equal(got, codes) {
				t.Errorf("%s, record %d: %v of %d, tshark: %v", name, m.Last.Record, got, k.Count, codes)
			}
			compared++
		})
	}
	if compared < 290 {
		t.Errorf("%d COMPOUNDs were compared", compared)
	}
}

// ofTshark has tshark read a capture. It returns the values of fields of the records that a filter takes.
func ofTshark(t *testing.T, name, filter string, fields ...string) map[string][]string {
	t.Helper()
	home := t.TempDir()
	args := []string{"-n", "-r", captures + name + ".pcap.gz", "-Y", filter, "-T", "fields", "-e", "frame.number"}
	for _, field := range fields {
		args = append(args, "-e", field)
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

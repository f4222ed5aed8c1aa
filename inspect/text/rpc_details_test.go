package text_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/inspect/text"
)

// TestRPCDetails checks what -v says of Calls and Replies of Linux's client and server: the user, names, handles, offsets, counts, how safe
// data are to be, verifiers, attributes, and what a chunk moved.
func TestRPCDetails(t *testing.T) {
	for name, lines := range map[string][]string{
		"v3-size-65536": {
			"  credential: flavor AUTH_SYS, uid 0, gid 0, machine \"siw3\"\n  arguments: dir 0100010000000000, name \"r\"\n",
			"  arguments: fh 0100010100000000991d63cfc202000000000000, offset 0, count 16384\n",
			", count 16384, eof false, data in chunks 16384\n",
			", offset 0, count 65536, stable UNSTABLE, data in chunks 65536\n",
			", count 65536, stable UNSTABLE, verifier 0x",
			"how UNCHECKED, set (",
			"arguments: fh 0100010000000000, access READ+LOOKUP+MODIFY+EXTEND+DELETE\n",
		},
		"v3-symlink-acl": {
			"  arguments: dir 0100010000000000, name \"sl\"\n",
			"  results: dir attributes (type directory, mode 0777, links 3, uid 0, gid 0, size 220, fileid 1, mtime 2026-11-26T17:45:20.328010148Z)\n", // of NFS3ERR_NOENT
			"name \"sl\", set (mode 0777), target \"aaaa",
			", target \"" + strings.Repeat("a", 1000) + "\"\n",
		},
		"v3-readdir": {", cookie 0, verifier 0x0000000000000000, dircount ", "maxcount", "entries "},
	} {
		all := strings.Join(rpcLines(t, name, &text.Printer{Style: text.Fields}, &text.Filter{}), "")
		for _, want := range lines {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
	}
}

// TestRPCDetailsJSON checks the keys of the same.
func TestRPCDetailsJSON(t *testing.T) {
	n := 0
	for _, line := range rpcLines(t, "v3-size-65536", &text.Printer{Style: text.JSON}, &text.Filter{XIDs: []uint32{0xd567c810, 0xdb67c810}}) {
		var m struct {
			XID        uint32
			XIDHex     string `json:"xid_hex"`
			Message    string
			Credential struct {
				Flavor, Machine string
				UID, GID        int
			}
			Arguments struct {
				FH, Stable    string
				Offset, Count uint64
			}
			Results struct {
				Count      int
				Verifier   string
				EOF        string
				Attributes struct{ Type, Mode, Mtime string }
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		n++
		write := m.XID == 0xdb67c810
		switch {
		case m.XIDHex != map[bool]string{false: "0xd567c810", true: "0xdb67c810"}[write]:
			t.Errorf("%s", line)
		case m.Message == "Call" && (m.Credential.Flavor != "AUTH_SYS" || m.Credential.Machine != "siw3" || m.Arguments.FH == "" || m.Arguments.Count == 0 || write != (m.Arguments.Stable == "UNSTABLE")):
			t.Errorf("%s", line)
		case m.Message == "Reply" && (m.Results.Count == 0 || m.Results.Attributes.Type != "file" || write != (m.Results.Verifier != "") || write == (m.Results.EOF == "false")):
			t.Errorf("%s", line)
		}
	}
	if n != 4 {
		t.Errorf("%d messages", n)
	}
}

// TestRPCOctets checks that -x has the octets of a Send, and those of a Reply that RDMA Writes placed as a whole.
func TestRPCOctets(t *testing.T) {
	f := text.Filter{XIDs: []uint32{0xd967c810}} // GETACL, with a Reply chunk of 136 octets
	all := strings.Join(rpcLines(t, "v3-size-65536", &text.Printer{Style: text.Fields, Bytes: true}, &f), "")
	for _, want := range []string{
		"  the Send, ", "    0000  d9 67 c8 10 00 00 00 01 00 00 00 40 00 00 00 01  .g.........@....\n",
		"  the Reply, as RDMA Writes moved it, 136 bytes:\n    0000  d9 67 c8 10 00 00 00 01 ",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	for _, line := range rpcLines(t, "v3-size-65536", &text.Printer{Style: text.JSON, Bytes: true}, &f) {
		if !json.Valid([]byte(line)) || !strings.Contains(line, `"data":"d967c81000000001`) || strings.Contains(line, `"message":"Reply"`) != strings.Contains(line, `"reply_data":"d967c81000000001`) {
			t.Error(line)
		}
	}
}

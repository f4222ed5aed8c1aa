package rpcrdma_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
)

const captures = "../../rpcrdma/testdata/"

// follow reads records, and returns the connections of RPC-over-RDMA among them.
func follow(t testing.TB, records []capture.Record, each func(*rpcrdma.Message)) (all []*rpcrdma.Connection) {
	t.Helper()
	d := rpcrdma.New()
	streams := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error {
		last := d.Of(e.Conn)
		if m := d.Event(e); m != nil {
			each(m)
		}
		if e.Kind == iwarp.Gone && last != nil {
			all = append(all, last)
		}
		return nil
	})
	for i := range records {
		if err := streams.Add(i+1, &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := streams.End(); err != nil {
		t.Fatal(err)
	}
	return all
}

// listed is what another decoder says of a message: tshark, in the list at the end of each capture's .txt.
type listed struct {
	name   string // of the procedure; of a COMPOUND empty
	reply  bool
	callIn int
}

// lineOfTshark finds a line of tshark's list of RPCs: record, protocol, and what it is.
var lineOfTshark = regexp.MustCompile(`(?m)^ *(\d+) +[\d.]+ +\S+ → \S+ +(NFS|NFSACL) \d+ V(\d) (.*)$`)

// listOf reads what tshark says of the messages of a capture, by record.
func listOf(t *testing.T, name string) map[int]listed {
	b, err := os.ReadFile(captures + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]listed{}
	for _, m := range lineOfTshark.FindAllSubmatch(b, -1) {
		record, _ := strconv.Atoi(string(m[1]))
		l := listed{name: string(m[2]) + " " + string(m[3]) + " "}
		words := strings.Fields(string(m[4]))
		switch {
		case words[0] == "Call" || words[0] == "Reply":
			l.name += "COMPOUND"
		default:
			l.name += words[0]
		}
		if _, in, ok := strings.Cut(string(m[4]), "Reply (Call In "); ok {
			l.reply = true
			l.callIn, _ = strconv.Atoi(in[:strings.IndexByte(in, ')')])
		}
		all[record] = l
	}
	return all
}

// TestCaptures checks, in all captures of Linux, that every message is read, that every Call has its Reply, and that procedures, and which Reply
// is of which Call, are what tshark says, which wrote the list before there was this package (RPC1-002, 010, 028, 032).
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob(captures + "*.pcap.gz")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	compared := 0
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".pcap.gz")
		t.Run(name, func(t *testing.T) {
			want := listOf(t, name)
			calls, replies := 0, 0
			all := follow(t, records.Of(t, captures+name+".pcap.gz"), func(m *rpcrdma.Message) {
				if m.Fault != nil || m.Wrong != "" || m.Call == nil || m.Reverse || !m.Call.Known {
					t.Fatalf("record %d: %v %v %v %+v", m.Last.Record, m.Kind, m.Fault, m.Wrong, m.Call)
				}
				got := listed{name: m.Call.Name(), reply: m.Kind == rpcrdma.ReplyKind}
				if m.Call.Compound != nil { // its operations are compared elsewhere
					got.name = "NFS 4 COMPOUND"
				}
				switch m.Kind {
				case rpcrdma.CallKind:
					calls++
				case rpcrdma.ReplyKind:
					replies++
					got.callIn = m.Call.At.Record
					if !m.Status.Success() {
						t.Errorf("record %d: %v", m.Last.Record, m.Status.String())
					}
				}
				l, ok := want[m.Last.Record]
				if !ok {
					if len(m.Header.Reads) == 0 && m.Call.Fetched == 0 && len(want) > 0 { // else it has the Call where it was fetched, and not with its Reply
						t.Errorf("record %d: tshark has no RPC here, and not %+v", m.Last.Record, got)
					}
					return
				}
				compared++
				if m.Call.Fetched > 0 && got.callIn < l.callIn && l.callIn < m.Last.Record { // likewise
					l.callIn = got.callIn
				}
				if got != l {
					t.Errorf("record %d: %+v, tshark: %+v", m.Last.Record, got, l)
				}
			})
			if calls != replies || calls == 0 {
				t.Errorf("%d Calls, %d Replies", calls, replies)
			}
			for _, c := range all {
				for w, f := range c.Found {
					if f.N > 0 && rpcrdma.What(w) != rpcrdma.SeveralTags && rpcrdma.What(w) != rpcrdma.InlineData {
						t.Errorf("found %d: %+v", w, f)
					}
				}
				client, server := &c.Sides[c.Client], &c.Sides[1-c.Client]
				if !c.Known || client.Calls == 0 || server.Calls != 0 || client.Grant != 64 || client.InUse < 1 || client.InUse > 64 || len(c.Errors) > 0 {
					t.Errorf("client %+v, server %+v, %v", client, server, c.Errors)
				}
			}
		})
	}
	if compared < 750 {
		t.Errorf("%d messages were compared", compared)
	}
}

// TestOctetsMoved checks what RDMA Writes brought against what Linux's client counts in /proc/self/mountstats: Calls, and octets of Replies that it did
// not copy.
func TestOctetsMoved(t *testing.T) {
	for _, name := range []string{"v3-idle", "v3-server-restart"} {
		b, err := os.ReadFile(captures + name + ".run")
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.Lines(string(b)) {
			if words := strings.Fields(line); len(words) > 16 && words[0] == "xprt:" {
				want = append(want, words[7]+" Calls, "+words[16]+" octets placed")
			}
		}
		var got []string
		calls, placed := 0, uint64(0)
		follow(t, records.Of(t, captures+name+".pcap.gz"), func(m *rpcrdma.Message) {
			if m.Kind == rpcrdma.CallKind {
				calls++
			} else if m.Kind == rpcrdma.ReplyKind && m.Call.Placed > 0 {
				placed += m.Call.Placed
				got = append(got, fmt.Sprintf("%d Calls, %d octets placed", calls, placed))
			}
		})
		if !slices.Equal(got, want) || len(got) != 2 {
			t.Errorf("%s: %q, Linux counts %q", name, got, want)
		}
	}
}

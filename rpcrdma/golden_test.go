package rpcrdma

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
)

// TestCaptures checks that every header which Linux has sent as client and as server decodes to what another decoder has found,
// and encodes to the same octets; the private data of set-up also (RPC1-003, 020, 032).
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pcap.gz")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	total := 0
	for _, file := range files {
		name := strings.TrimSuffix(file, ".pcap.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			want := listed(t, name+".txt")
			got := headersOf(t, file)
			if got, want := strings.Join(got, "\n"), strings.Join(want, "\n"); got != want {
				t.Errorf("headers\n%s\nwant\n%s", got, want)
			}
			total += len(got)
		})
	}
	if total < 800 {
		t.Errorf("%d headers in all captures", total)
	}
}

// ofHeader finds what the other decoder says of a Send, its direction first. It reads no header of a Send in two segments, of which there is one.
var ofHeader = regexp.MustCompile(`(?m)^ *\d+ (?:\d+:)?(I>R|R>I) Send.* (len=\d+)(?: \| rpcrdma (.*))?$`)

// listed returns what the other decoder says of the headers of a capture.
func listed(t *testing.T, file string) (all []string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ofHeader.FindAllSubmatch(b, -1) {
		all = append(all, fmt.Sprintf("%s %s %s", m[1], m[2], m[3]))
	}
	return all
}

// headersOf decodes the headers of a capture.
func headersOf(t *testing.T, file string) (all []string) {
	messages := map[*iwarp.Connection]*[2][]byte{} // those that have begun
	decoder := NewDecoder(DefaultLimits())
	emit := func(e *iwarp.Event) error {
		if e.Kind == iwarp.SetUp {
			checkPrivate(t, e.SetUp.Private)
		}
		if e.Kind != iwarp.Frame || e.Opcode != rdmap.Send && e.Opcode != rdmap.SendInvalidate {
			return nil
		}
		m := messages[e.Conn]
		if m == nil {
			m = new([2][]byte)
			messages[e.Conn] = m
		}
		m[e.Way] = append(m[e.Way], e.Payload...)
		if e.Header.Last {
			said := checkMessage(t, decoder, m[e.Way])
			if e.Segments > 1 {
				said = ""
			}
			all = append(all, fmt.Sprintf("%s len=%d %s", direction(e.Conn, e.Way), len(m[e.Way]), said))
			m[e.Way] = m[e.Way][:0]
		}
		return nil
	}
	d := iwarp.New(iwarp.Options{}, emit)
	for i, r := range records.Of(t, file) {
		if err := d.Add(i+1, &r); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	return all
}

func direction(c *iwarp.Connection, w tcp.Way) string {
	if w == c.Initiator {
		return "I>R"
	}
	return "R>I"
}

// checkPrivate reads what Linux says of itself.
func checkPrivate(t *testing.T, b []byte) {
	p := ParsePrivate(b)
	if p.SendSize != 4096 || p.ReceiveSize != 4096 || !bytes.Equal(p.Append(nil), b) {
		t.Errorf("private data %x are read as %+v", b, p)
	}
}

// checkMessage decodes a message, encodes its header again, and says in the words of the other decoder what it is.
func checkMessage(t *testing.T, d *Decoder, b []byte) string {
	var h Header
	payload, err := d.Decode(b, &h)
	if err != nil {
		t.Errorf("%x: %v", b, err)
		return ""
	}
	n := len(b) - len(payload)
	if again := h.Append(nil); !bytes.Equal(again, b[:n]) || h.Size() != n {
		t.Errorf("encoded again in %d octets:\n%x, want\n%x", h.Size(), again, b[:n])
	}
	if length, ok := h.Unreduced(len(payload)); !ok || length%wordSize != 0 && len(h.Reads) > 0 {
		t.Errorf("%d octets of payload and %+v: %d, %v", len(payload), h.Reads, length, ok)
	}
	chunk := func(c Chunk) string {
		var parts []string
		for _, s := range c {
			parts = append(parts, fmt.Sprintf("0x%x:%d@0x%x", s.Handle, s.Length, s.Offset))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	reads, writes, reply := "-", "-", "-"
	for _, r := range h.Reads {
		for _, s := range r.Segments {
			reads = strings.TrimPrefix(reads+fmt.Sprintf(",pos%d/0x%x:%d@0x%x", r.Position, s.Handle, s.Length, s.Offset), "-,")
		}
	}
	for _, w := range h.Writes {
		writes = strings.TrimPrefix(writes+chunk(w), "-")
	}
	if h.HasReply {
		reply = chunk(h.Reply)
	}
	return fmt.Sprintf("xid=0x%x credits=%d type=%v read=%s write=%s reply=%s rpc=%d", h.XID, h.Credit, h.Type, reads, writes, reply, len(payload))
}

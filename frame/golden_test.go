package frame

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file in testdata has been derived from the layout tables by hand. The
// bytes before prefix and the trailing ones are not part of the frame.
var goldens = []struct {
	file             string
	prefix, trailing int
	header           Header
	msgs             []message
}{
	{file: "minimal", header: Header{Dst: 2, Src: 1, Seq: 7}},
	{file: "ack-only", trailing: 36, header: Header{Dst: 0x21, Src: 0x43, Seq: 1, AckStart: 1, AckCount: 2}},
	{file: "ack-checked", trailing: 36, header: Header{Dst: 0x21, Src: 0x43, Seq: 1, AckStart: 1, AckCount: 2, Flags: 2}},
	{file: "ack-wrap", header: Header{Dst: 0x21, Src: 0x43, Seq: 6, AckStart: 65535, AckCount: 2}},
	{file: "ack-max", header: Header{Dst: 1, Src: 2, Seq: 65535, AckStart: 65281, AckCount: 255}},
	{
		file: "completion-only", trailing: 12,
		header: Header{Dst: 2, Src: 1, Seq: 1, Flags: 1},
		msgs:   []message{{Message: Message{Txn: 1, CompletionAddr: 0x40, CompletionValue: 1, Index: 1}}},
	},
	{
		file: "count0-data", prefix: 2,
		header: Header{Dst: 2, Src: 1, Seq: 1, Flags: 1},
		msgs: []message{{
			Message{Txn: 1, CompletionAddr: 0x40, CompletionValue: 1, Index: 1, Addr: 0x10000, Len: 8},
			[]byte{1, 8, 15, 22, 29, 36, 43, 50},
		}},
	},
	{
		file: "two-messages", prefix: 2,
		header: Header{Dst: 2, Src: 1, Seq: 0x1234, AckStart: 10, AckCount: 3, Flags: 1},
		msgs: []message{{
			Message{Txn: 0x11, CompletionAddr: 0x80, CompletionValue: 0xDEADBEEF, Count: 2, Index: 1, Addr: 0x10000, Len: 5},
			[]byte{0xA1, 0xA2, 0xA3, 0xA4, 0xA5},
		}, {
			Message{Txn: 0x11, CompletionAddr: 0x80, CompletionValue: 0xDEADBEEF, Count: 2, Index: 2, Addr: 0x8000, Len: 3},
			[]byte{0xB1, 0xB2, 0xB3},
		}},
	},
	{
		file:   "plain-write",
		header: Header{Dst: 0x21, Src: 0x43, Seq: 2, AckStart: 3, Flags: 1},
		msgs:   []message{{plain(1, 0x1000, 32), ascending(0, 32)}},
	},
	{
		file:   "coalesced",
		header: Header{Dst: 0x21, Src: 0x43, Seq: 5, AckStart: 21, Flags: 1},
		msgs: []message{
			{Message{Txn: 2, CompletionAddr: 0x100, CompletionValue: 0x31, Count: 1, Index: 1, Addr: 0x1000, Len: 32}, ascending(0, 32)},
			{plain(3, 0x2000, 12), ascending(0x20, 12)},
			{plain(4, 0x3000, 8), ascending(0x30, 8)},
		},
	},
	{
		file: "doorbell", trailing: 8,
		header: Header{Dst: 1, Src: 3, Seq: 0, AckStart: 15, AckCount: 12, Flags: 1},
		msgs:   []message{{plain(0xFFFFFFFF, 0x4064, 4), []byte{1, 0, 0, 0}}},
	},
	{
		file:   "max-fields",
		header: Header{Dst: 65535, Src: 65535, Seq: 65535, AckStart: 65535, AckCount: 255, Flags: 255},
		msgs: []message{{
			Message{Txn: 0xFFFFFFFF, CompletionAddr: 0xFFFFFFFF, CompletionValue: 0xFFFFFFFE, Count: 65535, Index: 65535, Addr: 0xFFFFFFFF, Len: 1, Type: 255},
			[]byte{0x5A},
		}},
	},
}

func plain(txn, addr uint32, n uint16) Message {
	return Message{Txn: txn, CompletionAddr: NoCompletion, CompletionValue: NoCompletion, Count: 1, Index: 1, Addr: addr, Len: n}
}

func ascending(from, n int) (b []byte) {
	for i := range n {
		b = append(b, byte(from+i))
	}
	return b
}

// readHex reads hexadecimal bytes; # starts a comment.
func readHex(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

func TestGoldenDecode(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.file, func(t *testing.T) {
			b := readHex(t, g.file)[g.prefix:]
			f, err := Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if f.Header != g.header {
				t.Errorf("header %+v, want %+v", f.Header, g.header)
			}
			if got := collect(f); f.Messages() != len(g.msgs) || !sameMessages(got, g.msgs) {
				t.Errorf("messages %+v, want %+v", got, g.msgs)
			}
			if len(g.msgs) > 0 && len(f.Body()) != len(b)-HeaderSize-g.trailing {
				t.Errorf("body of %d bytes", len(f.Body()))
			}
		})
	}
}

func TestGoldenEncode(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.file, func(t *testing.T) {
			b := readHex(t, g.file)
			want := b[g.prefix : len(b)-g.trailing]
			if got := write(t, g.header, g.msgs...); !bytes.Equal(got, want) {
				t.Errorf("wrote\n% x, want\n% x", got, want)
			}
		})
	}
}

// DGRDMA-021
func TestGoldenTruncated(t *testing.T) {
	for _, g := range goldens {
		b := readHex(t, g.file)
		b = b[g.prefix : len(b)-g.trailing]
		for n := range b {
			if _, err := Parse(b[:n:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are accepted", g.file, n, len(b))
			}
		}
	}
}

func TestGoldenFilesAllUsed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(goldens) {
		t.Errorf("%d files, %d cases", len(files), len(goldens))
	}
}

package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
)

func TestPlain(t *testing.T) {
	for s, want := range map[string]string{
		"":                          "",
		"trace.pcap":                "trace.pcap",
		"Übertragung 1 – \\x \"y\"": "Übertragung 1 – \\x \"y\"",
		"\ufffd":                    "\ufffd",
		"a\nb\r\t\x00":              `a\nb\r\t\x00`,
		"\x1b[2J\x7f\u009b":         `\x1b[2J\x7f\u009b`,
		"\xff\xc3":                  `\xff\xc3`,
		"a\u202eb\u2066c\u200b":     `a\u202eb\u2066c\u200b`,
		"\U000e0001":                `\U000e0001`,
	} {
		if got := text.Plain(s); got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
}

// TestNamesInOneLine checks in each style that the names of a file and of an interface, in which anything can be, make no lines and send nothing to a terminal; and that JSON has them as they are (F6).
func TestNamesInOneLine(t *testing.T) {
	const hostile = "x\n\x1b[2J\u202e\u009b\r\U000e0001\x7fy"
	b := make([]byte, frame.HeaderSize)
	(&frame.Header{Src: 1, Dst: 2, Seq: 1, AckStart: 1, AckCount: 1}).Put(b)
	p := &captured.Packet{Packet: capture.Packet{Record: 1, Time: time.Unix(1, 0), Name: hostile, Data: b, Length: len(b)}}
	var v text.View
	v.Decode(p)
	for _, style := range []text.Style{text.Line, text.Fields, text.JSON} {
		out := string((&text.Printer{Style: style, File: hostile, Interfaces: true}).Append(nil, &v))
		plain := strings.ReplaceAll(out, "\n", "")
		if text.Plain(plain) != plain || !utf8.ValidString(out) {
			t.Errorf("style %d prints %q", style, out)
		}
		if style != text.Fields && strings.Count(out, "\n") != 1 || strings.Contains(out, "x\n") {
			t.Errorf("style %d has more lines: %q", style, out)
		}
		if style != text.JSON {
			continue
		}
		var got struct {
			File string
			Name string `json:"interface_name"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.File != hostile || got.Name != hostile {
			t.Errorf("%v: JSON has %q and %q of %q", err, got.File, got.Name, out)
		}
	}
}

package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
)

// TestOneOfAKind: nothing says "1 frames".
func TestOneOfAKind(t *testing.T) {
	several := regexp.MustCompile(`(^|[^0-9.,])1 [a-z]+s\b`)
	e := entry{skipped: 1}
	for name, print := range map[string]func(io.Writer) error{
		"bench": func(w io.Writer) error {
			return (&benchResult{benchLoad: benchLoad{Peers: 1, Outstanding: 1, Size: 1, ServerBytesPerPeer: 1}, Duplicates: 1, TransactionsPerS: 1.2}).print(w)
		},
		"bench --link": func(w io.Writer) error {
			return (&linkResult{Buffers: 1, Size: 1, MessagesPS: 0.9, Retransmits: 1}).print(w)
		},
		"ping": func(w io.Writer) error { return (&pingResult{N: 1, Bytes: pingBytes}).print(w, false) },
		"write": func(w io.Writer) error {
			return (&written{Bytes: 1, Transactions: 1, SentAgain: 1, Seconds: 1, Acknowledged: true}).print(w, false)
		},
		"serve": func(w io.Writer) error { _, err := io.WriteString(w, e.text()); return err },
	} {
		var b strings.Builder
		if err := print(&b); err != nil || b.Len() == 0 || several.MatchString(b.String()) {
			t.Errorf("%s: %v: %s", name, err, b.String())
		}
	}
}

// TestOtherNamesOfFlags: help and man pages name what they take as the flag does whose other names they are.
func TestOtherNamesOfFlags(t *testing.T) {
	same := regexp.MustCompile(`^the same as --?(\w+)`)
	seen := ""
	for _, c := range commands {
		fs, _ := c.flagSet()
		takes := make(map[string]string)
		for _, f := range flagsOf(fs) {
			name, value, _ := strings.Cut(f.names, " ")
			takes[strings.TrimLeft(name, "-")] = value
		}
		for _, f := range flagsOf(fs) {
			name, value, _ := strings.Cut(f.names, " ")
			if of := same.FindStringSubmatch(f.text); of != nil {
				seen += " " + c.name + " " + name
				if long, there := takes[of[1]]; !there || value != long {
					t.Errorf("%s %s takes %q, and --%s %q", c.name, name, value, of[1], long)
				}
			}
		}
	}
	for _, want := range []string{" bench -t", " ping -c", " ping -i", " rping -C", " rping -S", " rping -v"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not seen in %q", want, seen)
		}
	}
}

// TestOneSystemOfUnits: no line that is about bytes a second has powers of two beside them.
func TestOneSystemOfUnits(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"demo --size 1M", "demo --lossy --size 1M", "bench --seconds 0.2"} {
		code, out, stderr := runFor(t, t.Context(), strings.Fields(args)...)
		if code != exitOK || !strings.Contains(out, " MB/s") || strings.Contains(out, "iB") {
			t.Errorf("%s: code %d: %s%s", args, code, out, stderr)
		}
	}
}

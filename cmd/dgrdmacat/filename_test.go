package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHostileNames gives each command a name that would clear the screen, turn text round and begin lines of its own, and checks that no output does (F6).
func TestHostileNames(t *testing.T) {
	const hostile = "x\nINJECTED\x1b[2J\xff\u202e\u009b31m\r\x7fy"
	capture, err := os.ReadFile(captures + "udp-single.pcap")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), hostile)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	whole, cut, damaged := file(hostile, capture), file("cut"+hostile, capture[:len(capture)-3]), file("damaged"+hostile, append(capture[:len(capture):len(capture)], 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	absent := filepath.Join(dir, "absent"+hostile)
	for _, args := range [][]string{
		{"decode", whole, whole}, {"decode", "-v", whole, whole}, {"decode", "--json", whole, whole}, {"decode", cut}, {"decode", damaged}, {"decode", absent}, {"decode", dir},
		{"decode", "-w", whole, whole}, {"decode", "-i", hostile}, {"decode", "-i", "lo", "--bpf", absent}, {"decode", "-i", "lo", "--bpf", whole}, {"decode", "--op", hostile, whole},
		{"report", whole}, {"report", whole, "-o", absent + ".html"}, {"report", whole, "-o", whole}, {"report", "--json", whole}, {"report", "--flow", "9", whole},
		{"report", cut, "-o", absent + ".cut"}, {"report", damaged, "-o", absent + ".damaged"}, {"report", absent + "."}, {"report", dir},
		{"send", absent, "udp:127.0.0.1:9"}, {"send", dir, "udp:127.0.0.1:9"}, {"send", whole, hostile}, {"listen", hostile}, {"listen", "udp:127.0.0.1:0", "--file", whole}, {"listen", "udp:127.0.0.1:0", "-o", dir},
		{"write", "--to", hostile, "--file", whole}, {"write", "--to", "udp:127.0.0.1:9", "--file", absent}, {"write", "--to", "udp:127.0.0.1:9", "--key", absent}, {"serve", "--file", dir, "udp:127.0.0.1:0"},
		{"serve", "--url-file", absent + "/x", "udp:127.0.0.1:0"}, {"serve", "--key", absent, "udp:127.0.0.1:0"}, {"serve", "--peer", hostile, "udp:127.0.0.1:0"}, {"ping", "--to", hostile}, {"ping", "--to", "tcp:127.0.0.1:1", "--op", hostile},
		{"bench", "--to", hostile}, {"bench", "--compare", hostile}, {"bench", "--verify", hostile}, {"top", hostile}, {"url", hostile}, {"url", "udp:10.0.0.1:1;" + hostile}, {"man", hostile}, {"key", whole}, {"key", absent + "/x"}, {hostile}, {"demo", hostile},
		{"decode", "--" + hostile}, {"decode", "--" + hostile + "=" + hostile}, {"rping", "--to", hostile}, {"completion", hostile},
	} {
		code, stdout, stderr := runOnce(t.Context(), args...)
		for _, out := range []string{stdout, stderr} {
			for rest := out; rest != ""; {
				r, n := utf8.DecodeRuneInString(rest)
				if r == utf8.RuneError && n == 1 || r != '\n' && r != '\t' && !strconv.IsPrint(r) {
					t.Errorf("%q, code %d: output has %q: %.400q", args, code, rest[:n], out)
					break
				}
				rest = rest[n:]
			}
			if strings.HasPrefix(out, "INJECTED") || strings.Contains(out, "\nINJECTED") {
				t.Errorf("%q, code %d: a line of the name: %.400q", args, code, out)
			}
		}
	}
}

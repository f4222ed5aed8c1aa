package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/url"
)

// addressOf returns the string of a peer that ends behind its port.
func addressOf(t *testing.T, complete string) string {
	t.Helper()
	u, err := url.Parse(complete)
	if err != nil {
		t.Fatal(err)
	}
	return "udp:" + u.Addr.String()
}

// TestPeerByAddress: each command that dials takes udp:HOST:PORT for what the other side printed.
func TestPeerByAddress(t *testing.T) {
	served, _, end := servingMemory(t, "--accept", "any", "--size", "64k", "udp:127.0.0.1")
	at := addressOf(t, served)
	mustWrite(t, at, "--addr", "0x1000", "--text", "hello", "--flag-addr", "0x40", "--flag-value", "1")
	mustWrite(t, at+"?mtu=1400", "--local", "udp:0", "--addr", "0x1000", "--text", "hello")
	if code, out, stderr := runFor(t, t.Context(), "write", "--to", at, "--addr", "65535", "--text", "hello"); code != exitUsage ||
		!strings.Contains(stderr, "the peer's memory ends at 0x10000") {
		t.Errorf("behind the end: %d, %s%s", code, out, stderr)
	}
	if code, _, stderr := runFor(t, t.Context(), "write", "--to", at, "--addr", "0", "--text", "hello", "--flag-addr", "0", "--profile", "fpga"); code != exitError ||
		!strings.Contains(stderr, "peers of the kind fpga are not asked: give the complete string") {
		t.Errorf("an FPGA: %d, %s", code, stderr)
	}
	u, err := url.Parse(served)
	if err != nil {
		t.Fatal(err)
	}
	u.ID = 9 // which no endpoint has that was given none
	other := u.String()
	if code, _, stderr := runFor(t, t.Context(), "write", "--to", other, "--addr", "0", "--text", "x"); code != exitError || !strings.Contains(stderr, ", not 9; was it started anew with another id?") {
		t.Errorf("%s: %d, %s", other, code, stderr)
	}
	if code, _, stderr := runFor(t, t.Context(), "send", os.Args[0], at); code != exitError || !strings.Contains(stderr, "it serves memory, not link") {
		t.Errorf("send: %d, %s", code, stderr)
	}
	if code, stderr := end(); code != exitOK {
		t.Errorf("serve: %d, %s", code, stderr)
	}

	for _, mode := range []string{"", "--link"} {
		url, end := serving(t, t.Context(), "ping --once --serve udp:127.0.0.1 "+mode)
		if got := runJSON(t, "ping --json -n 20 --to "+addressOf(t, url)+" "+mode); got["n"] != 20.0 {
			t.Errorf("ping %s: %v", mode, got)
		}
		if code, stderr := end(); code != exitOK {
			t.Errorf("ping %s: %d, %s", mode, code, stderr)
		}
		ctx, cancel := context.WithCancel(t.Context())
		url, end = serving(t, ctx, "bench --serve udp:127.0.0.1 "+mode)
		runJSON(t, "bench --json --seconds 0.05 --size 4096 --to "+addressOf(t, url)+" "+mode)
		cancel()
		end()
	}

	data := bytes.Repeat([]byte("data"), 1000)
	into := filepath.Join(t.TempDir(), "out")
	received, end := serving(t, t.Context(), "listen -o "+into+" udp:127.0.0.1")
	if code, out, stderr := runFor(t, t.Context(), "send", fileWith(t, data), addressOf(t, received)); code != exitOK {
		t.Errorf("send: %d, %s%s", code, out, stderr)
	}
	if code, stderr := end(); code != exitOK {
		t.Errorf("listen: %d, %s", code, stderr)
	}
	if got, err := os.ReadFile(into); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
}

// TestNobodyInJSON: the object is there, with the error, where nobody was found.
func TestNobodyInJSON(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"ping --to", "ping --link --to", "bench --to", "bench --link --to", "write --addr 0 --text x --to"} {
		code, out, stderr := runFor(t, t.Context(), append(strings.Fields(args), "udp:127.0.0.1:9"+soon, "--json")...)
		var got struct{ Version, Error string }
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitError || got.Version == "" || !strings.HasSuffix(stderr, ": "+got.Error+"\n") {
			t.Errorf("%s: %d, %s%s; %v", args, code, out, stderr, err)
		}
	}
}

// TestNobodyAtTheAddress: who does not answer is said to be what was asked.
func TestNobodyAtTheAddress(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"write --addr 0 --text x --to udp:127.0.0.1:9" + soon: "nobody there answers within 300ms; is it there, and does it accept peers without a key?",
		"ping --link --to udp:127.0.0.1:9" + soon:             "nobody there answers within 300ms",
		"send " + os.Args[0] + " udp:127.0.0.1:9" + soon:      "no answer from udp:127.0.0.1:9",
	} {
		if code, out, stderr := runFor(t, t.Context(), strings.Fields(args)...); code != exitError || out != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d, %s%s", args, code, out, stderr)
		}
	}
}

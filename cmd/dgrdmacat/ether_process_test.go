package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestEtherServeAndWrite: memory is written over Ethernet, by our own kind and as
// OpenCPI's drivers do. (Two that take each other for a card wait for each other's
// acknowledgements: quirk F13.)
func TestEtherServeAndWrite(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	data := bytes.Repeat([]byte("0123456789abcde\n"), 5000)
	for _, profile := range []string{"native", "opencpi"} {
		t.Run(profile, func(t *testing.T) {
			pair := netns.NewPair(t, 1500)
			dump, file := filepath.Join(t.TempDir(), "dump"), filepath.Join(t.TempDir(), "url")
			server := asProcess(t, "serve", "--accept", "any", "--size", "1M", "--watch", "0x40", "--until", "0x40=3", "--dump", dump,
				"--url-file", file, "ether:"+netns.Device+"?profile="+profile)
			pair[1].In(func() { server.start() })
			args := []string{"write", "--to", server.url(file), "--local", "ether:" + netns.Device, "--profile", profile,
				"--addr", "0x1000", "--file", fileOf(t, data), "--flag-addr", "0x40", "--flag-step", "1", "--count", "3"}
			if profile != "native" {
				args = append(args, "--id", "5")
			}
			client := asProcess(t, args...)
			pair[0].In(func() { client.start() })
			if code := client.code(); code != exitOK {
				t.Errorf("write: code %d: %s%s", code, &client.out, &client.err)
			}
			if code := server.code(); code != exitOK || !strings.Contains(server.out.String(), "0x00000040 = 0x00000003 (3) by peer") {
				t.Errorf("serve: code %d: %s%s", code, &server.out, &server.err)
			}
			for _, p := range []*process{client, server} {
				if said := "sending from " + netns.Device + " by AF_XDP: captures on this machine do not show it, unless xdp=off\n"; strings.Count(p.err.String(), said) != 1 {
					t.Errorf("how frames leave is not said once in %q", &p.err)
				}
			}
			if b, err := os.ReadFile(dump); err != nil || len(b) != 1<<20 || !bytes.Equal(b[0x1000:][:len(data)], data) || b[0x40] != 3 {
				t.Errorf("what was written is not there: %d bytes, %v", len(b), err)
			}
		})
	}
}

// TestEtherSendAndListen: a stream goes over Ethernet and arrives whole, and a
// receiver that is killed is noticed.
func TestEtherSendAndListen(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	data := bytes.Repeat([]byte("fifteen bytes.\n"), 400_000)
	listen := func() (p *process, url, into string) {
		dir := t.TempDir()
		into = filepath.Join(dir, "copy")
		p = asProcess(t, "listen", "--checksum", "-o", into, "--url-file", filepath.Join(dir, "url"), "ether:"+netns.Device+"?giveup=1s")
		pair[1].In(func() { p.start() })
		return p, p.url(filepath.Join(dir, "url")), into
	}
	send := func(to, from string) *process {
		p := asProcess(t, "send", "--checksum", "--local", "ether:"+netns.Device+"?giveup=1s&xdp=off", from, to)
		pair[0].In(func() { p.start() })
		return p
	}
	receiver, url, into := listen()
	sender := send(url, fileOf(t, data))
	if code := sender.code(); code != exitOK || !strings.Contains(sender.err.String(), "sent 6000000 bytes, SHA-256 ") {
		t.Errorf("send: code %d: %s", code, &sender.err)
	}
	if says := sender.err.String(); strings.Contains(says, "sending from") {
		t.Errorf("the way that was chosen is said: %s", says)
	}
	if code := receiver.code(); code != exitOK {
		t.Errorf("listen: code %d: %s", code, &receiver.err)
	}
	if b, err := os.ReadFile(into); err != nil || !bytes.Equal(b, data) {
		t.Errorf("%d bytes arrived, want %d; %v", len(b), len(data), err)
	}

	receiver, url, into = listen()
	sender = send(url, "/dev/zero")
	eventually(t, "something arrives", func() bool { return strings.Contains(receiver.err.String(), "receiving from peer ") })
	receiver.Process.Signal(syscall.SIGKILL)
	// Or the receiver was killed before it had answered for the first time.
	if code, says := sender.code(), sender.err.String(); code != exitError || !strings.Contains(says, "does not answer any more") && !strings.Contains(says, "no answer from ") {
		t.Errorf("send to who was killed: code %d: %s", code, &sender.err)
	}
	if _, err := os.Stat(into); !os.IsNotExist(err) {
		t.Errorf("a part is there under the final name: %v", err)
	}
}

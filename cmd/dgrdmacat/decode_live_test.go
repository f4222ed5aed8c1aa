package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// startIn starts a process in a namespace.
func (p *process) startIn(n *netns.Namespace) *process {
	p.t.Helper()
	n.In(func() { p.start() })
	return p
}

// TestDecodeLiveWrites: on all interfaces, what was written is what was shown meanwhile, with
// the names of interfaces, and an interrupt leaves a file that is whole.
func TestDecodeLiveWrites(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	file := filepath.Join(t.TempDir(), "out.pcapng")
	p := asProcess(t, "decode", "-i", "any", "-w", file, "--print", "--json").startIn(pair[1])
	eventually(t, "it captures", func() bool { return strings.Contains(p.err.String(), "capturing on any\n") })
	exchange(t, pair, "udp:10.77.0.1", "udp:10.77.0.2", []dgrdma.EndpointID{1})
	eventually(t, "writes are shown", func() bool { return strings.Contains(p.out.String(), `"kind":"write"`) })
	p.Process.Signal(syscall.SIGINT)
	if code := p.code(); code != exitOK || !strings.HasSuffix(p.err.String(), "; 0 dropped by the kernel\n") {
		t.Errorf("code %d, %s", code, p.err.String())
	}
	code, stdout, stderr := runDecode(t, nil, "--json", file)
	if code != exitOK || stderr != "" {
		t.Errorf("code %d, %s", code, stderr)
	}
	// Records have their places in each, and seconds count from its first packet: others were before and between them while it was
	// captured. The time is that of both.
	place := regexp.MustCompile(`"record":[0-9]+,|"seconds":[0-9.]+,`)
	shown := place.ReplaceAllString(p.out.String(), "")
	if got := place.ReplaceAllString(stdout, ""); got != shown {
		t.Errorf("%d bytes are shown of the file, and were %d", len(got), len(shown))
	}
	lines := strings.Count(shown, "\n")
	if named := strings.Count(shown, `"interface_name":"`+netns.Device+`"`); named != lines || lines < 10 {
		t.Errorf("%d of %d lines name %s", named, lines, netns.Device)
	}
}

// TestDecodeIntoAPipe: who reads from a pipe has each packet at once, and ends it by going.
func TestDecodeIntoAPipe(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	p := asProcess(t, "decode", "-i", netns.Device, "-w", "-")
	p.Stdout = nil
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.startIn(pair[1])
	f, err := capture.NewFile(out) // its head is there before any packet
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it captures", func() bool { return strings.Contains(p.err.String(), "capturing on ") })
	exchange(t, pair, "ether:"+netns.Device, "ether:"+netns.Device, []dgrdma.EndpointID{1})
	rec, err := f.Next()
	if err != nil || rec.Name != netns.Device || rec.LinkType != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
	out.Close()
	exchange(t, pair, "ether:"+netns.Device, "ether:"+netns.Device, []dgrdma.EndpointID{1})
	if code := p.code(); code != exitOK || p.err.String() != "capturing on "+netns.Device+"\n" {
		t.Errorf("code %d, %s", code, p.err.String())
	}
}

// TestDecodeFillsTheDisk: what the message says is in the file is there, and nothing half.
func TestDecodeFillsTheDisk(t *testing.T) {
	netns.Require(t) // it mounts a small disk, where nobody else sees it
	var packets [][]byte
	for i := range frame.Seq(10_000) {
		packets = append(packets, inIPv4(prefixed(oneFrame(i, 8))))
	}
	in := writeFile(t, "long.pcap", pcapOf(101, packets...))
	disk := t.TempDir()
	p := asProcess(t)
	p.Cmd = exec.Command("sh", "-c", `mount -t tmpfs -o size=300k none "$2" || exit 99
"$0" decode --stats -w "$2/out" "$1"; code=$?
"$0" decode --stats "$2/out" > /dev/null || exit 98
exit $code`, program(t), in, disk)
	p.Stdout, p.Stderr = &p.out, &p.err
	p.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	code := p.start().code()
	said := p.err.String()
	counts := regexp.MustCompile(`([0-9]+) (?:written|shown)`).FindAllStringSubmatch(said, -1)
	want := fmt.Sprintf("write %s/out: no space left on device; what was captured before is in it\n", disk)
	if code != exitError || !strings.Contains(said, want) || len(counts) != 2 || counts[0][1] != counts[1][1] || counts[0][1] == "0" {
		t.Errorf("code %d, %s", code, said)
	}
}

// TestDecodeOnAFullDisk: with no room even for the header no file is left, and the message says so; a link to one stays.
func TestDecodeOnAFullDisk(t *testing.T) {
	netns.Require(t)
	disk := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	for _, c := range []struct{ file, left string }{
		{disk + "/out", "filler\n"},
		{link, "aim\nfiller\n"},
	} {
		p := asProcess(t)
		p.Cmd = exec.Command("sh", "-c", `mount -t tmpfs -o size=16k none "$2" || exit 99
[ "$3" = "$2/out" ] || { touch "$2/aim" && ln -s "$2/aim" "$3"; } || exit 98
cat /dev/zero > "$2/filler" 2> /dev/null
"$0" decode --force --stats -w "$3" "$1"; code=$?
ls -A "$2"
exit $code`, program(t), captures+"udp-single.pcap", disk, c.file)
		p.Stdout, p.Stderr = &p.out, &p.err
		p.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		code := p.start().code()
		want := fmt.Sprintf("dgrdmacat decode: write %s: no space left on device; nothing was written\n", c.file)
		if said := p.err.String(); code != exitError || !strings.HasSuffix(said, want) || !strings.Contains(said, " 0 written, ") || p.out.String() != c.left {
			t.Errorf("code %d, left %q, %s", code, p.out.String(), said)
		}
	}
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
}

// TestDecodeRefusesPrograms: what tcpdump did not print is named, before anything is captured.
func TestDecodeRefusesPrograms(t *testing.T) {
	for content, want := range map[string]string{
		"udp port 7100\n": `is no program as tcpdump -ddd prints it: line 1: "udp port 7100" is no number of instructions`,
		"":                "is no program as tcpdump -ddd prints it: it is empty",
	} {
		file := writeFile(t, "program", []byte(content))
		out := filepath.Join(t.TempDir(), "out")
		code, stdout, stderr := runDecode(t, nil, "-i", "lo", "-w", out, "--bpf", file)
		if code != exitError || stdout != "" || !strings.Contains(stderr, file+" "+want) {
			t.Errorf("%q: code %d, %s%s", content, code, stdout, stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: a file was made", content)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/peers"
)

// servingMemory runs serve in this process until cancelled.
func servingMemory(t *testing.T, args ...string) (url string, out *lockedBuffer, end func() (code int, stderr string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var stdout, stderr lockedBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--url-file", file}, args...), &stdio{strings.NewReader(""), &stdout, &stderr})
	}()
	eventually(t, "the URL is there", func() bool {
		if len(ended) > 0 {
			t.Fatalf("ended: %s", stderr.String())
		}
		b, _ := os.ReadFile(file)
		url = strings.TrimSpace(string(b))
		return url != ""
	})
	return url, &stdout, func() (int, string) {
		cancel()
		return <-ended, stderr.String()
	}
}

// mustWrite runs write.
func mustWrite(t *testing.T, url string, args ...string) {
	t.Helper()
	if code, out, stderr := runFor(t, t.Context(), append([]string{"write", "--to", url}, args...)...); code != exitOK {
		t.Fatalf("write %v: code %d: %s%s", args, code, out, stderr)
	}
}

var (
	anyTime = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{6} `)
	anyPeer = regexp.MustCompile(`peer \d+ at 127\.0\.0\.1:\d+`)
)

// golden takes out of the output what differs from run to run.
func golden(s string) string {
	return anyPeer.ReplaceAllString(anyTime.ReplaceAllString(s, "TIME "), "PEER")
}

// writeBeyond writes beyond the end of a peer's memory, where its URL says that there is more. The command asks for the size where nothing
// is acknowledged for a moment, and which of that and the time to give up is over first is not known.
func writeBeyond(t *testing.T, url string) {
	t.Helper()
	e, err := dgrdma.Open("udp:127.0.0.1?giveup=2s", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	x := &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 65530, Bytes: []byte("0123456789")}}, Completion: dgrdma.Word(4, 1)}
	if err := c.Write(t.Context(), x); !errors.Is(err, dgrdma.ErrPeerDown) {
		t.Errorf("beyond the memory: %v", err)
	}
}

func TestServeShowsWhatHappens(t *testing.T) {
	noGoroutineLeft(t)
	dump := filepath.Join(t.TempDir(), "dump")
	url, out, end := servingMemory(t, "--accept", "any", "--size", "64k", "--watch", "0x40-0x4b", "--watch", "16", "--dump", dump, "--dump-range", "0x400+8", "udp:127.0.0.1")
	mustWrite(t, url, "--addr", "0x400", "--text", "hello, world", "--flag-addr", "0x40", "--flag-value", "7")
	// Data that begins amid one word and ends amid another.
	mustWrite(t, url, "--addr", "0x47", "--data", "0102030405")
	mustWrite(t, url, "--flag-addr", "0x40", "--flag-value", "7") // not new
	mustWrite(t, url, "--flag-addr", "0x4c", "--flag-value", "9") // not watched
	mustWrite(t, url, "--flag-addr", "0x10", "--flag-value", "0x80000000")
	writeBeyond(t, strings.Replace(url, ";65536.", ";70000.", 1))
	code, stderr := end()
	// The frame is sent again until its sender ends. What a log said a second ago it may say once more.
	refusedMore := regexp.MustCompile(`(TIME PEER refused: bounds: .*\n)(?:TIME PEER refused(?: \d+ times)?: bounds: .*\n)+`)
	want := `TIME PEER up
TIME 0x00000040 = 0x00000007 (7) by PEER
TIME PEER closed
TIME PEER up
TIME 0x00000044 = 0x01000000 (16777216) by PEER
TIME 0x00000048 = 0x05040302 (84148994) by PEER
TIME PEER closed
TIME PEER up
TIME PEER closed
TIME PEER up
TIME PEER closed
TIME PEER up
TIME 0x00000010 = 0x80000000 (2147483648) by PEER
TIME PEER closed
TIME PEER up
TIME PEER refused: bounds: dgrdma: address outside the memory: data: 10 bytes at 0xfffa end at 0x10004, the memory at 0x10000
`
	if got := refusedMore.ReplaceAllString(golden(out.String()), "$1"); got != want {
		t.Errorf("printed\n%s, want\n%s", got, want)
	}
	wantErr := regexp.MustCompile(`^serving 65536 bytes \(64 KiB\) on ocpi-udp-rdma:127\.0\.0\.1;\d+;65536\.\d+\.65535
any peer may write into it
5 transactions, 17 bytes, frames refused: bounds \d+ in \d+\.\d{3} s
  PEER: 1 transaction, 12 bytes
  PEER: 1 transaction, 5 bytes
  PEER: 1 transaction, 0 bytes
  PEER: 1 transaction, 0 bytes
  PEER: 1 transaction, 0 bytes
  PEER: 0 transactions, 0 bytes, frames refused: bounds \d+
$`)
	if code != exitOK || !wantErr.MatchString(golden(stderr)) {
		t.Errorf("code %d: %s", code, golden(stderr))
	}
	if b, err := os.ReadFile(dump); err != nil || string(b) != "hello, w" {
		t.Errorf("dumped %q, %v", b, err)
	}
	onlyFile(t, dump)
}

// onlyFile fails if there is anything beside a file.
func onlyFile(t *testing.T, name string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(list) != 1 || list[0].Name() != filepath.Base(name) {
		t.Errorf("beside %s: %v, %v", name, list, err)
	}
}

func TestServeAsJSON(t *testing.T) {
	noGoroutineLeft(t)
	url, out, end := servingMemory(t, "--json", "--accept", "any", "--watch", "8", "--until", "8=2", "--for", "30s", "udp:127.0.0.1")
	mustWrite(t, url, "--addr", "1024", "--text", "abc", "--flag-addr", "8", "--count", "2", "--flag-step", "1")
	eventually(t, "it ended by itself", func() bool { return strings.Contains(out.String(), "summary") })
	if code, stderr := end(); code != exitOK || strings.Contains(stderr, "transactions") {
		t.Errorf("code %d: %s", code, stderr)
	}
	var events []string
	for line := range strings.Lines(out.String()) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		event := fmt.Sprint(o["event"])
		switch event {
		case "serving":
			if o["url"] != url || o["size"] != 1048576.0 {
				t.Errorf("%s", line)
			}
		case "value":
			event += fmt.Sprintf(" %v=%v=%v", o["addr"], o["value"], o["hex"])
			fallthrough
		case "up", "closed":
			if peer, ok := o["peer"].(map[string]any); !ok || peer["id"].(float64) < 1 || !strings.HasPrefix(peer["addr"].(string), "127.0.0.1:") {
				t.Errorf("%s", line)
			}
			if _, err := time.Parse(time.RFC3339Nano, o["time"].(string)); err != nil {
				t.Error(err)
			}
		case "summary":
			if o["transactions"] != 2.0 || o["bytes"] != 6.0 || len(o["peers"].([]any)) != 1 || o["seconds"].(float64) <= 0 {
				t.Errorf("%s", line)
			}
		}
		events = append(events, event)
	}
	if got := strings.Join(events, ", "); got != "serving, up, value 8=1=0x00000001, value 8=2=0x00000002, closed, summary" {
		t.Errorf("events %s", got)
	}
}

func TestServeEnds(t *testing.T) {
	noGoroutineLeft(t)
	eight := fileOf(t, []byte{5, 0, 0, 0, 1, 0, 0, 0x80})
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"--until 0=0", exitOK, ""},
		{"--until 4=0x80000001 --file " + eight, exitOK, ""},
		{"--for 50ms", exitOK, ""},
		{"--for 50ms --until 0=5 --file " + eight, exitOK, ""},
		{"--for 50ms --until 0x10=3", exitError, "50ms are over, and the word at 0x10 is 0x0, not 0x3"},
	} {
		code, out, stderr := runFor(t, t.Context(), append([]string{"serve", "--accept", "any", "udp:127.0.0.1"}, strings.Fields(c.args)...)...)
		if code != c.code || out != "" || !strings.Contains(stderr, c.stderr) || !strings.Contains(stderr, "0 transactions, 0 bytes in 0.") {
			t.Errorf("serve %s: code %d: %q %q", c.args, code, out, stderr)
		}
	}
	_, _, end := servingMemory(t, "--accept", "any", "--until", "0=1", "udp:127.0.0.1")
	if code, stderr := end(); code != exitInterrupted || !strings.Contains(stderr, "interrupted, and the word at 0x0 is 0x0, not 0x1") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestServeTakesNothingAfterUntil: what is dumped is what was there when the
// word got its value.
func TestServeTakesNothingAfterUntil(t *testing.T) {
	noGoroutineLeft(t)
	dump := filepath.Join(t.TempDir(), "dump")
	url, out, end := servingMemory(t, "--accept", "any", "--until", "0=3", "--dump", dump, "--watch", "0", "udp:127.0.0.1")
	code, _, stderr := runFor(t, t.Context(), "write", "--to", url+"?giveup=5s", "--flag-addr", "0", "--flag-step", "1", "--count", "100000")
	if code != exitError || !strings.Contains(stderr, "the peer closed the connection") {
		t.Errorf("write: code %d: %s", code, stderr)
	}
	if code, stderr := end(); code != exitOK {
		t.Errorf("code %d: %s", code, stderr)
	}
	if b, err := os.ReadFile(dump); err != nil || len(b) != 1<<20 || !bytes.Equal(b[:8], []byte{3, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("dumped %d bytes, %v, %v", len(b), b[:min(len(b), 8)], err)
	}
	if got := golden(out.String()); !strings.HasSuffix(got, "TIME 0x00000000 = 0x00000003 (3) by PEER\n") {
		t.Errorf("%s", got)
	}
}

func TestServeNamedPeers(t *testing.T) {
	noGoroutineLeft(t)
	friend, absent, stranger := free(t), free(t), free(t)
	url, out, end := servingMemory(t, "--peer", localString(friend, 64, 5), "--peer", localString(absent, 64, 6), "--id", "9", "udp:127.0.0.1?giveup=200ms")
	if !strings.HasSuffix(url, ";1048576.9.65535") {
		t.Errorf("serves on %s", url)
	}
	time.Sleep(300 * time.Millisecond) // longer than giveup: who is not there yet is not given up
	mustWrite(t, url, "--local", localString(friend, 64, 5), "--flag-addr", "0")
	// Without its complete string it is asked for that, and answers whom it knows.
	at := regexp.MustCompile(`^ocpi-udp-rdma:(.*);(\d+);.*`).ReplaceAllString(url, "udp:$1:$2")
	mustWrite(t, at, "--local", localString(friend, 64, 5), "--flag-addr", "0", "--flag-value", "2")
	mustWrite(t, at, "--local", "udp:"+friend.String(), "--id", "5", "--flag-addr", "0", "--flag-value", "3")
	code, _, stderr := runFor(t, t.Context(), "write", "--to", at+"?giveup=200ms", "--flag-addr", "4")
	if code != exitError || !strings.Contains(stderr, "--local has to be one of them, with its port and id") {
		t.Errorf("who does not say who it is: code %d: %s", code, stderr)
	}
	code, _, stderr = runFor(t, t.Context(), "write", "--to", url+"?giveup=3s", "--local", localString(stranger, 64, 5), "--flag-addr", "4")
	if code != exitError || !strings.HasSuffix(stderr, ": it takes no unknown peers: have its program accept any, or connect to this one; this one is "+localString(stranger, 64, 5)+"\n") {
		t.Errorf("stranger: code %d: %s", code, stderr)
	}
	code, stderr = end()
	if code != exitOK || !strings.Contains(stderr, "2 peers may write into it") || !regexp.MustCompile(`3 transactions, 0 bytes, frames refused: destination \d+, source \d+ in`).MatchString(stderr) {
		t.Errorf("code %d: %s", code, stderr)
	}
	got := out.String()
	// The end tells how many refusals followed the first: on a busy machine one more.
	up, refused := fmt.Sprintf("peer 5 at %v up\n", friend), fmt.Sprintf("peer 5 at %v refused: source: it is not one of the peers: --peer or --accept takes it\n", stranger)
	if strings.Count(got, up) != 1 || !strings.Contains(got, refused) {
		t.Errorf("%s has not one %q, and %q", got, up, refused)
	}
	if asked := " refused: destination: it wants another endpoint id, or asks for ours and is not one of the peers, or its --profile is opencpi2, which we are not\n"; !strings.Contains(got, asked) {
		t.Errorf("%s has no %q", got, asked)
	}
}

// TestServeOtherKinds: doubles of real peers write into it, each with its own
// profile, named or learned.
func TestServeOtherKinds(t *testing.T) {
	noGoroutineLeft(t)
	ours := free(t)
	data := random(5, 3000)
	for _, c := range []struct {
		kind  string
		named bool
		write func(d double, flag uint32)
	}{
		{"fpga", true, func(d double, flag uint32) { d.(*peers.FPGA).Write(0x400, data, 0x40, flag) }},
		{"opencpi", true, func(d double, flag uint32) {
			d.(*peers.DG1).Post(0x40, flag, peers.Part{Addr: 0x400, Data: data})
		}},
		{"opencpi", false, func(d double, flag uint32) {
			d.(*peers.DG1).Post(0x40, flag, peers.Part{Addr: 0x400, Data: data})
		}},
		{"opencpi-legacy", false, func(d double, flag uint32) {
			d.(*peers.DG1).Post(0x40, flag, peers.Part{Addr: 0x400, Data: data})
		}},
		{"opencpi2", true, func(d double, flag uint32) {
			d.(*peers.DG2).Post(0x40, flag, 0x400, data)
			d.(*peers.DG2).Flush()
		}},
	} {
		t.Run(fmt.Sprintf("%s named=%v", c.kind, c.named), func(t *testing.T) {
			d, there := startDouble(t, c.kind, ours)
			args := []string{"--watch", "0x40", "--size", "64k", localString(ours, 1<<16, 1) + "?mtu=1500"}
			if c.named {
				args = append(args, "--peer", localString(there, 1<<20, 2)+"?profile="+c.kind)
			} else {
				args = append(args, "--accept", "any", "--profile", c.kind)
			}
			dump := filepath.Join(t.TempDir(), "dump")
			_, out, end := servingMemory(t, append(args, "--dump", dump, "--dump-range", "0x400+3000")...)
			for flag := range uint32(3) {
				c.write(d, flag+1)
				want := fmt.Sprintf("0x00000040 = 0x%08x (%d) by peer 2 at %v\n", flag+1, flag+1, there)
				eventually(t, want, func() bool { return strings.Contains(out.String(), want) })
			}
			if code, stderr := end(); code != exitOK || !strings.Contains(stderr, fmt.Sprintf("peer 2 at %v: 3 transactions, 9000 bytes\n", there)) {
				t.Errorf("code %d: %s", code, stderr)
			}
			if b, err := os.ReadFile(dump); err != nil || !bytes.Equal(b, data) {
				t.Errorf("what was dumped is not what was written; %v", err)
			}
			for _, v := range d.Violations() {
				t.Errorf("violation: %s", v)
			}
		})
	}
}

// TestServeReadmits: a peer of another kind that restarted is refused until it
// is taken back.
func TestServeReadmits(t *testing.T) {
	for _, readmit := range []bool{false, true} {
		ours := free(t)
		there := free(t)
		d := doubleAt(t, "opencpi", there, ours)
		args := []string{"--watch", "0x40", "--peer", localString(there, 1<<20, 2) + "?profile=opencpi", fmt.Sprintf("--readmit=%v", readmit), localString(ours, 1<<16, 1)}
		_, out, end := servingMemory(t, args...)
		d.(*peers.DG1).Post(0x40, 11, peers.Part{Addr: 0x400, Data: make([]byte, 64)})
		eventually(t, "the first life", func() bool { return strings.Contains(out.String(), "(11)") })
		// Its acknowledgement would be taken for one of the second life's.
		eventually(t, "it is acknowledged", func() bool { return d.(*peers.DG1).Counters().AcksGot > 0 })
		d.Close()
		again := doubleAt(t, "opencpi", there, ours)
		again.(*peers.DG1).Post(0x40, 12, peers.Part{Addr: 0x800, Data: make([]byte, 64)})
		if readmit {
			eventually(t, "the second life", func() bool { return strings.Contains(out.String(), "(12)") })
		} else {
			eventually(t, "it is refused", func() bool { return strings.Contains(out.String(), "refused: foreign") })
		}
		end()
		again.Close()
		if got := golden(out.String()); strings.Contains(got, "PEER restarted\n") != readmit || strings.Contains(got, "PEER seems restarted; its frames are refused, --readmit takes it back\n") == readmit {
			t.Errorf("readmit %v: %s", readmit, got)
		}
	}
}

func TestServeUsage(t *testing.T) {
	peer := localString(netip.MustParseAddrPort("127.0.0.1:9"), 4096, 3)
	for _, c := range []struct{ args, want string }{
		{"", "who may write?"},
		{"--accept any udp:127.0.0.1?accept=connected", "say it once"},
		{"--accept connected udp:127.0.0.1?accept=any", "say it once"},
		{"--accept all", "need any or connected"},
		{"--accept any --profile fpga udp?profile=opencpi", "--profile fpga, and the endpoint string says profile=opencpi: say it once"},
		{"--accept any --id 7 ocpi-udp-rdma:127.0.0.1;0;1048576.9.65535", "--id 7, and the endpoint string has the id 9: say it once"},
		{"--peer " + peer + " --peer " + peer + "?profile=fpga udp:127.0.0.1", "it is named twice"},
		{"--accept any --force", "--force belongs to --dump"},
		{"--accept any udp udp", "one URL to serve on"},
		{"--accept any nonsense", "byte 0: expected ocpi-ether-rdma"},
		{"--accept any --create", "belongs to --file"},
		{"--accept any --dump-range 0+1", "belongs to --dump"},
		{"--accept any --size 0", "need 1 to 4G"},
		{"--accept any --size 5G", "need 1 to 4G"},
		{"--accept any --size 8k ocpi-udp-rdma:127.0.0.1;0;4096.1.2", "the URL says 4096 bytes"},
		{"--accept any --watch x", "need a number"},
		{"--accept any --watch 8-4", "the first address is behind the last"},
		{"--accept any --watch 0-0xffffffff", "1073741824 words, at most"},
		{"--accept any --watch 0xffffffff", "ends at 0x100000003, the memory at 0x100000"},
		{"--accept any --until 5", "need ADDRESS=WORD"},
		{"--accept any --until 0xffffd=0", "the word ends at 0x100001"},
		{"--accept any --dump-range 5", "need ADDRESS+BYTES"},
		{"--accept any --dump /tmp/x --dump-range 0x100000+1", "ends at 0x100001"},
		{"--accept any --for -1s", `--for "-1s": need seconds such as 10 or 0.5, or a time such as 500ms, above 0`},
		{"--accept any --for 0s", `--for "0s": need seconds such as 10 or 0.5, or a time such as 500ms, above 0`},
		{"--accept any --for 0.0", `--for "0.0": need seconds`},
		{"--accept any --id -1", `--id "-1": need 1 to 65535`},
		{"--accept any --profile best", `--profile "best": need native, fpga`},
		{"--peer udp:127.0.0.1:9", "need the complete string"},
		{"--peer " + peer + "?giveup=1s", "says giveup=1s, but has no option except profile"},
		{"--peer " + peer + "?profile=x", "profile=x: need native, fpga"},
		{"--peer " + peer + " ether:lo", "is on another wire than this endpoint (ether)"},
		{"--accept any udp?speed=1", `option "speed"`},
	} {
		if code, out, stderr := runFor(t, t.Context(), append([]string{"serve"}, strings.Fields(c.args)...)...); code != exitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("serve %s: code %d, %q, %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
	busy, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, c := range []struct{ args, want string }{
		{"--accept any udp:" + busy.LocalAddr().String(), "another socket has the port"},
		{"--accept any --dump /does/not/exist/x udp:127.0.0.1", "no such file"},
		{"--accept any --dump /dev/null udp:127.0.0.1", "is no ordinary file"},
		{"--accept any --url-file /does/not/exist/x udp:127.0.0.1", "no such file"},
		{"--accept any --file /does/not/exist udp:127.0.0.1", "does not exist; --create makes it"},
		{"--accept any --file /dev/zero udp:127.0.0.1", "is no ordinary file"},
		{"--accept any --file / udp:127.0.0.1", "is a directory"},
		{"--accept any --file " + fileOf(t, nil) + " udp:127.0.0.1", "has 0 bytes, need 1 to"},
		{"--accept any --file " + fileOf(t, make([]byte, 100)) + " --size 101 udp:127.0.0.1", "has 100 bytes, and shall have 101"},
		{"--accept any --file " + fileOf(t, make([]byte, 1)) + " --size 4k udp:127.0.0.1", "has 1 byte, and shall have 4096"},
		{"--accept any --dump " + fileOf(t, []byte("keep")) + " udp:127.0.0.1", "exists already; --force replaces it"},
	} {
		if code, out, stderr := runFor(t, t.Context(), append([]string{"serve"}, strings.Fields(c.args)...)...); code != exitError || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("serve %s: code %d, %q, %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
}

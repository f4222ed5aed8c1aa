package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestDecodeIntoAClosedPipe: who reads some lines and goes, as head does, is
// nothing to complain about.
func TestDecodeIntoAClosedPipe(t *testing.T) {
	var packets [][]byte
	for i := range frame.Seq(5000) { // far more than a pipe holds
		packets = append(packets, inIPv4(prefixed(oneFrame(i, 8))))
	}
	file := writeFile(t, "long.pcap", pcapOf(101, packets...))
	for _, args := range [][]string{{file}, {"--json", "--stats", file, file}, {"-v", "-"}} {
		cmd := exec.Command(program(t), append([]string{"decode"}, args...)...)
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = in, &stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "1") {
			t.Errorf("%v: %q, %v", args, line, err)
		}
		out.Close()
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("%v: %v, %s", args, err, stderr.String())
		}
	}
}

// TestDecodeWithoutPrivileges: files need none; an interface needs one, which is
// named.
func TestDecodeWithoutPrivileges(t *testing.T) {
	path := program(t)
	nobody := func(in io.Reader, args ...string) (code int, stdout, stderr string) {
		cmd := exec.Command(path, append([]string{"decode"}, args...)...)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		var out, err bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &err
		if failed := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(failed)
		}
		return cmd.ProcessState.ExitCode(), out.String(), err.String()
	}
	if code, stdout, stderr := nobody(bytes.NewReader(readCapture(t, "udp-single")), "-"); code != exitOK || stdout != single1+single2 || stderr != "" {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr := nobody(nil, "-i", "lo")
	want := "dgrdmacat decode: capture on lo: it needs the capability CAP_NET_RAW; run it as root, or grant it with: sudo setcap cap_net_raw+ep " + path + "\n"
	if code != exitError || stdout != "" || stderr != want {
		t.Errorf("code %d, %s%s; want %s", code, stdout, stderr, want)
	}
	code, stdout, stderr = nobody(nil, "-i", "any", "-w", "-")
	if want = strings.Replace(want, " lo:", " any:", 1); code != exitError || stdout != "" || stderr != want {
		t.Errorf("code %d, %q%s; want %s", code, stdout, stderr, want)
	}
	code, _, stderr = nobody(nil, "-i", "none0")
	if code != exitError || !strings.Contains(stderr, "no interface none0; there are ") || !strings.Contains(stderr, "lo") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// TestDecodeLive watches two endpoints of ours, on both wires: no frame is
// missing, although the kernel joins what goes over UDP, also of several ids.
func TestDecodeLive(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	path := program(t)
	for _, c := range []struct {
		name, local, peer string
		senders           []dgrdma.EndpointID
		joined            bool
	}{
		{"udp", "udp:10.77.0.1", "udp:10.77.0.2", []dgrdma.EndpointID{1}, true},
		{"udp, several ids", "udp:10.77.0.1", "udp:10.77.0.2", []dgrdma.EndpointID{1, 3, 4, 5}, true},
		// What is captured at the receiver's interface has the receiver's frames, too, if they do not leave by AF_XDP.
		{"ether", "ether:" + netns.Device, "ether:" + netns.Device + "?xdp=off", []dgrdma.EndpointID{1}, false},
	} {
		once := func(t *testing.T, last bool) (again bool) {
			pair := netns.NewPair(t, 1500)
			cmd := exec.Command(path, "decode", "-i", netns.Device, "--json")
			var stdout lockedBuffer
			cmd.Stdout = &stdout
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			pair[1].In(func() { err = cmd.Start() })
			if err != nil {
				t.Fatal(err)
			}
			said := bufio.NewReader(stderr)
			if line, err := said.ReadString('\n'); line != "capturing on "+netns.Device+"\n" {
				t.Fatalf("%q, %v", line, err)
			}
			exchange(t, pair, c.local, c.peer, c.senders)
			// What is on its way to the socket, or still in it, is shown some time later.
			all := false
			for looked, since := 0, time.Now(); !all && time.Since(since) < 3*time.Second; time.Sleep(5 * time.Millisecond) {
				shown := stdout.String()
				if len(shown) != looked {
					looked, since = len(shown), time.Now()
					continue
				}
				all = writtenLive(t, shown) == len(c.senders)*liveTransactions*liveSize
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			summary, _ := io.ReadAll(said)
			if !all && !last {
				t.Logf("%d bytes that were written are shown, once more: %s", writtenLive(t, stdout.String()), summary)
				cmd.Wait()
				return true
			}
			if !all {
				t.Errorf("%d bytes that were written are shown, want %d: %s", writtenLive(t, stdout.String()), len(c.senders)*liveTransactions*liveSize, summary)
			}
			if err := cmd.Wait(); err != nil || !strings.Contains(string(summary), " 0 malformed, 0 cut") || !strings.HasSuffix(string(summary), "; 0 dropped by the kernel\n") {
				t.Fatalf("%v, %s", err, summary)
			}
			if strings.Contains(string(summary), " of several datagrams") != c.joined {
				t.Errorf("joined: want %v; %s", c.joined, summary)
			}
			checkLive(t, stdout.String())
			return false
		}
		t.Run(c.name, func(t *testing.T) {
			// On a busy machine some may never come to the socket that captures.
			for n := 1; once(t, n == 5); n++ {
			}
		})
	}
}

const (
	liveReceiver     = 2
	liveTransactions = 20
	liveSize         = 100_000
)

// exchange sends transactions from side 0, under each of its ids, to side 1.
func exchange(t *testing.T, pair netns.Pair, local, peer string, senders []dgrdma.EndpointID) {
	t.Helper()
	memory, err := dgrdma.NewRegion(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	var a, b *dgrdma.Endpoint
	pair[1].In(func() { b, err = dgrdma.Open(peer, &dgrdma.Config{ID: liveReceiver, Memory: memory, AcceptAny: true}) })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	pair[0].In(func() { a, err = dgrdma.Open(local, &dgrdma.Config{ID: senders[0]}) })
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	to, err := dgrdma.ParsePeer(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*dgrdma.Conn, len(senders))
	for i, id := range senders {
		to.As = id
		if conns[i], err = a.Connect(to); err != nil {
			t.Fatal(err)
		}
	}
	results := make(chan error, len(conns))
	for i := range uint32(liveTransactions) {
		for _, c := range conns {
			if err := c.Post(&dgrdma.Transaction{
				Segments: []dgrdma.Segment{{Addr: 4096, Bytes: make([]byte, liveSize)}}, Completion: dgrdma.Word(64, i+1),
				Done: func(_ *dgrdma.Transaction, err error) { results <- err },
			}); err != nil {
				t.Fatal(err)
			}
		}
		for range conns {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkLive asks of what was shown that the handshake is there, that acknowledgements
// name their session, and that lines are whole.
func checkLive(t *testing.T, shown string) {
	t.Helper()
	kinds := map[string]int{}
	for o := range framesLive(t, shown) {
		kinds[o.Kind]++
		if o.Kind == "ack" && (o.Session == nil || o.Session.Tag == 0) {
			t.Errorf("no session: %+v", o)
		}
		if at, err := time.Parse(time.RFC3339Nano, o.Time); err != nil || time.Since(at) > time.Hour {
			t.Errorf("time %s, %v", o.Time, err)
		}
	}
	if kinds["hello"] == 0 || kinds["welcome"] == 0 || kinds["confirm"] == 0 || kinds["ack"] == 0 || !strings.HasSuffix(shown, "\n") {
		t.Errorf("%v, and at the end %q", kinds, shown[max(0, len(shown)-100):])
	}
}

// frameLive is a line that decode --json prints.
type frameLive struct {
	Kind, Time string
	Src        int
	Session    *struct{ Tag uint32 }
	Messages   []struct{ Txn, Index, Length uint32 }
}

// framesLive goes through the lines that are complete.
func framesLive(t *testing.T, shown string) iter.Seq[frameLive] {
	return func(yield func(frameLive) bool) {
		for line := range strings.Lines(shown) {
			if !strings.HasSuffix(line, "\n") {
				return
			}
			var o frameLive
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if !yield(o) {
				return
			}
		}
	}
}

// writtenLive returns how many bytes were written; repetitions count once.
func writtenLive(t *testing.T, shown string) (total int) {
	written := map[string]int{} // by sender, transaction and index
	for o := range framesLive(t, shown) {
		for _, m := range o.Messages {
			if o.Src != liveReceiver && o.Kind == "write" {
				written[fmt.Sprint(o.Src, m.Txn, m.Index)] = int(m.Length)
			}
		}
	}
	for _, n := range written {
		total += n
	}
	return total
}

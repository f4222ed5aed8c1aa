package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/udp"
)

// opened is an endpoint that anybody may write into.
func opened(t *testing.T, memory dgrdma.Memory) *dgrdma.Endpoint {
	t.Helper()
	e, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: memory, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func regionOf(t *testing.T, size int) *dgrdma.Region {
	t.Helper()
	r, err := dgrdma.NewRegion(size)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fileOf(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// runWith is runFor with something to read.
func runWith(t *testing.T, ctx context.Context, in io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(ctx, args, &stdio{in, &out, &err})
	return code, out.String(), err.String()
}

func TestWriteSources(t *testing.T) {
	noGoroutineLeft(t)
	data := random(1, 100_000)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go os.WriteFile(pipe, data, 0)
	for _, c := range []struct {
		name string
		args []string
		want []byte
	}{
		{"file", []string{"--file", fileOf(t, data)}, data},
		{"pipe", []string{"--file", pipe}, data},
		{"stdin", []string{"-"}, data},
		{"data", []string{"--data", "0x00 ff1A\n80"}, []byte{0, 255, 0x1a, 0x80}},
		{"text", []string{"--text", "hällo"}, []byte("hällo")},
		{"empty file", []string{"--file", fileOf(t, nil)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			memory := regionOf(t, 1<<20)
			e := opened(t, memory)
			defer e.Close()
			args := append([]string{"write", "--to", e.URL(), "--addr", "0x1001", "--flag-addr", "64", "--flag-value", "0xDeadBeef"}, c.args...)
			code, out, stderr := runWith(t, t.Context(), bytes.NewReader(data), args...)
			if code != exitOK || stderr != "" || !strings.Contains(out, "acknowledged by peer") || !strings.Contains(out, "flag at 0x40 = 0xdeadbeef (3735928559)") {
				t.Fatalf("code %d: %s%s", code, out, stderr)
			}
			if memory.Load32(64) != 0xdeadbeef || !bytes.Equal(memory.Bytes()[0x1001:][:len(c.want)], c.want) {
				t.Error("the memory is not as it was written")
			}
			if !bytes.Equal(memory.Bytes()[0x1001+len(c.want):], make([]byte, 1<<20-0x1001-len(c.want))) {
				t.Error("there is something behind the data")
			}
		})
	}
}

// reluctant is memory that refuses what is written to one place, for a while,
// and looks at its bytes when the flag is written.
type reluctant struct {
	*dgrdma.Region
	from, to uint32
	refuse   atomic.Int32 // how often still
	early    atomic.Bool  // the flag came before that
	flags    atomic.Int32
}

func (r *reluctant) Admit(src dgrdma.EndpointID, m *frame.Message) ([]byte, error) {
	if m.Len > 0 && m.Addr >= r.from && m.Addr < r.to && r.refuse.Add(-1) >= 0 {
		return nil, errors.New("not now")
	}
	return r.Region.Admit(src, m)
}

func (r *reluctant) Complete(src dgrdma.EndpointID, m *frame.Message) {
	if r.refuse.Load() > 0 {
		r.early.Store(true)
	}
	r.flags.Add(1)
	r.Region.Complete(src, m)
}

// TestWriteFlagComesLast: the flag of many transactions is not written before
// everything else, not even if one of them is held up.
func TestWriteFlagComesLast(t *testing.T) {
	noGoroutineLeft(t)
	const size, at = 300_001, 4096
	memory := &reluctant{Region: regionOf(t, 1<<20), from: at + 40_000, to: at + 50_000}
	memory.refuse.Store(6)
	e := opened(t, memory)
	defer e.Close()
	data := random(2, size)
	code, out, stderr := runFor(t, t.Context(), "write", "--json", "--to", e.URL(), "--addr", fmt.Sprint(at), "--file", fileOf(t, data),
		"--size", "10k", "--flag-addr", "0")
	if code != exitOK {
		t.Fatalf("code %d: %s%s", code, out, stderr)
	}
	if memory.refuse.Load() >= 0 {
		t.Error("nothing was held up")
	}
	if memory.early.Load() || memory.flags.Load() != 1 || memory.Load32(0) != 1 {
		t.Errorf("%d flags, early: %v, %d", memory.flags.Load(), memory.early.Load(), memory.Load32(0))
	}
	if !bytes.Equal(memory.Bytes()[at:at+size], data) {
		t.Error("the memory is not as it was written")
	}
	var got written
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Transactions != 30 || got.Bytes != size || got.Times != 1 || !got.Acknowledged || got.SentAgain == 0 || *got.Flag != 1 || *got.FlagAddr != 0 || got.Error != "" {
		t.Errorf("%s", out)
	}
}

func TestWriteAgainAndAgain(t *testing.T) {
	noGoroutineLeft(t)
	type completion struct{ addr, value uint32 }
	var mu sync.Mutex
	var seen []completion
	memory := &hooked{Region: regionOf(t, 4096), completed: func(m *frame.Message) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, completion{m.CompletionAddr, m.CompletionValue})
	}}
	e := opened(t, memory)
	defer e.Close()
	began := time.Now()
	code, out, stderr := runFor(t, t.Context(), "write", "--json", "--to", e.URL(), "--flag-addr", "0x10", "--flag-value", "0xfffffff0", "--flag-step", "8", "--count", "4", "--interval", "20ms")
	if code != exitOK || stderr != "" || !strings.Contains(out, `"times":4,"transactions":4,"bytes":0`) || !strings.Contains(out, `"flag_addr":16,"flag":8}`) {
		t.Errorf("code %d: %s%s", code, out, stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []completion{{16, 0xfffffff0}, {16, 0xfffffff8}, {16, 0}, {16, 8}}; !slices.Equal(seen, want) || time.Since(began) < 60*time.Millisecond {
		t.Errorf("%v after %v", seen, time.Since(began))
	}
}

// hooked is memory that tells about completions.
type hooked struct {
	*dgrdma.Region
	completed func(m *frame.Message)
}

func (h *hooked) Complete(src dgrdma.EndpointID, m *frame.Message) {
	h.Region.Complete(src, m)
	h.completed(m)
}

func localString(at netip.AddrPort, size int, id int) string {
	return fmt.Sprintf("ocpi-udp-rdma:%v;%d;%d.%d.16", at.Addr(), at.Port(), size, id)
}

// double is a peer of another kind.
type double interface {
	Violations() []string
	Completions() []peers.Completion
	Bytes(addr, n int) []byte
	Close()
}

// startDouble starts a double with id 2, which takes an address for that of its
// peer with id 1.
func startDouble(t *testing.T, kind string, to netip.AddrPort) (double, netip.AddrPort) {
	t.Helper()
	at := free(t)
	d := doubleAt(t, kind, at, to)
	t.Cleanup(d.Close)
	return d, at
}

// doubleAt is startDouble with an address for the double.
func doubleAt(t *testing.T, kind string, at, to netip.AddrPort) (d double) {
	t.Helper()
	tc, err := udp.Listen(udp.Config{Addr: at, MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	switch ours := transport.UDPAddr(to); kind {
	case "fpga":
		d = peers.NewFPGA(tc, ours, peers.FPGAConfig{})
	case "opencpi":
		d = peers.NewDG1(tc, ours, peers.DG1Config{UDP: true})
	case "opencpi-legacy":
		d = peers.NewLegacy(tc, ours, peers.DG1Config{UDP: true})
	case "opencpi2":
		d = peers.NewDG2(tc, ours, peers.DG2Config{})
	}
	return d
}

// TestWriteToOtherKinds: doubles of real peers get what was written, flag last,
// and nothing that they would die of.
func TestWriteToOtherKinds(t *testing.T) {
	for _, kind := range []string{"fpga", "opencpi", "opencpi-legacy", "opencpi2"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // most of it is waiting for acknowledgements
			ours := free(t)
			d, there := startDouble(t, kind, ours)
			data := random(3, 20_004)
			args := []string{"write", "--profile", kind, "--to", localString(there, 1<<20, 2), "--local", fmt.Sprintf("udp:%v?mtu=1400", ours),
				"--addr", "0x400", "--file", fileOf(t, data), "--flag-addr", "0x40", "--count", "2", "--flag-step", "5"}
			whole := kind == "fpga" || kind == "opencpi-legacy"
			if !whole {
				args = append(args, "--size", "8k")
			}
			code, out, stderr := runFor(t, t.Context(), args...)
			if code != exitOK || stderr != "" {
				t.Fatalf("code %d: %s%s", code, out, stderr)
			}
			transactions, says := "in 6 transactions", "acknowledged by peer 2"
			if whole {
				transactions = "in 2 transactions"
			}
			if kind == "opencpi2" {
				says = "which never acknowledges: whether it arrived is not known, and what came while it stood still for longer than 53ms is lost"
			}
			if !strings.Contains(out, transactions) || !strings.Contains(out, says) || !strings.Contains(out, "flag at 0x40 = 0x6 (6)") {
				t.Errorf("%s", out)
			}
			eventually(t, "both flags are there", func() bool { return len(d.Completions()) == 2 })
			for i, c := range d.Completions() {
				if c.Addr != 0x40 || c.Value != uint32(1+5*i) {
					t.Errorf("completion %d: %+v", i, c)
				}
			}
			if !bytes.Equal(d.Bytes(0x400, len(data)), data) {
				t.Error("the memory is not as it was written")
			}
			for _, v := range d.Violations() {
				t.Errorf("violation: %s", v)
			}
		})
	}
}

func TestWriteRefusesBeforeSending(t *testing.T) {
	sink, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	to := localString(sink.LocalAddr().(*net.UDPAddr).AddrPort(), 65530, 2)
	for _, c := range []struct{ args, want string }{
		{"--text x --addr 0", "write to whom?"},
		{"--to udp --text x --addr 0", "--to udp: need udp:HOST:PORT, or what the other side prints\n"},
		{"--to " + to, "what to write?"},
		{"--to " + to + " stray", `unexpected argument "stray"`},
		{"--to " + to + " --text x", "write where?"},
		{"--to " + to + " --text x --data 00 --addr 0", "exclude each other"},
		{"--to " + to + " --text x --addr 0 -", "exclude each other"},
		{"--to " + to + " --flag-addr 0 --addr 0", "--addr needs bytes"},
		{"--to " + to + " --text x --addr 0 --flag-value 1", "need --flag-addr"},
		{"--to " + to + " --text x --addr -1", "need a number from 0 to 4294967295"},
		{"--to " + to + " --text x --addr 0x100000000", "need a number from 0 to 4294967295"},
		{"--to " + to + " --text x --addr 010x", "need a number"},
		{"--to " + to + " --data 0 --addr 0", "pairs of hexadecimal digits"},
		{"--to " + to + " --text x --addr 0 --size 17M", "--size 17M: need 1 to 16M"},
		{"--to " + to + " --text x --addr 0 --size 0", "--size 0: need 1"},
		{"--to " + to + " --text x --addr 0 --size 1T", "need a number of bytes"},
		{"--to " + to + " --text x --addr 0 --size 17179869184G", "need a number of bytes"},
		{"--to " + to + " --text x --addr 0 --count -1", "--count -1"},
		{"--to " + to + " --text x --addr 0 --interval -1s", "--interval"},
		{"--to " + to + " --text x --addr 0 --id 65536", `--id "65536": need 1 to 65535`},
		{"--to " + to + " --text x --addr 0 --profile best", `--profile "best": need native, fpga`},
		{"--to " + to + " --text abc --addr 65528", "3 bytes from 0xfff8 on would end at 0xfffb, the peer's memory ends at 0xfffa"},
		{"--to " + to + " --text abc --addr 0xffffffff", "end at 0x100000002"},
		{"--to " + to + " --addr 65528 -", "standard input has more than the 2 bytes that can be written there"},
		{"--to " + to + " --addr 70000 -", "more than the 0 bytes"},
		{"--to " + to + " --flag-addr 65527", "the flag ends at 0xfffb"},
		{"--to " + to + " --addr 0 --file /dev/null", "there is nothing to write"},
		{"--to " + to + " --text abc --addr 8 --flag-addr 0 --profile fpga", "take data at multiples of 16"},
		{"--to " + to + " --data 0102030405060708090a --addr 65520 --flag-addr 0 --profile fpga", "end at 0xfffc"},
		{"--to " + to + " --text abc --addr 0 --profile fpga", "need a flag"},
		{"--to " + to + " --text abc --addr 0 --profile opencpi-legacy", "need a flag"},
		{"--to " + to + " --text abc --addr 0 --flag-addr 2 --profile fpga", "flags at multiples of 4"},
		{"--to " + to + " --text abc --addr 0 --flag-addr 16 --size 2 --profile fpga", "all 3 bytes have to be one"},
		{"--to " + to + " --flag-addr 0 --flag-value 0xffffffff --profile opencpi2", "take that for no flag"},
		{"--to " + to + "?profile=opencpi2 --flag-addr 0 --flag-value 0xffffffff", "take that for no flag"},
		{"--to " + to + "?speed=1 --addr 0 --text x", `option "speed"`},
	} {
		code, out, stderr := runWith(t, t.Context(), strings.NewReader("abc"), append([]string{"write"}, strings.Fields(c.args)...)...)
		if code != exitUsage || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("write %s: code %d, %q, %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--to " + to + " --addr 0 --file /does/not/exist", "no such file"},
		{"--to " + to + " --addr 0 --file /", "is a directory"},
	} {
		code, out, stderr := runFor(t, t.Context(), append([]string{"write"}, strings.Fields(c.args)...)...)
		if code != exitError || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("write %s: code %d, %q, %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
	sink.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, _, err := sink.ReadFrom(make([]byte, 2048)); err == nil {
		t.Errorf("%d bytes were sent all the same", n)
	}
}

// refusing is memory that takes nothing.
type refusing struct{ *dgrdma.Region }

func (refusing) Admit(dgrdma.EndpointID, *frame.Message) ([]byte, error) {
	return nil, errors.New("refused")
}

func TestWriteSaysWhoDoesNotAnswer(t *testing.T) {
	noGoroutineLeft(t)
	nobody := localString(free(t), 4096, 2) + "?giveup=200ms"
	code, out, stderr := runFor(t, t.Context(), "write", "--to", nobody, "--addr", "0", "--text", "x")
	if code != exitError || !strings.Contains(stderr, "peer 2 at 127.0.0.1") || !strings.Contains(stderr, "peer never answered; perhaps its endpoint string is an old one") ||
		!strings.Contains(stderr, "is it there, and does it take ocpi-udp-rdma:127.0.0.1;") || !strings.HasPrefix(out, "0 bytes in 0 transactions") || strings.Contains(out, "acknowledged") {
		t.Errorf("code %d: %s%s", code, out, stderr)
	}
	e := opened(t, refusing{regionOf(t, 4096)})
	defer e.Close()
	code, out, stderr = runFor(t, t.Context(), "write", "--json", "--to", e.URL()+"?giveup=2s", "--addr", "0", "--text", "xy")
	var got written
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != exitError || !strings.Contains(stderr, "it is there, but does not acknowledge this") || !strings.Contains(stderr, got.Error) || got.Error == "" || got.Bytes != 0 || got.Acknowledged {
		t.Errorf("code %d: %s%s", code, out, stderr)
	}
}

func TestWriteIsInterrupted(t *testing.T) {
	noGoroutineLeft(t)
	memory := regionOf(t, 1<<20)
	e := opened(t, memory)
	defer e.Close()
	for _, c := range []struct {
		count  string
		code   int
		stderr string
		says   string
	}{
		{"0", exitOK, "", "acknowledged by peer"},
		{"1000000", exitInterrupted, "dgrdmacat write: interrupted after ", ", then it failed"},
	} {
		p := asProcess(t, "write", "--to", e.URL(), "--flag-addr", "8", "--flag-value", "1", "--count", c.count, "--interval", "1ms").start()
		if err := memory.WaitFor(t.Context(), 8, 1); err != nil {
			t.Fatal(err)
		}
		p.Process.Signal(syscall.SIGINT)
		if code := p.code(); code != c.code || !strings.HasPrefix(p.err.String(), c.stderr) || !strings.Contains(p.out.String(), c.says) {
			t.Errorf("count %s: code %d: %s%s", c.count, code, &p.out, &p.err)
		}
		memory.Store32(8, 0)
	}
	// While it waits for its input.
	p := asProcess(t, "write", "--to", e.URL(), "--addr", "0", "-")
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p.start()
	if _, err := in.Write(make([]byte, 1<<18)); err != nil { // more than a pipe holds: it reads
		t.Fatal(err)
	}
	p.Process.Signal(syscall.SIGTERM)
	if code := p.code(); code != 128+int(syscall.SIGTERM) || !strings.Contains(p.err.String(), "interrupted") {
		t.Errorf("code %d: %s%s", code, &p.out, &p.err)
	}
}

func TestWriteNoticesAShrinkingFile(t *testing.T) {
	name := fileOf(t, make([]byte, 1000))
	s, err := (&writeOptions{file: name}).openSource(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := os.Truncate(name, 300); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if err := s.fill(b, 200); err != nil {
		t.Error(err)
	}
	if err := s.fill(b, 250); err == nil || !strings.Contains(err.Error(), "became shorter while it was read: it had 1000 bytes, now at most 300") {
		t.Errorf("%v", err)
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]uint64{"0": 0, "4096": 4096, "64k": 65536, "64K": 65536, "3M": 3 << 20, "4g": 4 << 30, "0x10": 16, "0x10k": 16384} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("%s is %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "k", "-1", "+1", "1.5M", "1kk", "18014398509481984k", " 1", "0x", "1_0"} {
		if got, err := parseSize(s); err == nil {
			t.Errorf("%q is %d", s, got)
		}
	}
	for n, want := range map[uint64]string{0: "0 bytes", 1000: "1000 bytes", 65536: "65536 bytes (64 KiB)", 1 << 32: "4294967296 bytes (4 GiB)", 3 << 19: "1572864 bytes (1536 KiB)"} {
		if got := sizeInWords(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

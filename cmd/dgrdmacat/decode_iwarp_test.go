package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/verbs"
)

const iwarpCaptures = "../../rdmap/mpa/testdata/"

func TestDecodeIWARP(t *testing.T) {
	const bounds = iwarpCaptures + "term-write-bounds.pcap"
	const lines = `4      0.014367000 10.99.0.3:52196 > 10.99.0.2:7000 MPA request revision 2, CRC, IRD 4 ORD 4, private data 16 bytes 00007fc86f04f000a3ccc00000020000
6      0.059653000 10.99.0.2:7000 > 10.99.0.3:52196 MPA reply revision 2, CRC, IRD 4 ORD 4, private data 16 bytes 00007fa2eb5c8000a46e420000020000
8      0.080546000 10.99.0.3:52196 > 10.99.0.2:7000 Write STag 0xa46e4200 TO 0x7fa2eb5e7fb8 100 bytes, whole, CRC good
`
	const terminate = `10     0.083781000 10.99.0.2:7000 > 10.99.0.3:52196 Terminate QN 2 MSN 1 MO 0 20 bytes, whole: DDP: tagged buffer: base or bounds violation (1/1/01), for a Write STag 0xa46e4200 TO 0x7fa2eb5e7fb8 of 100 bytes, in siw's bit order, CRC good
`
	const ends = `11     0.083796000 10.99.0.2:7000 > 10.99.0.3:52196 closes the connection (FIN)
12     0.086135000 10.99.0.3:52196 > 10.99.0.2:7000 closes the connection (FIN)
`
	for _, c := range []struct{ args, stdout, stderr string }{
		{bounds, lines + terminate + ends, ""},
		{"--stats " + bounds, lines + terminate + ends, "13 records, 0 of them skipped; 4 frames, 4 shown, 0 malformed, 0 cut\n"},
		{"--count 3 " + bounds, lines, ""},
		{"--port tcp:7000,9 " + bounds, lines + terminate + ends, ""},
		{"--port udp:9 " + bounds, lines + terminate + ends, ""},
		{"--port 9 " + bounds, lines + terminate + ends, ""},
		{"--port tcp:9,8 " + bounds, "", "13 records, 13 of them skipped (13 neither DG/RDMA nor iWARP); 0 frames, 0 shown, 0 malformed, 0 cut\nnone at the ports named by --port: udp:8, tcp:9\n"},
		{"--op terminate " + bounds, terminate, ""},
		{"--op terminate,read --stag 0xa46e4200 --addr 10.99.0.2:7000 " + bounds, terminate, ""},
		{"--op terminate --stag 2758689280 " + bounds, terminate, ""}, // as --json has it
		{"--op read " + bounds, "", "13 records, 0 of them skipped; 4 frames, 0 shown, 0 malformed, 0 cut\n"},
		{"--txn 1 " + bounds, "", "13 records, 0 of them skipped; 4 frames, 0 shown, 0 malformed, 0 cut\n--txn is of DG/RDMA, and all frames are of iWARP\n"},
		{"--port tcp:9 " + captures + "udp-single.pcap", "", "2 records, 2 of them skipped (2 neither DG/RDMA nor iWARP); 0 frames, 0 shown, 0 malformed, 0 cut\nnone at the ports named by --port: tcp:9\n"},
		{"--port tcp:9 " + captures + "ether-multi.pcap", "", "5 records, 5 of them skipped (5 neither DG/RDMA nor iWARP); 0 frames, 0 shown, 0 malformed, 0 cut\nnone at the ports named by --port: tcp:9\n"},
		{"--op send " + captures + "udp-single.pcap", "", "2 records, 0 of them skipped; 2 frames, 0 shown, 0 malformed, 0 cut\n--op is of iWARP, and all frames are of DG/RDMA\n"},
	} {
		code, stdout, stderr := runDecode(t, nil, strings.Fields(c.args)...)
		if code != exitOK || stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%s: code %d\n%s%s\nwant\n%s%s", c.args, code, stdout, stderr, c.stdout, c.stderr)
		}
	}
	for args, want := range map[string]string{
		"--port tcp:0 file": `"tcp:0" is no port`, "--op dance file": `"dance" is no operation: need some of atomic, `, "--stag x file": `"x" is no number of 32 bits`,
	} {
		if code, _, stderr := runDecode(t, nil, strings.Fields(args)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %s", args, code, stderr)
		}
	}
}

// TestDecodeWritesConnections: they are in the file whole, with all that TCP says, from its SYN on, whether they are known by their set-up, by a
// frame that is found, or by their port; and where it ends early, to the record with which it does.
func TestDecodeWritesConnections(t *testing.T) {
	read := func(file string) []string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return recordsIn(t, b)
	}
	ops := read(iwarpCaptures + "ops-short.pcap")
	at := slices.IndexFunc(read(iwarpCaptures+"term-write-bounds.pcap"), func(s string) bool { return strings.Contains(s, hex.EncodeToString([]byte("MPA ID Rep"))) })
	for _, c := range []struct {
		args, file string
		want       []string
	}{
		{"", "ops-short", ops},
		{"--op read", "ops-short", ops},
		{"--port tcp:7000", "ops-short", ops},
		{"--addr 10.99.0.3", "ops-short", ops},
		{"--addr 10.99.0.4", "ops-short", nil},
		{"--port tcp:9", "ops-short", nil},
		{"--count 2", "term-write-bounds", read(iwarpCaptures + "term-write-bounds.pcap")[:at+1]},
	} {
		out := filepath.Join(t.TempDir(), "out.pcapng")
		if code, _, stderr := runDecode(t, nil, append(strings.Fields(c.args), "-w", out, iwarpCaptures+c.file+".pcap")...); code != exitOK {
			t.Fatalf("%s: %s", c.args, stderr)
		}
		if got := read(out); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d records were written, want %d, or others", c.args, len(got), len(c.want))
		}
	}
}

// TestDecodeBegunBefore: a connection whose beginning is not in the capture is shown soon, among what passes beside it, and its times are
// counted from the first packet, as all are.
func TestDecodeBegunBefore(t *testing.T) {
	var w capture.Writer
	b := w.Begin(nil, nil)
	add := func(file string, skip, most int, at time.Duration) {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		src, err := capture.NewFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for n := range skip + most {
			r, err := src.Next()
			if err != nil {
				t.Fatal(err)
			}
			if r.Time = capturetest.Stamp.Add(at + time.Duration(n)*time.Millisecond); n >= skip {
				b = w.Append(b, &r)
			}
		}
	}
	add(iwarpCaptures+"write-65537.pcap", 8, 30, -8*time.Millisecond)
	add(captures+"udp-single.pcap", 0, 2, time.Second)
	code, stdout, stderr := runDecode(t, bytes.NewReader(b), "-")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != exitOK || len(lines) < 10 || !strings.HasPrefix(lines[0], "2      0.001000000 10.99.0.3:") || !strings.HasPrefix(lines[len(lines)-1], "32     1.001000000 127.0.0.1:") {
		t.Fatalf("code %d, %s%s", code, stdout, stderr)
	}
	for i, line := range lines {
		if i > 0 && strings.Fields(line)[1] < strings.Fields(lines[i-1])[1] {
			t.Errorf("before what is earlier: %s", lines[i-1])
		}
	}
	// The report counts from there, too.
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"report", "--json", "-"}, &stdio{bytes.NewReader(b), &out, &errs}); code != exitOK {
		t.Fatal(errs.String())
	}
	var r inspect.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || !r.Capture.Begin.Equal(capturetest.Stamp) || r.Flows[0].First != time.Second || r.Connections[0].First != time.Millisecond {
		t.Errorf("%v: begins %v, flow %v, connection %v", err, r.Capture.Begin, r.Flows[0].First, r.Connections[0].First)
	}
}

// TestDecodeIWARPLive: on an interface TCP is taken of ports that are named, and else not at all.
func TestDecodeIWARPLive(t *testing.T) {
	netns.Require(t)
	h, l := listening(t)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	asked := asProcess(t, "decode", "-i", "lo", "--port", "tcp:"+port).start()
	not := asProcess(t, "decode", "-i", "lo", "-w", "-", "--port", "1").start()
	unasked := asProcess(t, "decode", "-i", "lo", "--port", "udp:1", "--txn", "1").start() // which TCP has none of
	for _, p := range []*process{asked, not, unasked} {
		eventually(t, "it captures", func() bool { return strings.Contains(p.err.String(), "capturing on lo\n") })
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(t.Context())
		if err == nil {
			_, err = r.Accept(t.Context(), &verbs.Options{Posted: []verbs.Receive{{Data: make([]byte, 9)}}})
		}
		accepted <- err
	}()
	q, err := h.Dial(t.Context(), "tcp:127.0.0.1:"+port, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if err := q.Send(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Send is shown", func() bool {
		return strings.Contains(asked.out.String(), "Send QN 0 MSN 1 MO 0 5 bytes, whole, CRC good")
	})
	for _, p := range []*process{asked, not, unasked} {
		p.Process.Signal(syscall.SIGINT)
		if code := p.code(); code != exitOK {
			t.Errorf("code %d, %s", code, p.err.String())
		}
	}
	if n := strings.Count(asked.out.String(), "MPA re"); n != 2 {
		t.Errorf("%d frames of set-up: %s", n, asked.out.String())
	}
	const before = "--port 1 is of UDP: iWARP, and NFS over RDMA, need --port tcp:1\ncapturing on lo\n"
	if said := not.err.String(); !strings.HasPrefix(said, before) {
		t.Error(said)
	}
	const why = "TCP is captured only with --port tcp:PORT\n"
	if said := not.err.String(); !strings.Contains(said, "0 frames, 0 written") || !strings.HasSuffix(said, "\n"+why) || strings.Count(said, why) != 1 {
		t.Error(said)
	}
	for _, p := range []*process{asked, unasked} {
		if said := p.err.String(); strings.Contains(said, why) || !strings.HasPrefix(said, "capturing on lo\n") {
			t.Error(said)
		}
	}
}

// TestDecodeRPC: messages of RPC-over-RDMA have lines after those of their frames, --op rpc shows and counts them alone, and --stag chooses them by their chunks.
func TestDecodeRPC(t *testing.T) {
	const file = "../../rpcrdma/testdata/v3-symlink-acl.pcap.gz"
	for _, c := range []struct {
		args         string
		frames, rpcs int
	}{
		{"", 32, 26}, // with the ends of both sides
		{"--op rpc", 0, 26},
		{"--op rpc --count 5", 0, 5},
		{"--op rpc --json", 0, 26},
		{"--op send", 26, 26},
		{"--op rpc,write", 2, 26},
		{"--stag 0x233b9301", 1, 2},
		{"--op read", 0, 0},
		{"--addr 10.97.0.4", 0, 0},
	} {
		code, stdout, stderr := runDecode(t, nil, append(strings.Fields(c.args), file)...)
		frames, rpcs := 0, 0
		for line := range strings.Lines(stdout) {
			if strings.Contains(line, "RPC-over-RDMA 1 ") || strings.Contains(line, `"kind":"rpc"`) {
				rpcs++
			} else {
				frames++
			}
		}
		if code != exitOK || frames != c.frames || rpcs != c.rpcs {
			t.Errorf("%s: code %d, %d lines of frames and %d of RPC, want %d and %d\n%s", c.args, code, frames, rpcs, c.frames, c.rpcs, stderr)
		}
	}
}

// TestDecodeRPCLive: on an interface, the Call and the Reply of a client and a server of both versions are shown as they pass.
func TestDecodeRPCLive(t *testing.T) {
	netns.Require(t)
	for _, version := range []rpc.Versions{rpc.V1, rpc.V2} {
		_, l := listening(t)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		program := &rpc.Program{Number: 0x20000001, Version: 7, Name: "TEST", Procedures: []rpc.Procedure{{Name: "NULL"}}}
		server := rpc.NewServer(nil)
		server.Handle(program, rpc.HandlerFunc(func(context.Context, *rpc.Call) error { return nil }))
		served := make(chan error, 1)
		go func() { served <- server.ServeRDMA(l) }()
		p := asProcess(t, "decode", "-i", "lo", "--port", "tcp:"+port, "--op", "rpc").start()
		eventually(t, "it captures", func() bool { return strings.Contains(p.err.String(), "capturing on lo\n") })
		client, err := rpc.Dial(t.Context(), "rdma:127.0.0.1:"+port, &rpc.ClientOptions{Versions: version})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Bind(program, rpc.None).Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("RPC-over-RDMA %d ", version)
		eventually(t, "the Reply is shown", func() bool {
			out := p.out.String()
			return strings.Contains(out, name+"Call XID ") && strings.Contains(out, name+"Reply XID ") && strings.Contains(out, " program 0x20000001 version 7 procedure 0, MSG, ") && strings.Contains(out, ": success")
		})
		client.Close()
		server.Close()
		<-served
		p.Process.Signal(syscall.SIGINT)
		if code := p.code(); code != exitOK || strings.Contains(p.out.String(), "wrong") || strings.Contains(p.out.String(), "malformed") {
			t.Errorf("code %d, %s%s", code, p.err.String(), p.out.String())
		}
	}
}

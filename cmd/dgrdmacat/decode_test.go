package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

const captures = "../../frame/testdata/captures/"

func runDecode(t *testing.T, in io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), append([]string{"decode"}, args...), &stdio{in, &out, &err})
	return code, out.String(), err.String()
}

func readCapture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(captures + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	single1 = "1      0.000000000 127.0.0.1:33024 > 127.0.0.1:53313 1->2 id 1 [txn 1 1/2 64 bytes at 0x10000 then 0x1 at 0x40] [txn 1 2/2 8 bytes at 0x8000 then 0x1 at 0x40]\n"
	single2 = "2      0.084232000 127.0.0.1:53313 > 127.0.0.1:33024 2->1 id 1 ack 1+1\n"
)

func TestDecodeGolden(t *testing.T) {
	const single, flag = captures + "udp-single.pcap", captures + "ether-flagonly.pcap"
	const json2 = `{"record":2,"interface":0,"time":"2026-11-21T06:07:41.283396000Z","seconds":0.084232000,"wire":"udp","from":"127.0.0.1:53313","to":"127.0.0.1:33024","prefix":"0100","length":10,"captured":10,"cut":false,"kind":"ack","src":2,"dst":1,"id":1,"ack_start":1,"ack_count":1,"flags":0,"messages":[],"padding":0`
	for _, c := range []struct {
		args           string
		stdout, stderr string
	}{
		{single, single1 + single2, ""},
		{"--stats " + single, single1 + single2, "2 records, 0 of them skipped; 2 frames, 2 shown, 0 malformed, 0 cut\n"},
		{"--port 1 --stats " + single, "", "2 records, 2 of them skipped (2 neither DG/RDMA nor iWARP); 0 frames, 0 shown, 0 malformed, 0 cut\nnone at the ports named by --port: udp:1\n"},
		{"--count 1 --stats " + single + " " + flag, single + ": " + single1, "1 record, 0 of them skipped; 1 frame, 1 shown, 0 malformed, 0 cut\n"},
		{"--port 1,53313 " + single, single1 + single2, ""},
		{"--port 1,udp:53313 " + single, single1 + single2, ""},
		{"--port udp:1 " + single, "", "2 records, 2 of them skipped (2 neither DG/RDMA nor iWARP); 0 frames, 0 shown, 0 malformed, 0 cut\nnone at the ports named by --port: udp:1\n"},
		{"--ethertype 0xf055 " + flag, "", "2 records, 2 of them skipped (2 neither DG/RDMA nor iWARP); 0 frames, 0 shown, 0 malformed, 0 cut\n"},
		{"--ethertype 61506 --absolute " + flag, `1      2026-11-21T06:07:53.578975000Z 02:00:00:00:00:0a > 02:00:00:00:00:0b 1->2 id 1 [txn 1 1/0 then 0x1 at 0x40]
2      2026-11-21T06:07:53.663980000Z 02:00:00:00:00:0b > 02:00:00:00:00:0a 2->1 id 1 ack 1+1
`, ""},
		{single + " --txn 1 " + flag, single + ": " + single1 + flag + ": 1      12.379811000 02:00:00:00:00:0a > 02:00:00:00:00:0b 1->2 id 1 [txn 1 1/0 then 0x1 at 0x40]\n", ""},
		{"--range 0x10000+64 --addr 127.0.0.1 --id 2 " + single, single1, ""},
		{"--range 0x10040 " + single, "", "2 records, 0 of them skipped; 2 frames, 0 shown, 0 malformed, 0 cut\n"},
		{"--addr 127.0.0.1:1,127.0.0.1:33024 --id 3 --id 1 " + single, single1 + single2, ""},
		{"-v --range 0x8000 " + single, `record 1, interface 0, 2026-11-21T06:07:41.199164000Z, 0.000000000 s
  udp 127.0.0.1:33024 > 127.0.0.1:53313, prefix 0200, 130 bytes
  frame 1 from endpoint 1 to endpoint 2, acknowledges 0 from 0, flags 0x1 (write)
  message at byte 10: transaction 1, index 1 of 2, 64 bytes at 0x10000, completion 0x1 at 0x40, type 0, more
  message at byte 98: transaction 1, index 2 of 2, 8 bytes at 0x8000, completion 0x1 at 0x40, type 0
`, ""},
		{"--json --stats " + single + " --addr 127.0.0.1:53313 --txn 2", "", "2 records, 0 of them skipped; 2 frames, 0 shown, 0 malformed, 0 cut\n"},
		{"--json -v " + captures + "udp-flagonly.pcap --count 1", `{"record":1,"interface":0,"time":"2026-11-21T06:07:43.425585000Z","seconds":0.000000000,"wire":"udp","from":"127.0.0.1:45857","to":"127.0.0.1:54108","prefix":"0200","length":34,"captured":34,"cut":false,"kind":"write","src":1,"dst":2,"id":1,"ack_start":0,"ack_count":0,"flags":1,"messages":[{"offset":10,"txn":1,"index":1,"count":0,"addr":0,"length":0,"completion_addr":64,"completion_value":1,"completes":true,"type":0,"more":false}],"padding":0}` + "\n", ""},
	} {
		t.Run(strings.ReplaceAll(c.args, captures, ""), func(t *testing.T) {
			code, stdout, stderr := runDecode(t, nil, strings.Fields(c.args)...)
			if code != exitOK || stdout != c.stdout || stderr != c.stderr {
				t.Errorf("code %d\n%s%s; want\n%s%s", code, stdout, stderr, c.stdout, c.stderr)
			}
		})
	}
	code, stdout, _ := runDecode(t, nil, "--json", "-x", single)
	lines := strings.SplitAfter(stdout, "\n")
	if code != exitOK || lines[1] != json2+`,"padding_bytes":""}`+"\n" || !strings.Contains(lines[0], `"data":"01080f16`) {
		t.Errorf("code %d: %s", code, stdout)
	}
	code, stdout, _ = runDecode(t, nil, "-x", single)
	if code != exitOK || !strings.Contains(stdout, "    00010030  51 58 5f 66 6d 74 7b 82 89 90 97 9e a5 ac b3 ba  QX_fmt{.........\n") {
		t.Errorf("code %d: %s", code, stdout)
	}
}

// pcapOf is a file of packets with a link type.
func pcapOf(link uint32, packets ...[]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xA1B2C3D4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0)
	b = le.AppendUint32(b, link)
	for i, p := range packets {
		b = le.AppendUint32(le.AppendUint32(b, 1_600_000_000), uint32(i))
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(p))), uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

func ngOf(link uint16, packets ...[]byte) []byte {
	le := binary.LittleEndian
	block := func(kind uint32, body []byte) []byte {
		body = append(body, make([]byte, -len(body)&3)...)
		b := le.AppendUint32(nil, kind)
		b = append(le.AppendUint32(b, uint32(len(body)+12)), body...)
		return le.AppendUint32(b, uint32(len(body)+12))
	}
	b := block(0x0A0D0D0A, append(le.AppendUint32(nil, 0x1A2B3C4D), 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255))
	b = append(b, block(1, append(le.AppendUint16(nil, link), 0, 0, 0, 0, 0, 0))...)
	for _, p := range packets {
		body := make([]byte, 20)
		le.PutUint32(body[12:], uint32(len(p)))
		le.PutUint32(body[16:], uint32(len(p)))
		b = append(b, block(6, append(body, p...))...)
	}
	return b
}

// oneFrame is a frame from 1 to 2 with one message.
func oneFrame(id frame.Seq, n int) []byte {
	b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize+n)
	(&frame.Header{Dst: 2, Src: 1, Seq: id, Flags: frame.FlagMessages}).Put(b)
	var w frame.Writer
	w.Init(b)
	w.Add(&frame.Message{Txn: 77, CompletionAddr: 64, CompletionValue: 5, Count: 1, Index: 1, Addr: 0x2000, Len: uint16(n)})
	return b
}

func prefixed(frames ...[]byte) (b []byte) {
	for _, f := range frames {
		b = append(append(b, 0, 0), f...)
	}
	return b
}

func inUDP(payload []byte) []byte {
	be := binary.BigEndian
	b := be.AppendUint16([]byte{0x9C, 0x41, 0x9C, 0x42}, uint16(8+len(payload)))
	return append(append(b, 0, 0), payload...)
}

func inIPv4(payload []byte) []byte {
	u := inUDP(payload)
	b := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(u)))
	return append(append(b, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2), u...)
}

func inIPv6(payload []byte) []byte {
	u := inUDP(payload)
	b := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(u)))
	b = append(b, 17, 64, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	return append(append(b, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2), u...)
}

func TestDecodeEveryWrapping(t *testing.T) {
	f := oneFrame(9, 5)
	ip4, ip6 := inIPv4(prefixed(f)), inIPv6(prefixed(f))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	macs := []byte{2, 0, 0, 0, 0, 0xB, 2, 0, 0, 0, 0, 0xA}
	mac := []byte{2, 0, 0, 0, 0, 0xA, 0, 0}
	const ether, cooked = "02:00:00:00:00:0a > 02:00:00:00:00:0b", "02:00:00:00:00:0a > 00:00:00:00:00:00"
	const udp4, udp6 = "10.0.0.1:40001 > 10.0.0.2:40002", "[fd00::1]:40001 > [fd00::2]:40002"
	for _, c := range []struct {
		link   uint16
		packet []byte
		ends   string
	}{
		{1, join(macs, []byte{0xF0, 0x42}, f), ether},
		{1, join(macs, []byte{0x81, 0, 0, 5, 0xF0, 0x42}, f), ether},
		{1, join(macs, []byte{0x88, 0xA8, 0, 5, 0x81, 0, 0, 5, 8, 0}, ip4), udp4},
		{1, join(macs, []byte{0x86, 0xDD}, ip6), udp6},
		{113, join([]byte{0, 0, 0, 1, 0, 6}, mac, []byte{0xF0, 0x42}, f), cooked},
		{113, join([]byte{0, 0, 0, 1, 0, 6}, mac, []byte{8, 0}, ip4), udp4},
		{276, join([]byte{0xF0, 0x42, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6}, mac, f), cooked},
		{276, join([]byte{0x86, 0xDD, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6}, mac, ip6), udp6},
		{0, join([]byte{2, 0, 0, 0}, ip4), udp4},
		{108, join([]byte{0, 0, 0, 24}, ip6), udp6},
		{101, ip4, udp4}, {12, ip6, udp6}, {14, ip4, udp4}, {228, ip4, udp4}, {229, ip6, udp6},
	} {
		const says = " 1->2 id 9 [txn 77 1/1 5 bytes at 0x2000 then 0x5 at 0x40]\n"
		for name, file := range map[string][]byte{"pcap": pcapOf(uint32(c.link), c.packet), "pcapng": ngOf(c.link, c.packet)} {
			for _, from := range []string{writeFile(t, "c", file), writeFile(t, "c.gz", capturetest.Gzip(t, file)), "-"} {
				code, stdout, stderr := runDecode(t, bytes.NewReader(file), "--absolute", from)
				if code != exitOK || stderr != "" || !strings.HasSuffix(stdout, "Z "+c.ends+says) || strings.Count(stdout, "\n") != 1 {
					t.Errorf("link type %d in %s from %s: code %d, %s%s", c.link, name, from, code, stdout, stderr)
				}
			}
		}
	}
}

// Several datagrams in one packet, as offload shows them, and malformed ones.
func TestDecodeJoinedAndMalformed(t *testing.T) {
	bad := oneFrame(3, 20)
	bad[frame.HeaderSize+20] = 21
	file := pcapOf(101, inIPv4(prefixed(oneFrame(1, 20), oneFrame(2, 20), oneFrame(3, 7))), inIPv4(prefixed(bad)))
	for args, want := range map[string]string{
		"": `1.1    0.000000000 10.0.0.1:40001 > 10.0.0.2:40002 1->2 id 1 [txn 77 1/1 20 bytes at 0x2000 then 0x5 at 0x40]
1.2    0.000000000 10.0.0.1:40001 > 10.0.0.2:40002 1->2 id 2 [txn 77 1/1 20 bytes at 0x2000 then 0x5 at 0x40]
1.3    0.000000000 10.0.0.1:40001 > 10.0.0.2:40002 1->2 id 3 [txn 77 1/1 7 bytes at 0x2000 then 0x5 at 0x40]
2 records, 1 of them skipped (1 neither DG/RDMA nor iWARP); 3 frames, 3 shown, 0 malformed, 0 cut; 1 record of several datagrams
`,
		"--port 40002 --range 0x2013": `1.1    0.000000000 10.0.0.1:40001 > 10.0.0.2:40002 1->2 id 1 [txn 77 1/1 20 bytes at 0x2000 then 0x5 at 0x40]
1.2    0.000000000 10.0.0.1:40001 > 10.0.0.2:40002 1->2 id 2 [txn 77 1/1 20 bytes at 0x2000 then 0x5 at 0x40]
2      0.000001000 10.0.0.1:40001 > 10.0.0.2:40002 1->2 id 3 [txn 77 1/1 21 bytes at 0x2000 then 0x5 at 0x40] malformed at byte 10 of 54: data length of the message reaches past the end of the datagram
2 records, 0 of them skipped; 4 frames, 3 shown, 1 malformed, 0 cut; 1 record of several datagrams
`,
	} {
		code, stdout, stderr := runDecode(t, bytes.NewReader(file), append(strings.Fields(args), "-", "--stats")...)
		if code != exitOK || stdout+stderr != want {
			t.Errorf("code %d\n%s%s", code, stdout, stderr)
		}
	}
}

func TestDecodeDamagedFiles(t *testing.T) {
	whole := readCapture(t, "udp-single")
	second := len(whole) - 16 - 14 - 20 - 8 - 12
	patched := bytes.Clone(whole)
	binary.LittleEndian.PutUint32(patched[second+8:], 1<<30)
	dir := t.TempDir()
	for _, c := range []struct {
		name, file string
		stdout     string
		stderr     string
	}{
		{"cut", writeFile(t, "f", whole[:len(whole)-1]), single1, fmt.Sprintf("FILE is damaged: it ends within record 2, which begins at offset %d; what is before it was shown", second)},
		{"patched", writeFile(t, "f", patched), single1, fmt.Sprintf("FILE is damaged: record 2 at offset %d: record claims 1073741824 captured bytes; what is before it was shown", second)},
		{"header", writeFile(t, "f", whole[:20]), "", "FILE ends within its header"},
		{"empty", writeFile(t, "f", nil), "", "FILE: it is empty, and a capture has at least a header"},
		{"device", os.DevNull, "", "FILE: it is empty, and a capture has at least a header"},
		{"three bytes", writeFile(t, "f", whole[:3]), "", "FILE: neither pcap nor pcapng"},
		{"text", writeFile(t, "f", []byte("no capture at all, but some text")), "", "FILE: neither pcap nor pcapng"},
		{"link type", writeFile(t, "f", pcapOf(147)), "", "FILE: link type 147 is not supported"},
		{"zipped", writeFile(t, "f", capturetest.Gzip(t, whole)[:150]), "", "FILE is damaged: it ends within record 1, which begins at offset 24; what is before it was shown"},
		{"missing", filepath.Join(dir, "none"), "", "FILE: no such file or directory"},
		{"directory", dir, "", "FILE: is a directory"},
	} {
		code, stdout, stderr := runDecode(t, nil, c.file)
		if want := "dgrdmacat decode: " + strings.ReplaceAll(c.stderr, "FILE", c.file) + "\n"; code != exitError || stdout != c.stdout || stderr != want {
			t.Errorf("%s: code %d\n%s%s; want\n%s%s", c.name, code, stdout, stderr, c.stdout, want)
		}
		// The next file is shown all the same.
		code, stdout, _ = runDecode(t, nil, c.file, captures+"udp-single.pcap")
		if code != exitError || strings.Count(stdout, "\n") != strings.Count(c.stdout, "\n")+2 {
			t.Errorf("%s: code %d\n%s", c.name, code, stdout)
		}
	}
	code, stdout, stderr := runDecode(t, bytes.NewReader(whole[:len(whole)-1]), "-", "--stats")
	if code != exitError || stdout != single1 || !strings.HasPrefix(stderr, "1 record, ") || !strings.Contains(stderr, "decode: standard input is damaged: it ends within record 2") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}

func TestDecodeCannotWrite(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"decode", captures + "udp-many.pcap", captures + "udp-many.pcap"}, &stdio{nil, full, &stderr})
	if code != exitError || stderr.String() != "dgrdmacat decode: write /dev/full: no space left on device\n" {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}

// What comes through a pipe is shown at once, and an interrupt ends it well.
func TestDecodeFollowsAPipe(t *testing.T) {
	noGoroutineLeft(t)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	shown, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"decode", "--stats", "-"}, &stdio{in, out, &stderr})
		out.Close()
	}()
	whole := readCapture(t, "udp-single")
	for _, part := range []struct{ bytes, text string }{
		{string(whole[:len(whole)-40]), single1}, {string(whole[len(whole)-40:]), single2},
	} {
		if _, err := feed.WriteString(part.bytes); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(part.text))
		if _, err := io.ReadFull(shown, got); err != nil || string(got) != part.text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	cancel()
	select {
	case code := <-ended:
		if code != exitOK || stderr.String() != "2 records, 0 of them skipped; 2 frames, 2 shown, 0 malformed, 0 cut\n" {
			t.Errorf("code %d, %s", code, stderr.String())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("an interrupt does not end it")
	}
}

func TestDecodeOfAFileIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := runFor(t, ctx, "decode", captures+"udp-single.pcap", captures+"udp-many.pcap")
	if want := "dgrdmacat decode: " + captures + "udp-single.pcap: interrupted\n"; code != exitInterrupted || stdout != "" || stderr != want {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}

// repeated is a capture that goes on for long.
type repeated struct {
	header, record []byte
	rest           []byte
	left           int
}

func (r *repeated) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		switch {
		case r.header != nil:
			r.rest, r.header = r.header, nil
		case r.left == 0:
			return 0, io.EOF
		default:
			r.rest, r.left = r.record, r.left-1
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestDecodeNeedsConstantMemory(t *testing.T) {
	const records, joined = 3000, 40
	var frames [][]byte
	for i := range frame.Seq(joined) {
		frames = append(frames, oneFrame(i, 1432))
	}
	file := pcapOf(101, inIPv4(prefixed(frames...)))
	in := &repeated{header: file[:24], record: file[24:], left: records}
	lines := &lineCounter{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code := run(t.Context(), []string{"decode", "--json", "-"}, &stdio{in, lines, io.Discard})
	runtime.ReadMemStats(&after)
	if code != exitOK || lines.n != records*joined || !json.Valid(lines.last) {
		t.Errorf("code %d, %d lines, the last one %s", code, lines.n, lines.last)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes allocated for %d frames", grown, records*joined)
	}
}

type lineCounter struct {
	n    int
	last []byte
}

func (l *lineCounter) Write(b []byte) (int, error) {
	l.n += bytes.Count(b, []byte("\n"))
	l.last = append(l.last[:0], b[bytes.LastIndexByte(b[:len(b)-1], '\n')+1:]...)
	return len(b), nil
}

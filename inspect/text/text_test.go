package text_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

const captures = "../../frame/testdata/captures"

// printed returns the text of all frames of a capture that a filter lets through.
func printed(t testing.TB, name string, p text.Printer, f text.Filter) string {
	t.Helper()
	var b []byte
	var v text.View
	for k, err := range captured.ReadFile(filepath.Join(captures, name+".pcap"), captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Start.IsZero() {
			p.Start = k.Time
		}
		if v.Decode(k); f.Match(&v) {
			b = p.Append(b, &v)
		}
	}
	return string(b)
}

func TestGolden(t *testing.T) {
	var got strings.Builder
	for _, c := range []struct {
		name    string
		printer text.Printer
	}{
		{"udp-single", text.Printer{}},
		{"udp-single", text.Printer{Absolute: true, File: "one.pcap"}},
		{"udp-single", text.Printer{Style: text.Fields, File: "one.pcap"}},
		{"udp-single", text.Printer{Style: text.Fields, Bytes: true}},
		{"udp-single", text.Printer{Style: text.JSON}},
		{"udp-single", text.Printer{Style: text.JSON, Bytes: true, File: "\x00\"<é\xff"}},
		{"udp-single-nometa", text.Printer{}},
		{"udp-flagonly", text.Printer{Style: text.Fields}},
		{"ether-loss5-pingpong", text.Printer{}},
		{"ether2-coalesce", text.Printer{}},
		{"ether2-odd", text.Printer{Style: text.Fields}},
		{"fpga-single", text.Printer{Style: text.Fields}},
		{"fpga-single", text.Printer{Style: text.JSON}},
		{"fpga-send-w4-ocpi-dg2", text.Printer{}},
	} {
		got.WriteString("# " + c.name + "\n" + printed(t, c.name, c.printer, text.Filter{}))
	}
	file := filepath.Join("testdata", "captures.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got.String(), string(want))
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Errorf("%d lines, want %d", len(g), len(w))
	}
}

// object is what doc.go says about a frame in JSON.
type object struct {
	File             *string
	Record           int
	Segment          int
	Segments         int
	Interface        int
	InterfaceName    string `json:"interface_name"`
	Time             *time.Time
	Seconds          *json.Number
	Wire, From, To   string
	Prefix           *string
	Length, Captured int
	Cut              bool
	Kind             string
	Src, Dst         *int
	ID               *int
	AckStart         *int `json:"ack_start"`
	AckCount         *int `json:"ack_count"`
	Flags            *int
	Session          *struct {
		Tag, Sender, Receiver uint32
		UpTo                  uint32 `json:"up_to"`
		Copy, Size, Reason    int
		Check                 uint32
		Services              *[]struct {
			Name string
			Base uint32
		}
		Knows   int
		Refusal *struct {
			Why  int
			ID   uint16
			Size uint64
		}
		Answers *struct {
			ID   uint32
			UpTo uint32 `json:"up_to"`
			Copy int
		}
		Echo *struct {
			ID    uint32
			Copy  int
			Again bool
			Delay int `json:"delay_us"`
		}
		Ranges []struct {
			First uint32
			Count int
		}
		Marks *struct{ ECT0, CE uint32 }
	}
	Sealed *struct {
		Counter     uint64
		Key, Length int
		Salt        string
	}
	Handshake *struct {
		Is      string
		Nonce   *string
		Unasked *bool
	}
	ChecksumRight *bool `json:"checksum_right"`
	Messages      []struct {
		Offset          int
		Txn             uint32
		Index, Count    int
		Addr            uint32
		Length          int
		CompletionAddr  *uint32 `json:"completion_addr"`
		CompletionValue *uint32 `json:"completion_value"`
		Completes       bool
		Type            int
		More            bool
		Services        []struct {
			Name string
			Base uint32
		}
		Knows int
		Data  *string
	}
	Padding      int
	PaddingBytes *string `json:"padding_bytes"`
	Malformed    *struct {
		Offset int
		Reason string
	}
}

func objectOf(t testing.TB, line string) (o object) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	if err := d.Decode(new(object)); err != io.EOF || strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
		t.Fatalf("not one line with one object: %q", line)
	}
	return o
}

// TestJSONSaysTheBytes builds every frame of every capture again from what JSON
// says about it.
func TestJSONSaysTheBytes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		var v text.View
		p := text.Printer{Style: text.JSON, Bytes: true}
		for k, err := range captured.ReadFile(file, captured.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Start.IsZero() {
				p.Start = k.Time
			}
			v.Decode(k)
			o := objectOf(t, string(p.Append(nil, &v)))
			if got := o.bytes(t); !bytes.Equal(got, zeroPads(k.Data)) {
				t.Errorf("%s, record %d:\n got %x\nwant %x", file, k.Record, got, k.Data)
			}
			seconds, err := o.Seconds.Float64()
			if err != nil || time.Duration(seconds*1e9+0.5) != k.Time.Sub(p.Start) || !o.Time.Equal(k.Time) || o.Malformed != nil || o.Cut {
				t.Errorf("%s, record %d: %+v", file, k.Record, o)
			}
		}
	}
}

// The words of the completion are there also when both are all ones, and write
// nothing: observation V8 (docs/peers.md). The last of the engine's transactions
// is so.
func TestJSONHasEveryCompletion(t *testing.T) {
	var completes []bool
	for line := range strings.Lines(printed(t, "fpga-send-w4-ocpi-dg2", text.Printer{Style: text.JSON}, text.Filter{})) {
		o := objectOf(t, line)
		for i, m := range o.Messages {
			if m.CompletionAddr == nil || m.CompletionValue == nil {
				t.Fatalf("record %d, message %d has no completion words: %s", o.Record, i, line)
			}
			if none := *m.CompletionAddr == frame.NoCompletion && *m.CompletionValue == frame.NoCompletion; none == m.Completes {
				t.Errorf("record %d, message %d completes %v, with %#x at %#x", o.Record, i, m.Completes, *m.CompletionValue, *m.CompletionAddr)
			}
			completes = append(completes, m.Completes)
		}
	}
	if n := len(completes); n < 2 || completes[n-1] || !completes[0] {
		t.Errorf("completes %v", completes)
	}
}

func (o *object) bytes(t *testing.T) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(*o.Dst))
	b = le.AppendUint16(b, uint16(*o.Src))
	if o.Session != nil { // of a handshake
		b = append(le.AppendUint32(b, o.Session.Check), 0, byte(*o.Flags))
	} else {
		b = le.AppendUint16(b, uint16(*o.ID))
		b = le.AppendUint16(b, uint16(*o.AckStart))
		b = append(b, byte(*o.AckCount), byte(*o.Flags))
	}
	for _, m := range o.Messages {
		b = append(b, make([]byte, m.Offset-len(b))...)
		b = le.AppendUint32(b, m.Txn)
		b = le.AppendUint32(le.AppendUint32(b, *m.CompletionAddr), *m.CompletionValue)
		b = le.AppendUint16(le.AppendUint16(b, uint16(m.Count)), uint16(m.Index))
		b = le.AppendUint16(le.AppendUint32(b, m.Addr), uint16(m.Length))
		b = append(b, byte(m.Type), 0)
		if m.More {
			b[len(b)-1] = 1
		}
		b = append(b, unhex(t, *m.Data)...)
	}
	if o.Session != nil && o.Session.Services != nil {
		all := *o.Session.Services
		list := append(make([]byte, 0, frame.ServicesSize), 0x53, byte(len(all)), byte(o.Session.Knows), 0)
		for _, s := range all {
			list = append(list, make([]byte, 8)...)
			copy(list[len(list)-8:], s.Name)
			list = le.AppendUint32(list, s.Base)
		}
		b = append(b, list[:cap(list)]...)
	}
	return append(b, unhex(t, *o.PaddingBytes)...)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// zeroPads clears the bytes between the messages of a frame.
func zeroPads(b []byte) []byte {
	b = bytes.Clone(b)
	for at := frame.HeaderSize; b[9] != 0 && b[at+23] != 0; {
		end := at + frame.MessageHeaderSize + int(binary.LittleEndian.Uint16(b[at+20:]))
		at = end + frame.PadLen(end-frame.HeaderSize)
		clear(b[end:at])
	}
	return b
}

// odd are frames that no capture has: cut, malformed, alone, joined, without time.
func odd() []captured.Packet {
	b := make([]byte, 200)
	h := frame.Header{Dst: 2, Src: 1, Seq: 9, AckStart: 4, AckCount: 2, Flags: frame.FlagMessages}
	h.Put(b)
	var w frame.Writer
	w.Init(b)
	for i := range 3 {
		copy(w.Add(&frame.Message{Txn: 7, CompletionAddr: 0x40, CompletionValue: 1, Count: 3, Index: uint16(i + 1), Addr: 0x1000, Len: 5}), "Hi \x00~")
	}
	whole := b[:w.Len()]
	change := func(at int, v byte) []byte {
		c := bytes.Clone(whole)
		c[at] = v
		return c
	}
	ether := captured.Packet{Packet: capture.Packet{
		Record: 12345, Time: time.Unix(1e9, 5).UTC(),
		Src: capture.Addr{MAC: [6]byte{2, 0, 0, 0, 0, 1}}, Dst: capture.Addr{MAC: [6]byte{2, 0, 0, 0, 0xAB, 2}},
	}}
	udp := captured.Packet{Prefix: []byte{2, 0}, Packet: capture.Packet{
		Record: 1, Interface: 3, Segment: 2, Segments: 44, Time: time.Unix(999999998, 1).UTC(),
		Src: capture.Addr{UDP: netip.MustParseAddrPort("[fd00::1]:7100")}, Dst: capture.Addr{UDP: netip.MustParseAddrPort("[::ffff:10.0.0.2]:1")},
	}}
	with := func(p captured.Packet, data []byte, length int) captured.Packet {
		p.Data, p.Length = data, length
		return p
	}
	timeless := with(ether, whole[:5], 5)
	timeless.Time = time.Time{}
	padded := append(bytes.Clone(whole), bytes.Repeat([]byte{0xEE}, 40)...)
	checked := frame.AddChecksum(append(make([]byte, 0, len(whole)+4), whole...))
	changed := bytes.Clone(checked)
	changed[40] ^= 1
	return []captured.Packet{
		with(udp, whole, len(whole)),
		with(ether, padded, len(padded)),
		with(ether, whole[:10], len(whole)), with(ether, whole[:40], len(whole)), with(udp, whole[:4], len(whole)), with(udp, nil, 9),
		with(ether, whole[:40], 45), with(ether, change(30, 90)[:40], len(whole)), with(ether, change(30, 90), len(whole)),
		with(ether, whole[:60], 60), with(ether, whole[:41], 41), with(ether, whole[:10], 10), timeless,
		with(ether, change(9, 0x80)[:10], 10), with(ether, append(change(9, 0)[:10], make([]byte, 36)...), 46),
		with(udp, checked, len(checked)), with(ether, changed, len(changed)), with(ether, checked[:60], len(checked)),
	}
}

func TestOddFrames(t *testing.T) {
	var got []byte
	var v text.View
	for _, style := range []text.Style{text.Line, text.Fields, text.JSON} {
		p := text.Printer{Style: style, Bytes: style == text.Fields, Start: time.Unix(999999999, 0)}
		for _, k := range odd() {
			v.Decode(&k)
			got = p.Append(got, &v)
		}
	}
	file := filepath.Join("testdata", "odd.golden")
	if *update {
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, string(got), string(want))
}

func TestNothingIsAllocated(t *testing.T) {
	frames := append(odd()[:2], *introduction(services(t, "memory", "link"), 0))
	frames = append(frames, sealedPackets(t)...)
	for _, style := range []text.Style{text.Line, text.Fields, text.JSON} {
		p := text.Printer{Style: style, Bytes: true, Absolute: true, File: "a"}
		var v text.View
		var b []byte
		show := func() {
			for i := range frames {
				v.Decode(&frames[i])
				b = p.Append(b[:0], &v)
			}
		}
		show()
		if n := fixture.Allocations(100, show); n != 0 {
			t.Errorf("style %d: %v allocations", style, n)
		}
	}
}

func TestTimesFarApart(t *testing.T) {
	at := func(seconds, nanos int64) time.Time { return time.Unix(seconds, nanos) }
	for _, c := range []struct {
		start, time time.Time
		want        string
	}{
		{at(5, 7), at(5, 7), "0.000000000"},
		{at(5, 7), at(5, 6), "-0.000000001"},
		{at(5, 7), at(4, 8), "-0.999999999"},
		{at(5, 7), at(4, 6), "-1.000000001"},
		{at(5, 7), at(7, 6), "1.999999999"},
		{at(5, 7), at(253402300799, 999999999), "253402300794.999999992"},
		{at(253402300799, 0), at(0, 1), "-253402300798.999999999"},
		{at(5, 7), at(253402300800, 0), "-"},
		{at(5, 7), time.Time{}, "-"},
		{at(5, 7), at(-1<<62, 0), "-"},
	} {
		var v text.View
		v.Decode(&captured.Packet{Packet: capture.Packet{Time: c.time}})
		if got := strings.Fields(string((&text.Printer{Start: c.start}).Append(nil, &v)))[1]; got != c.want {
			t.Errorf("%v since %v: %s, want %s", c.time, c.start, got, c.want)
		}
	}
}

// A file may give an interface any name: it is one word in a line.
func TestInterfaceNames(t *testing.T) {
	for name, want := range map[string]string{
		"eth0": "eth0", "": "#7", "Wi Fi": `"Wi Fi"`, "a\n2 b": `"a\n2 b"`, "\x1b[2J": `"\x1b[2J"`, `"`: `"\""`, "été": `"été"`,
	} {
		k := odd()[0]
		k.Interface, k.Name = 7, name
		var v text.View
		v.Decode(&k)
		p := text.Printer{Interfaces: true, Start: k.Time}
		if line := string(p.Append(nil, &v)); !strings.HasPrefix(line, "1.2    0.000000000 "+want+" [fd00::1]:7100 > ") || strings.Count(line, "\n") != 1 {
			t.Errorf("%q: %q", name, line)
		}
		p = text.Printer{Style: text.JSON}
		line := string(p.Append(nil, &v))
		if o := objectOf(t, line); o.InterfaceName != name || strings.Contains(line, "interface_name") != (name != "") {
			t.Errorf("%q: %q", name, o.InterfaceName)
		}
		p = text.Printer{Style: text.Fields}
		if got := string(p.Append(nil, &v)); name != "" && !strings.HasPrefix(got, "record 1, datagram 2 of 44, interface 7 "+want+", ") {
			t.Errorf("%q: %q", name, got)
		}
	}
}

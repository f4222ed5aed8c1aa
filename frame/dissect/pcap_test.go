package dissect

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
)

var stamp = time.Date(2021, 3, 4, 5, 6, 7, 123456000, time.UTC)

// captured is a packet to be put in a file.
type captured struct {
	link   int
	data   []byte
	length int // 0: all was captured
}

func (c captured) wire() uint32 { return uint32(max(c.length, len(c.data))) }

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// pcapFile writes the classic format.
func pcapFile(o byteOrder, nano bool, packets ...captured) []byte {
	magic, fraction := uint32(0xA1B2C3D4), uint32(stamp.Nanosecond()/1000)
	if nano {
		magic, fraction = 0xA1B23C4D, uint32(stamp.Nanosecond())
	}
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = o.AppendUint32(b, 65535)
	b = o.AppendUint32(b, uint32(packets[0].link))
	for _, p := range packets {
		b = o.AppendUint32(b, uint32(stamp.Unix()))
		b = o.AppendUint32(b, fraction)
		b = o.AppendUint32(b, uint32(len(p.data)))
		b = append(o.AppendUint32(b, p.wire()), p.data...)
	}
	return b
}

func block(o byteOrder, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + 12)
	b := o.AppendUint32(nil, kind)
	b = append(o.AppendUint32(b, n), body...)
	return o.AppendUint32(b, n)
}

func sectionBlock(o byteOrder) []byte {
	b := o.AppendUint32(nil, 0x1A2B3C4D)
	b = o.AppendUint16(b, 1)
	b = o.AppendUint16(b, 0)
	return block(o, 0x0A0D0D0A, append(b, bytes.Repeat([]byte{0xFF}, 8)...))
}

// interfaceBlock describes an interface; options are appended as they are.
func interfaceBlock(o byteOrder, link int, snap uint32, options ...byte) []byte {
	b := o.AppendUint16(nil, uint16(link))
	b = o.AppendUint16(b, 0)
	return block(o, 1, append(o.AppendUint32(b, snap), options...))
}

func option(o byteOrder, code uint16, value ...byte) []byte {
	b := o.AppendUint16(nil, code)
	b = append(o.AppendUint16(b, uint16(len(value))), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func enhancedBlock(o byteOrder, iface int, ticks uint64, p captured) []byte {
	b := o.AppendUint32(nil, uint32(iface))
	b = o.AppendUint32(b, uint32(ticks>>32))
	b = o.AppendUint32(b, uint32(ticks))
	b = o.AppendUint32(b, uint32(len(p.data)))
	b = append(o.AppendUint32(b, p.wire()), p.data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return block(o, 6, append(b, option(o, 2, 1, 0, 0, 0)...))
}

// ngFile gives each packet an interface of its own.
func ngFile(o byteOrder, packets ...captured) []byte {
	b := sectionBlock(o)
	for i, p := range packets {
		b = append(b, interfaceBlock(o, p.link, 0)...)
		b = append(b, enhancedBlock(o, i, uint64(stamp.UnixMicro()), p)...)
	}
	return b
}

// found is a copy of a Packet.
type found struct {
	record    int
	time      time.Time
	src, dst  string
	prefix    []byte
	data      []byte
	cut       bool
	iface     int
	wireBytes int
	segment   string
}

func readAll(file []byte, o Options) (all []found, stats Stats, err error) {
	r, err := NewReader(bytes.NewReader(file), o)
	if err != nil {
		return nil, Stats{}, err
	}
	for {
		p, err := r.Next()
		if err == io.EOF {
			return all, r.Stats(), nil
		}
		if err != nil {
			if _, again := r.Next(); again != err {
				return all, r.Stats(), errors.New("the error does not stay")
			}
			return all, r.Stats(), err
		}
		all = append(all, found{p.Record, p.Time, p.Src.String(), p.Dst.String(),
			bytes.Clone(p.Prefix), bytes.Clone(p.Data), p.Cut(), p.Interface, p.Length,
			fmt.Sprintf("%d/%d", p.Segment, p.Segments)})
	}
}

// wrapped is the sample frame in every wrapping that is understood.
func wrapped(t testing.TB) map[string]captured {
	_, f := sample(t)
	d := &DGRDMA{Frame: parsed(t, f)}
	x := &Prefix{Value: [2]byte{2, 0}}
	ip4 := serialize(t, ipv4(), udp(), x, d)
	ip6 := serialize(t, ipv6(), udp(), x, d)
	options := ipv4()
	options.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 1}}
	extended := bytes.Clone(ip6)
	extended[6] = 0
	extended = append(extended[:40:40], append([]byte{60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0}, ip6[40:]...)...)
	binary.BigEndian.PutUint16(extended[4:], uint16(len(extended)-40))
	authenticated := append(bytes.Clone(ip6[:40]), 17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	authenticated[6] = 51
	authenticated = append(authenticated, ip6[40:]...)
	binary.BigEndian.PutUint16(authenticated[4:], uint16(len(authenticated)-40))
	dot1q := func(kind layers.EthernetType) *layers.Dot1Q { return &layers.Dot1Q{VLANIdentifier: 5, Type: kind} }
	mac := []byte{2, 0, 0, 0, 0, 1, 0, 0}
	cooked := append([]byte{0, 0, 0, 1, 0, 6}, mac...)
	cooked2 := append([]byte{0, 0, 0, 0, 0, 3, 0, 1, 0, 6}, mac...)

	return map[string]captured{
		"ethernet":      {1, serialize(t, ethernet(DefaultEtherType), d), 0},
		"ethernetVLAN":  {1, serialize(t, ethernet(layers.EthernetTypeDot1Q), dot1q(DefaultEtherType), d), 0},
		"ethernetQinQ":  {1, serialize(t, ethernet(layers.EthernetTypeQinQ), dot1q(layers.EthernetTypeDot1Q), dot1q(DefaultEtherType), d), 0},
		"udp4VLAN":      {1, serialize(t, ethernet(layers.EthernetTypeDot1Q), dot1q(layers.EthernetTypeIPv4), gopacket.Payload(ip4)), 0},
		"udp4padded":    {1, append(serialize(t, ethernet(layers.EthernetTypeIPv4), gopacket.Payload(ip4)), "trailer"...), 0},
		"udp4options":   {101, serialize(t, options, udp(), x, d), 0},
		"udp6":          {1, serialize(t, ethernet(layers.EthernetTypeIPv6), gopacket.Payload(ip6)), 0},
		"udp6extended":  {101, extended, 0},
		"udp6auth":      {101, authenticated, 0},
		"raw4":          {101, ip4, 0},
		"raw6":          {101, ip6, 0},
		"rawBSD":        {12, ip4, 0},
		"rawOpenBSD":    {14, ip4, 0},
		"linkIPv4":      {228, ip4, 0},
		"linkIPv6":      {229, ip6, 0},
		"null":          {0, append([]byte{2, 0, 0, 0}, ip4...), 0},
		"loop":          {108, append([]byte{0, 0, 0, 24}, ip6...), 0},
		"cooked":        {113, append(append(cooked, 0xF0, 0x42), f...), 0},
		"cookedUDP":     {113, append(append(cooked[:14:14], 8, 0), ip4...), 0},
		"cookedV2":      {276, append(append([]byte{0xF0, 0x42}, cooked2...), f...), 0},
		"cookedV2UDP":   {276, append(append([]byte{0x86, 0xDD}, cooked2...), ip6...), 0},
		"cookedV2VLAN":  {276, append(append([]byte{0x81, 0}, cooked2...), append([]byte{0, 5, 0xF0, 0x42}, f...)...), 0},
		"segmentedIPv4": {101, append([]byte{ip4[0], ip4[1], 0, 0}, ip4[4:]...), 0},
	}
}

func TestWrappings(t *testing.T) {
	_, f := sample(t)
	for name, c := range wrapped(t) {
		t.Run(name, func(t *testing.T) {
			formats := map[string][]byte{
				"micro":     pcapFile(binary.LittleEndian, false, c),
				"nano":      pcapFile(binary.LittleEndian, true, c),
				"microBig":  pcapFile(binary.BigEndian, false, c),
				"nanoBig":   pcapFile(binary.BigEndian, true, c),
				"ng":        ngFile(binary.LittleEndian, c),
				"ngBig":     ngFile(binary.BigEndian, c),
				"gzip":      compress(t, pcapFile(binary.LittleEndian, false, c)),
				"ngGzipped": compress(t, ngFile(binary.BigEndian, c)),
			}
			for format, file := range formats {
				all, stats, err := readAll(file, Options{})
				if err != nil || len(all) != 1 || stats != (Stats{Records: 1, Frames: 1}) {
					t.Fatalf("%s: %d frames, %+v, %v", format, len(all), stats, err)
				}
				p := all[0]
				src, dst, prefix := "02:00:00:00:00:01", "02:00:00:00:00:02", []byte(nil)
				if strings.HasPrefix(name, "cooked") {
					dst = "00:00:00:00:00:00"
				}
				if p.prefix != nil {
					src, dst, prefix = "10.0.0.1:40001", "10.0.0.2:40002", []byte{2, 0}
					if strings.Contains(p.src, "[") {
						src, dst = "[fd00::1]:40001", "[fd00::2]:40002"
					}
				}
				if p.src != src || p.dst != dst || !bytes.Equal(p.prefix, prefix) {
					t.Errorf("%s: from %s to %s with prefix % x", format, p.src, p.dst, p.prefix)
				}
				if !bytes.Equal(p.data, f) || p.cut || p.wireBytes != len(f) {
					t.Errorf("%s: cut %v, %d bytes on the wire\n% x, want\n% x", format, p.cut, p.wireBytes, p.data, f)
				}
				if p.record != 1 || !p.time.Equal(stamp) {
					t.Errorf("%s: record %d at %v", format, p.record, p.time)
				}
			}
		})
	}
}

func compress(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The link type of the classic format shares its word with the length of the
// frame check sequence.
func TestFrameCheckSequence(t *testing.T) {
	p := wrapped(t)["ethernet"]
	file := pcapFile(binary.LittleEndian, false, captured{p.link, append(p.data, 1, 2, 3, 4), 0})
	file[23] = 0x24
	all, _, err := readAll(file, Options{})
	if err != nil || len(all) != 1 {
		t.Errorf("%d frames, %v", len(all), err)
	}
}

func TestNgBlocks(t *testing.T) {
	o := binary.LittleEndian
	p := wrapped(t)["ethernet"]
	var file []byte
	add := func(b ...[]byte) {
		for _, b := range b {
			file = append(file, b...)
		}
	}
	old := o.AppendUint16(nil, 2) // interface
	old = o.AppendUint16(old, 0)
	old = o.AppendUint32(old, 1) // 2^32 ticks of 2^-32 s
	old = o.AppendUint32(old, 1<<31)
	old = o.AppendUint32(old, uint32(len(p.data)))
	old = append(o.AppendUint32(old, uint32(len(p.data))), p.data...)
	simple := append(o.AppendUint32(nil, uint32(len(p.data))), p.data...)
	offset := o.AppendUint64(nil, 1000)

	add(sectionBlock(o))
	add(block(o, 4, []byte("names")), block(o, 0x80000BAD, nil), block(o, 10, make([]byte, 600<<10)))
	add(interfaceBlock(o, 147, 0)) // not supported
	add(interfaceBlock(o, 1, 0, append(option(o, 9, 9), option(o, 14, offset...)...)...))
	add(interfaceBlock(o, 1, 0, append(option(o, 2, 'e', 't', 'h'), option(o, 9, 0xA0)...)...))
	add(enhancedBlock(o, 0, 0, p), enhancedBlock(o, 1, 5_000_000_007, p), block(o, 2, old))
	add(sectionBlock(binary.BigEndian), interfaceBlock(binary.BigEndian, 1, 61))
	simpleBig := binary.BigEndian.AppendUint32(nil, uint32(len(p.data)))
	add(block(binary.BigEndian, 3, append(simpleBig, p.data[:61]...)))
	add(sectionBlock(o), interfaceBlock(o, 1, 0), block(o, 3, simple))

	all, stats, err := readAll(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Stats{Records: 5, Frames: 4, Cut: 1, UnknownLink: 1}); stats != want {
		t.Errorf("%+v, want %+v", stats, want)
	}
	if n := len(all[2].data); n != 61-14 {
		t.Errorf("simple packet cut to %d bytes", n)
	}
	for i, want := range []struct {
		time  time.Time
		iface int
		cut   bool
	}{
		{time.Unix(1005, 7), 1, false}, {time.Unix(1, 5e8), 2, false}, {time.Time{}, 0, true}, {time.Time{}, 0, false},
	} {
		got := all[i]
		if want.time.IsZero() != got.time.IsZero() || !want.time.IsZero() && !got.time.Equal(want.time) {
			t.Errorf("frame %d: time %v, want %v", i, got.time, want.time)
		}
		if got.iface != want.iface || got.cut != want.cut || got.record != i+2 {
			t.Errorf("frame %d: %+v", i, got)
		}
	}
}

func TestTicksPerSecond(t *testing.T) {
	for v, want := range map[byte]uint64{0: 1, 3: 1e3, 6: 1e6, 9: 1e9, 19: 1e19, 0x80: 1, 0x8A: 1024, 0xBF: 1 << 63} {
		if got, err := ticksPerSecond(v); got != want || err != nil {
			t.Errorf("%#x: %d, %v; want %d", v, got, err, want)
		}
	}
	for _, v := range []byte{20, 127, 0xC0, 0xFF} {
		if _, err := ticksPerSecond(v); err == nil {
			t.Errorf("%#x: no error", v)
		}
	}
	for _, v := range []byte{0, 19, 0xBF} {
		ticks, _ := ticksPerSecond(v)
		i := ngIface{ticks: ticks}
		if got := i.time(ticks - 1); v != 0 && got.Unix() != 0 {
			t.Errorf("%#x: the last tick of a second is %v", v, got)
		}
	}
}

// A file that ends anywhere is read up to there.
func TestTruncatedFile(t *testing.T) {
	p := wrapped(t)["ethernet"]
	micro := pcapFile(binary.LittleEndian, false, p, p, p)
	record := 16 + len(p.data)
	ng := append(sectionBlock(binary.BigEndian), interfaceBlock(binary.BigEndian, 1, 0)...)
	ngHeader := len(ng)
	enhanced := enhancedBlock(binary.BigEndian, 0, 1, p)
	for range 3 {
		ng = append(ng, enhanced...)
	}
	for _, tt := range []struct {
		name           string
		file           []byte
		header, record int
		boundaries     []int // also clean ends
	}{
		{"pcap", micro, 24, record, nil},
		{"pcapng", ng, ngHeader, len(enhanced), []int{28}},
	} {
		for n := range len(tt.file) + 1 {
			all, _, err := readAll(tt.file[:n], Options{})
			if want := max(0, n-tt.header) / tt.record; len(all) != want {
				t.Fatalf("%s of %d bytes: %d frames, want %d", tt.name, n, len(all), want)
			}
			clean := n >= tt.header && (n-tt.header)%tt.record == 0
			for _, b := range tt.boundaries {
				clean = clean || n == b
			}
			if clean {
				if err != nil {
					t.Errorf("%s of %d bytes: %v", tt.name, n, err)
				}
				continue
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s of %d bytes: %v", tt.name, n, err)
			}
			if n < 4 {
				if !errors.Is(err, errNotCapture) {
					t.Errorf("%s of %d bytes: %v", tt.name, n, err)
				}
				continue
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s of %d bytes: %v", tt.name, n, err)
			}
			if n > tt.header && (e.Record != len(all)+1 || e.Offset != int64(tt.header+len(all)*tt.record)) {
				t.Errorf("%s of %d bytes: %v", tt.name, n, err)
			}
		}
		z := compress(t, tt.file)
		if _, _, err := readAll(z[:len(z)-9], Options{}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: damaged compression: %v", tt.name, err)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	o := binary.LittleEndian
	p := wrapped(t)["ethernet"]
	patch := func(b []byte, at int, v uint32) []byte {
		b = bytes.Clone(b)
		o.PutUint32(b[at:], v)
		return b
	}
	file := pcapFile(o, false, p, p)
	ng := ngFile(o, p, p)
	second := len(sectionBlock(o)) + (len(ng)-28)/2 // interface and packet of the second
	packet := second + 20
	for _, tt := range []struct {
		name   string
		file   []byte
		record int
		frames int
	}{
		{"empty", nil, 0, 0},
		{"text", []byte("this is no capture, but long enough to be one"), 0, 0},
		{"linkType", patch(file, 20, 147), 0, 0},
		{"captured", patch(file, 24+16+len(p.data)+8, 0x7FFFFFFF), 2, 1},
		{"ngOrder", patch(ng, 8, 0), 1, 0},
		{"ngVersion", patch(ng, 12, 2), 1, 0},
		{"ngSectionLength", patch(ng, 4, 24), 1, 0},
		{"ngInterfaceLength", patch(ng, second+4, 16), 2, 1},
		{"ngBlockLength", patch(ng, packet+4, 13), 2, 1},
		{"ngBlockShort", patch(ng, packet+4, 28), 2, 1},
		{"ngInterface", patch(ng, packet+8, 2), 2, 1},
		{"ngCaptured", patch(ng, packet+20, 1000), 2, 1},
		{"ngTrailer", patch(ng, len(ng)-4, 4), 2, 1},
		{"ngResolution", append(sectionBlock(o), interfaceBlock(o, 1, 0, option(o, 9, 30)...)...), 1, 0},
		{"ngNoInterface", append(sectionBlock(o), enhancedBlock(o, 0, 0, p)...), 1, 0},
		{"ngSimpleNoInterface", append(sectionBlock(o), block(o, 3, make([]byte, 8))...), 1, 0},
		{"ngSimpleShort", append(sectionBlock(o), block(o, 3, nil)...), 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, _, err := readAll(tt.file, Options{})
			var e *Error
			if !errors.As(err, &e) || e.Record != tt.record || e.Err == nil || e.Error() == "" {
				t.Fatalf("error %v", err)
			}
			if len(all) != tt.frames {
				t.Errorf("%d frames", len(all))
			}
		})
	}
}

// Frames cut by a snap length are delivered, marked, with what there is.
func TestCutFrames(t *testing.T) {
	_, f := sample(t)
	for name, headers := range map[string]int{"ethernet": 14, "ethernetVLAN": 18, "udp6": 14 + 40 + 8 + 2, "raw4": 30} {
		whole := wrapped(t)[name]
		for n := headers + 10; n < len(whole.data); n++ {
			cut := captured{whole.link, whole.data[:n], len(whole.data)}
			all, stats, err := readAll(pcapFile(binary.LittleEndian, false, cut), Options{})
			if err != nil || len(all) != 1 || stats.Cut != 1 {
				t.Fatalf("%s cut to %d: %d frames, %+v, %v", name, n, len(all), stats, err)
			}
			p := Packet{Data: all[0].data, Length: all[0].wireBytes}
			if !p.Cut() || p.Length != len(f) || !bytes.Equal(p.Data, f[:n-headers]) {
				t.Fatalf("%s cut to %d: %d of %d bytes", name, n, len(p.Data), p.Length)
			}
			if h, ok := p.Header(); !ok || h.Seq != 9 || h.Flags != 1 {
				t.Errorf("%s cut to %d: header %v, %v", name, n, h, ok)
			}
			var texts []string
			for m, data := range p.Messages() {
				texts = append(texts, string(data))
				if m.Txn != 7 || len(data) > int(m.Len) {
					t.Errorf("%s cut to %d: %v with %d bytes", name, n, m, len(data))
				}
			}
			var want []string
			if have := n - headers; have >= 34 {
				want = append(want, "first"[:min(5, have-34)])
				if have >= 66 {
					want = append(want, "2nd"[:have-66])
				}
			}
			if strings.Join(texts, "|") != strings.Join(want, "|") || len(texts) != len(want) {
				t.Errorf("%s cut to %d: data %q, want %q", name, n, texts, want)
			}
		}
	}
}

func TestMessagesEqualCursor(t *testing.T) {
	dirty, _ := sample(t)
	p := Packet{Data: append(dirty, "trailing"...), Length: len(dirty) + 8}
	f := parsed(t, p.Data)
	c := f.Cursor()
	for m, data := range p.Messages() {
		if !c.Next() || c.Msg != m || !bytes.Equal(c.Data, data) {
			t.Errorf("%v %q, cursor has %v %q", m, data, c.Msg, c.Data)
		}
	}
	if c.Next() {
		t.Error("messages are missing")
	}
	for range p.Messages() {
		break
	}
	for range (&Packet{Data: make([]byte, 9)}).Messages() {
		t.Error("message in nine bytes")
	}
}

func TestFragments(t *testing.T) {
	_, f := sample(t)
	for name, at := range map[string]int{"raw4": 6, "raw6": 40} {
		whole := wrapped(t)[name]
		b := bytes.Clone(whole.data)
		first, later := uint16(0x2000), uint16(3)
		if name == "raw6" {
			b[6] = 44
			b = append(b[:40:40], append([]byte{17, 0, 0, 0, 0, 0, 0, 1}, whole.data[40:]...)...)
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			at += 2
			first, later = 1, 24
		}
		// The first fragment ends within the second message.
		b = b[:len(b)-8]
		if name == "raw6" {
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
		} else {
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		}
		binary.BigEndian.PutUint16(b[at:], first)
		other := bytes.Clone(b)
		binary.BigEndian.PutUint16(other[at:], later)
		all, stats, err := readAll(pcapFile(binary.LittleEndian, false, captured{101, b, 0}, captured{101, other, 0}), Options{})
		if err != nil || stats != (Stats{Records: 2, Frames: 1, Cut: 1, Fragments: 1}) {
			t.Fatalf("%s: %+v, %v", name, stats, err)
		}
		if !all[0].cut || all[0].wireBytes != len(f) || !bytes.Equal(all[0].data, f[:len(f)-8]) {
			t.Errorf("%s: %+v", name, all[0])
		}
	}
}

func TestOptions(t *testing.T) {
	all := wrapped(t)
	garbage := captured{101, serialize(t, ipv4(), udp(), gopacket.Payload("x")), 0}
	for _, tt := range []struct {
		name   string
		packet captured
		o      Options
		want   int
	}{
		{"otherType", all["ethernet"], Options{EtherType: 0xF055}, 0},
		{"sourcePort", all["raw4"], Options{Ports: []uint16{1, 40001}}, 1},
		{"destinationPort", all["raw6"], Options{Ports: []uint16{40002}}, 1},
		{"otherPort", all["raw4"], Options{Ports: []uint16{40003}}, 0},
		{"garbageOnPort", garbage, Options{Ports: []uint16{40002}}, 1},
		{"garbage", garbage, Options{}, 0},
		{"ethernetWithPorts", all["ethernet"], Options{Ports: []uint16{1}}, 1},
	} {
		got, _, err := readAll(pcapFile(binary.LittleEndian, false, tt.packet), tt.o)
		if err != nil || len(got) != tt.want {
			t.Errorf("%s: %d frames, %v; want %d", tt.name, len(got), err, tt.want)
		}
	}
}

// Malformed frames on Ethernet are delivered: the type says what they are.
func TestMalformedOnEthernet(t *testing.T) {
	_, f := sample(t)
	b := append(make([]byte, 12), 0xF0, 0x42)
	for n := range f {
		p := captured{1, append(b[:14:14], f[:n]...), 0}
		all, _, err := readAll(pcapFile(binary.LittleEndian, false, p), Options{})
		if err != nil || len(all) != 1 || all[0].cut || len(all[0].data) != n {
			t.Fatalf("%d bytes: %+v, %v", n, all, err)
		}
	}
}

func TestPlausible(t *testing.T) {
	_, f := sample(t)
	ack := []byte{2, 0, 1, 0, 5, 0, 9, 0, 1, 0}
	patch := func(b []byte, at int, v byte) []byte {
		b = bytes.Clone(b)
		b[at] = v
		return b
	}
	for _, tt := range []struct {
		name   string
		prefix uint16
		data   []byte
		length int
		want   bool
	}{
		{"messages", 2, f, len(f), true},
		{"zeroPrefix", 0, f, len(f), true},
		{"otherPrefix", 3, f, len(f), false},
		{"trailing", 2, append(bytes.Clone(f), 1, 2, 3), len(f) + 3, true},
		{"ack", 2, ack, 10, true},
		{"noDestination", 0, patch(f, 0, 0), len(f), false},
		{"noSource", 2, patch(f, 2, 0), len(f), false},
		{"flags", 2, patch(f, 9, 3), len(f), false},
		{"nothing", 2, patch(ack, 8, 0), 10, false},
		{"longAck", 2, append(bytes.Clone(ack), 0), 11, false},
		{"type", 2, patch(f, 10+22, 4), len(f), false},
		{"index", 2, patch(f, 42+14, 3), len(f), false},
		{"length", 2, patch(f, 42+20, 4), len(f), false},
		{"cut", 2, f[:50], len(f), true},
		{"cutHeader", 2, f[:9], len(f), false},
		{"cutType", 2, patch(f, 10+22, 4)[:50], len(f), false},
	} {
		p := Packet{Prefix: binary.LittleEndian.AppendUint16(nil, tt.prefix), Data: tt.data, Length: tt.length}
		if got := plausible(&p); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestNotFrames(t *testing.T) {
	ip4, ip6 := wrapped(t)["raw4"].data, wrapped(t)["raw6"].data
	patch := func(b []byte, at int, v byte) []byte {
		b = bytes.Clone(b)
		b[at] = v
		return b
	}
	for name, p := range map[string]captured{
		"nothing":        {101, nil, 0},
		"version":        {101, patch(ip4, 0, 0x55), 0},
		"headerLength":   {101, patch(ip4, 0, 0x44), 0},
		"headerPastEnd":  {101, ip4[:19], 0},
		"totalLength":    {101, patch(patch(ip4, 2, 0), 3, 19), 0},
		"tcp":            {101, patch(ip4, 9, 6), 0},
		"udpCut":         {101, ip4[:27], 0},
		"udpLength":      {101, patch(patch(ip4, 24, 0), 25, 7), 0},
		"ip6Short":       {101, ip6[:39], 0},
		"ip6TCP":         {101, patch(ip6, 6, 6), 0},
		"ip6ExtensionTo": {101, patch(ip6, 6, 60)[:47], 0},
		"ip6AuthPastEnd": {101, patch(patch(ip6, 6, 51), 41, 255), 0},
		"ethernetShort":  {1, make([]byte, 13), 0},
		"vlanShort":      {1, append(make([]byte, 12), 0x81, 0, 0), 0},
		"cookedShort":    {113, make([]byte, 15), 0},
		"cooked2Short":   {276, make([]byte, 19), 0},
		"nullShort":      {0, make([]byte, 3), 0},
		"arp":            {1, append(make([]byte, 12), 8, 6), 0},
	} {
		all, stats, err := readAll(pcapFile(binary.LittleEndian, false, p), Options{})
		if err != nil || len(all) != 0 || stats != (Stats{Records: 1, Other: 1}) {
			t.Errorf("%s: %d frames, %+v, %v", name, len(all), stats, err)
		}
	}
}

// A UDP length of 0 leaves it to IP to say where the datagram ends.
func TestUDPLengthZero(t *testing.T) {
	_, f := sample(t)
	for name, at := range map[string]int{"raw4": 24, "raw6": 44} {
		b := append(bytes.Clone(wrapped(t)[name].data), "link padding"...)
		binary.BigEndian.PutUint16(b[at:], 0)
		all, _, err := readAll(pcapFile(binary.LittleEndian, false, captured{101, b, 0}), Options{})
		if err != nil || len(all) != 1 || !bytes.Equal(all[0].data, f) {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

// endless repeats the records of a file.
type endless struct{ header, records, rest []byte }

func (e *endless) Read(b []byte) (n int, err error) {
	if len(e.header) > 0 {
		n = copy(b, e.header)
		e.header = e.header[n:]
		return n, nil
	}
	if len(e.rest) == 0 {
		e.rest = e.records
	}
	n = copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestConstantMemory(t *testing.T) {
	for name, p := range wrapped(t) {
		file := pcapFile(binary.LittleEndian, false, p)
		ng := enhancedBlock(binary.LittleEndian, 0, 1, p)
		for format, e := range map[string]*endless{
			"pcap":   {header: file[:24], records: file[24:]},
			"pcapng": {header: append(sectionBlock(binary.LittleEndian), interfaceBlock(binary.LittleEndian, p.link, 0)...), records: ng},
		} {
			r, err := NewReader(e, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(200, func() {
				if _, err := r.Next(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s in %s: %v allocations per frame", name, format, n)
			}
		}
	}
}

func TestReadFileErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no capture"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := wrapped(t)["ethernet"]
	file := pcapFile(binary.LittleEndian, false, p, p)
	cut := filepath.Join(dir, "cut")
	if err := os.WriteFile(cut, file[:len(file)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	for name, frames := range map[string]int{filepath.Join(dir, "none"): 0, text: 0, cut: 1} {
		var last error
		n := 0
		for p, err := range ReadFile(name, Options{}) {
			if last != nil {
				t.Errorf("%s: the error is not the end", name)
			}
			if (p == nil) != (err != nil) {
				t.Errorf("%s: packet %v with error %v", name, p, err)
			}
			if last = err; err == nil {
				n++
			}
		}
		if last == nil || n != frames {
			t.Errorf("%s: %d frames, %v", name, n, last)
		}
	}
	for range ReadFile(cut, Options{}) {
		break
	}
}

func FuzzReader(f *testing.F) {
	for _, p := range wrapped(f) {
		f.Add(pcapFile(binary.LittleEndian, false, p))
		f.Add(ngFile(binary.BigEndian, p, p))
	}
	for _, p := range overIP(f, datagram(1, 20), datagram(2, 20), stampedAck(3)) {
		f.Add(pcapFile(binary.LittleEndian, false, p))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, o := range []Options{{}, {Ports: []uint16{40001, 40002}}} {
			r, err := NewReader(bytes.NewReader(file), o)
			if err != nil {
				return
			}
			frames, records := 0, 0
			for {
				p, err := r.Next()
				if err != nil {
					var e *Error
					if err != io.EOF && (!errors.As(err, &e) || e.Record != r.Stats().Records+1) {
						t.Fatalf("error %v after %d records", err, r.Stats().Records)
					}
					break
				}
				if frames++; p.Segment <= 1 {
					records++
				}
				if p.Segment > p.Segments || p.Segments == 1 {
					t.Fatalf("datagram %d of %d", p.Segment, p.Segments)
				}
				if len(p.Data) > p.Length && len(p.Data) > 0 || len(p.Prefix) > PrefixSize {
					t.Fatalf("%d bytes of %d, prefix %d", len(p.Data), p.Length, len(p.Prefix))
				}
				messages := 0
				for range p.Messages() {
					messages++
				}
				if fr, err := frame.Parse(p.Data); err == nil && fr.Messages() != messages {
					t.Fatalf("%d messages, Parse finds %d", messages, fr.Messages())
				}
			}
			s := r.Stats()
			if s.Frames != frames || records+s.Fragments+s.UnknownLink+s.Other != s.Records || s.Joined > records || s.Cut > s.Frames {
				t.Fatalf("%+v for %d frames", s, frames)
			}
		}
	})
}

package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// toy is a protocol with a type of Ethernet frames, and on port 40002. There the first
// byte of a datagram is the length of each that was joined to it; 2 means none was.
type toy struct{}

func (toy) Ethernet(etherType uint16) bool { return etherType == frame.EtherType }

func (toy) Datagram(src, dst netip.AddrPort, data []byte, length int) (size int, ok bool) {
	if dst.Port() != 40002 || len(data) == 0 {
		return 0, false
	}
	if data[0] == 2 {
		return length, true
	}
	return int(data[0]), true
}

// found is a copy of a Packet.
type found struct {
	Packet
	src, dst string
	segment  string
}

func readAll(file []byte) (all []found, stats Stats, err error) {
	src, err := NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, Stats{}, err
	}
	r := NewReader(src, toy{})
	for {
		p, err := r.Next()
		if err == io.EOF {
			return all, r.Stats(), nil
		}
		if err != nil {
			_, again := r.Next()
			if _, below := src.Next(); again != err || below != err {
				return all, r.Stats(), errors.New("the error does not stay")
			}
			return all, r.Stats(), err
		}
		f := found{*p, p.Src.String(), p.Dst.String(), fmt.Sprintf("%d/%d", p.Segment, p.Segments)}
		f.Data = bytes.Clone(p.Data)
		all = append(all, f)
	}
}

// wrapped is a frame in every wrapping that is understood.
func wrapped(t testing.TB) map[string]capturetest.Packet {
	_, f := capturetest.Frame()
	return capturetest.Wrapped(t, f)
}

// The link type of the classic format shares its word with the length of the
// frame check sequence.
func TestFrameCheckSequence(t *testing.T) {
	p := wrapped(t)["ethernet"]
	file := capturetest.Pcap(binary.LittleEndian, false, capturetest.Of(p.Link, append(p.Data, 1, 2, 3, 4)))
	file[23] = 0x24
	all, _, err := readAll(file)
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
	old = o.AppendUint32(old, uint32(len(p.Data)))
	old = append(o.AppendUint32(old, uint32(len(p.Data))), p.Data...)
	simple := append(o.AppendUint32(nil, uint32(len(p.Data))), p.Data...)
	offset := o.AppendUint64(nil, 1000)

	add(capturetest.Section(o))
	add(capturetest.Block(o, 4, []byte("names")), capturetest.Block(o, 0x80000BAD, nil), capturetest.Block(o, 10, make([]byte, 600<<10)))
	add(capturetest.Interface(o, 147, 0)) // not supported
	add(capturetest.Interface(o, 1, 0, append(capturetest.Option(o, 9, 9), capturetest.Option(o, 14, offset...)...)...))
	add(capturetest.Interface(o, 1, 0, append(capturetest.Option(o, 2, 'e', 't', 'h'), capturetest.Option(o, 9, 0xA0)...)...))
	add(capturetest.Enhanced(o, 0, 0, p), capturetest.Enhanced(o, 1, 5_000_000_007, p), capturetest.Block(o, 2, old))
	add(capturetest.Section(binary.BigEndian), capturetest.Interface(binary.BigEndian, 1, 61))
	simpleBig := binary.BigEndian.AppendUint32(nil, uint32(len(p.Data)))
	add(capturetest.Block(binary.BigEndian, 3, append(simpleBig, p.Data[:61]...)))
	add(capturetest.Section(o), capturetest.Interface(o, 1, 0), capturetest.Block(o, 3, simple))

	all, stats, err := readAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Stats{Records: 5, Packets: 4, Cut: 1, UnknownLink: 1}); stats != want {
		t.Errorf("%+v, want %+v", stats, want)
	}
	if n := len(all[2].Data); n != 61-14 {
		t.Errorf("simple packet cut to %d bytes", n)
	}
	for i, want := range []struct {
		time  time.Time
		iface int
		name  string
		cut   bool
	}{
		{time.Unix(1005, 7), 1, "", false}, {time.Unix(1, 5e8), 2, "eth", false}, {time.Time{}, 0, "", true}, {time.Time{}, 0, "", false},
	} {
		got := all[i]
		if want.time.IsZero() != got.Time.IsZero() || !want.time.IsZero() && !got.Time.Equal(want.time) {
			t.Errorf("frame %d: time %v, want %v", i, got.Time, want.time)
		}
		if got.Interface != want.iface || got.Name != want.name || got.Cut() != want.cut || got.Record != i+2 {
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
		i := ngClock{ticks: ticks}
		if got := i.time(ticks - 1); v != 0 && got.Unix() != 0 {
			t.Errorf("%#x: the last tick of a second is %v", v, got)
		}
	}
}

// A file that ends anywhere is read up to there.
func TestTruncatedFile(t *testing.T) {
	p := wrapped(t)["ethernet"]
	micro := capturetest.Pcap(binary.LittleEndian, false, p, p, p)
	record := 16 + len(p.Data)
	ng := append(capturetest.Section(binary.BigEndian), capturetest.Interface(binary.BigEndian, 1, 0)...)
	ngHeader := len(ng)
	enhanced := capturetest.Enhanced(binary.BigEndian, 0, 1, p)
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
			all, _, err := readAll(tt.file[:n])
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
				want := errNotCapture
				if n == 0 {
					want = errEmpty
				}
				if !errors.Is(err, want) {
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
		if _, _, err := readAll(capturetest.Gzip(t, nil)); !errors.Is(err, errEmpty) {
			t.Errorf("compressed, of 0 bytes: %v", err)
		}
		z := capturetest.Gzip(t, tt.file)
		if _, _, err := readAll(z[:len(z)-9]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: damaged compression: %v", tt.name, err)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	o := binary.LittleEndian
	p := wrapped(t)["ethernet"]
	patch := capturetest.Patch
	file := capturetest.Pcap(o, false, p, p)
	ng := capturetest.Ng(o, p, p)
	second := len(capturetest.Section(o)) + (len(ng)-28)/2 // interface and packet of the second
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
		{"captured", patch(file, 24+16+len(p.Data)+8, 0x7FFFFFFF), 2, 1},
		{"ngOrder", patch(ng, 8, 0), 1, 0},
		{"ngVersion", patch(ng, 12, 2), 1, 0},
		{"ngSectionLength", patch(ng, 4, 24), 1, 0},
		{"ngInterfaceLength", patch(ng, second+4, 16), 2, 1},
		{"ngBlockLength", patch(ng, packet+4, 13), 2, 1},
		{"ngBlockShort", patch(ng, packet+4, 28), 2, 1},
		{"ngInterface", patch(ng, packet+8, 2), 2, 1},
		{"ngCaptured", patch(ng, packet+20, 1000), 2, 1},
		{"ngTrailer", patch(ng, len(ng)-4, 4), 2, 1},
		{"ngResolution", append(capturetest.Section(o), capturetest.Interface(o, 1, 0, capturetest.Option(o, 9, 30)...)...), 1, 0},
		{"ngNoInterface", append(capturetest.Section(o), capturetest.Enhanced(o, 0, 0, p)...), 1, 0},
		{"ngSimpleNoInterface", append(capturetest.Section(o), capturetest.Block(o, 3, make([]byte, 8))...), 1, 0},
		{"ngSimpleShort", append(capturetest.Section(o), capturetest.Block(o, 3, nil)...), 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, _, err := readAll(tt.file)
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

func TestConstantMemory(t *testing.T) {
	for name, p := range wrapped(t) {
		file := capturetest.Pcap(binary.LittleEndian, false, p)
		ng := capturetest.Enhanced(binary.LittleEndian, 0, 1, p)
		for format, e := range map[string]*capturetest.Endless{
			"pcap":   {Header: file[:24], Records: file[24:]},
			"pcapng": {Header: append(capturetest.Section(binary.LittleEndian), capturetest.Interface(binary.LittleEndian, p.Link, 0)...), Records: ng},
		} {
			src, err := NewFile(e)
			if err != nil {
				t.Fatal(err)
			}
			r := NewReader(src, toy{})
			if n := fixture.Allocations(200, func() {
				if _, err := r.Next(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s in %s: %v allocations per packet", name, format, n)
			}
		}
	}
}

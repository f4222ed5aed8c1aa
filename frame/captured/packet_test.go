package captured

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

// found is a copy of a Packet.
type found struct {
	Packet
	src, dst string
	segment  string
}

func readAll(file []byte, o Options) (all []found, stats capture.Stats, err error) {
	r, err := NewFileReader(bytes.NewReader(file), o)
	if err != nil {
		return nil, capture.Stats{}, err
	}
	for {
		p, err := r.Next()
		if err == io.EOF {
			return all, r.Stats(), nil
		}
		if err != nil {
			return all, r.Stats(), err
		}
		f := found{*p, p.Src.String(), p.Dst.String(), fmt.Sprintf("%d/%d", p.Segment, p.Segments)}
		f.Prefix, f.Data = bytes.Clone(p.Prefix), bytes.Clone(p.Data)
		all = append(all, f)
	}
}

// ofFrame is a packet of a frame of which length bytes were on the wire.
func ofFrame(b []byte, length int) (p Packet) {
	p.Data, p.Length = b, length
	return p
}

func wrapped(t testing.TB) map[string]capturetest.Packet {
	_, f := capturetest.Frame()
	return capturetest.Wrapped(t, f)
}

// However a frame is wrapped, it is found, over UDP behind its prefix.
func TestWrappedFrames(t *testing.T) {
	_, f := capturetest.Frame()
	for name, c := range wrapped(t) {
		all, stats, err := readAll(capturetest.Ng(binary.LittleEndian, c), Options{})
		if err != nil || len(all) != 1 || stats != (capture.Stats{Records: 1, Packets: 1}) {
			t.Fatalf("%s: %+v, %v", name, stats, err)
		}
		p, prefix := all[0], []byte(nil)
		if p.Src.UDP.IsValid() {
			prefix = []byte{2, 0}
		}
		if !bytes.Equal(p.Data, f) || p.Length != len(f) || p.Cut() || !bytes.Equal(p.Prefix, prefix) || p.Record != 1 || !p.Time.Equal(capturetest.Stamp) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// Frames cut by a snap length are delivered, marked, with what there is.
func TestCutFrames(t *testing.T) {
	_, f := capturetest.Frame()
	for name, headers := range map[string]int{"ethernet": 14, "ethernetVLAN": 18, "udp6": 14 + 40 + 8 + 2, "raw4": 30} {
		whole := wrapped(t)[name]
		for n := headers + 10; n < len(whole.Data); n++ {
			cut := capturetest.Packet{Link: whole.Link, Data: whole.Data[:n], Length: len(whole.Data)}
			all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, false, cut), Options{})
			if err != nil || len(all) != 1 || stats.Cut != 1 {
				t.Fatalf("%s cut to %d: %d frames, %+v, %v", name, n, len(all), stats, err)
			}
			p := all[0]
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
	dirty, _ := capturetest.Frame()
	p := ofFrame(append(dirty, "trailing"...), len(dirty)+8)
	f, err := frame.Parse(p.Data)
	if err != nil {
		t.Fatal(err)
	}
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
	short := ofFrame(make([]byte, 9), 9)
	for range short.Messages() {
		t.Error("message in nine bytes")
	}
}

// Malformed frames on Ethernet are delivered: the type says what they are.
func TestMalformedOnEthernet(t *testing.T) {
	_, f := capturetest.Frame()
	b := append(make([]byte, 12), 0xF0, 0x42)
	for n := range f {
		p := capturetest.Of(1, append(b[:14:14], f[:n]...))
		all, _, err := readAll(capturetest.Pcap(binary.LittleEndian, false, p), Options{})
		if err != nil || len(all) != 1 || all[0].Cut() || len(all[0].Data) != n {
			t.Fatalf("%d bytes: %+v, %v", n, all, err)
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
	file := capturetest.Pcap(binary.LittleEndian, false, p, p)
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
		f.Add(capturetest.Pcap(binary.LittleEndian, false, p))
		f.Add(capturetest.Ng(binary.BigEndian, p, p))
	}
	for _, p := range capturetest.Joined(f, withData(1, 20), withData(2, 20), plainAck(3)) {
		f.Add(capturetest.Pcap(binary.LittleEndian, false, p))
	}
	for _, p := range capturetest.Joined(f, introduction(f, 1), introduction(f, 2), introduction(f, 3)) {
		f.Add(capturetest.Pcap(binary.LittleEndian, false, p))
	}
	for _, p := range capturetest.Joined(f, sealedRun(f)...) {
		f.Add(capturetest.Pcap(binary.LittleEndian, false, p))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, o := range []Options{{}, {Ports: []uint16{40001, 40002}}} {
			r, err := NewFileReader(bytes.NewReader(file), o)
			if err != nil {
				return
			}
			frames, records := 0, 0
			for {
				p, err := r.Next()
				if err != nil {
					var e *capture.Error
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
				if len(p.Data) > p.Length && len(p.Data) > 0 || len(p.Prefix) > frame.PrefixSize {
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
			if s.Packets != frames || records+s.Fragments+s.UnknownLink+s.Other != s.Records || s.Joined > records || s.Cut > s.Packets {
				t.Fatalf("%+v for %d frames", s, frames)
			}
		}
	})
}

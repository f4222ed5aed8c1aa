package dissect_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/frame/dissect"
)

// captures are those of real peers, see testdata/captures/ORIGIN.md.
func captures(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "captures", "*.pcap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	return files
}

// A decoded frame encodes to the bytes it came from, save padding.
func TestCapturesReencode(t *testing.T) {
	for _, file := range captures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			buf := gopacket.NewSerializeBuffer()
			nonzero := false
			for p, err := range captured.ReadFile(file, captured.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				f, err := frame.Parse(p.Data)
				if err != nil {
					t.Fatal(err)
				}
				want := bytes.Clone(p.Data[:frame.HeaderSize+len(f.Body())])
				if zeroPadding(want) {
					nonzero = true
				}

				out := bytes.Repeat([]byte{0xAA}, len(want))
				var w frame.Writer
				w.Init(out)
				for cur := f.Cursor(); cur.Next(); {
					cur.Msg.More = false
					copy(w.Add(&cur.Msg), cur.Data)
				}
				f.Put(out)
				if !bytes.Equal(out[:w.Len()], want) {
					t.Fatalf("record %d: wrote\n% x, want\n% x", p.Record, out, want)
				}
				layer := dissect.DGRDMA{Frame: f}
				if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, &layer); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(buf.Bytes(), want) {
					t.Fatalf("record %d: layer wrote\n% x, want\n% x", p.Record, buf.Bytes(), want)
				}
			}
			if want := strings.HasPrefix(filepath.Base(file), "fpga-send-w1-"); nonzero != want {
				t.Errorf("padding that is not zero: %v, want %v", nonzero, want)
			}
		})
	}
}

// zeroPadding clears the bytes between messages and reports whether it had to.
func zeroPadding(b []byte) (changed bool) {
	for at := 10; at < len(b) && b[at+23] != 0; {
		end := at + 24 + int(binary.LittleEndian.Uint16(b[at+20:]))
		for at = end; (at-10)%8 != 0; at++ {
			changed = changed || b[at] != 0
			b[at] = 0
		}
	}
	return changed
}

// Whole packets go through gopacket and come out as they were.
func TestCapturesThroughGopacket(t *testing.T) {
	if err := dissect.Register(frame.EtherType); err != nil {
		t.Fatal(err)
	}
	for _, name := range captures(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			src, err := capture.NewFile(file)
			if err != nil {
				t.Fatal(err)
			}
			frames := 0
			for {
				rec, err := src.Next()
				if err != nil {
					break
				}
				p := gopacket.NewPacket(rec.Data, layers.LayerTypeEthernet, gopacket.Default)
				if udp, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); ok && p.Layer(dissect.LayerTypeDGRDMA) == nil {
					if err := dissect.RegisterUDP(uint16(udp.SrcPort), uint16(udp.DstPort)); err != nil {
						t.Fatal(err)
					}
					p = gopacket.NewPacket(rec.Data, layers.LayerTypeEthernet, gopacket.Default)
				}
				d, ok := p.Layer(dissect.LayerTypeDGRDMA).(*dissect.DGRDMA)
				if !ok || p.ErrorLayer() != nil {
					t.Fatalf("packet %v", p)
				}
				frames++
				buf := gopacket.NewSerializeBuffer()
				if err := gopacket.SerializePacket(buf, gopacket.SerializeOptions{}, p); err != nil {
					t.Fatal(err)
				}
				want := bytes.Clone(rec.Data)
				n := len(want) - len(d.Padding)
				zeroPadding(want[n-len(d.Contents) : n])
				if !bytes.Equal(buf.Bytes()[:n], want[:n]) {
					t.Fatalf("serialized\n% x, want\n% x", buf.Bytes()[:n], want[:n])
				}
			}
			want := 0
			for range captured.ReadFile(name, captured.Options{}) {
				want++
			}
			if frames != want || frames == 0 {
				t.Errorf("%d frames, want %d", frames, want)
			}
		})
	}
}

package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/pcapgo"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// Why files are not read with gopacket's pcapgo is said in the documentation of this
// package. It rests on what is here.

// gopackets are pcapgo's two readers.
type gopackets interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

func openGopackets(file io.Reader, ng bool) (gopackets, error) {
	if ng {
		return pcapgo.NewNgReader(file, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	}
	return pcapgo.NewReader(file)
}

// countGopackets reads a file to its end, or to where pcapgo gives up.
func countGopackets(file []byte, ng bool) (records int, err error) {
	r, err := openGopackets(bytes.NewReader(file), ng)
	for err == nil {
		if _, _, err = r.ZeroCopyReadPacketData(); err == nil {
			records++
		}
	}
	return records, err
}

func count(file []byte) (records int, err error) {
	src, err := capture.NewFile(bytes.NewReader(file))
	for err == nil {
		if _, err = src.Next(); err == nil {
			records++
		}
	}
	return records, err
}

// sized is n packets of a length.
func sized(n, length int) (all []capturetest.Packet) {
	for range n {
		all = append(all, capturetest.Of(1, make([]byte, length)))
	}
	return all
}

// What a user is told of a damaged file: our readers name the record, where it begins
// and what is wrong. Of pcapng, pcapgo compares no lengths with each other, so that a
// wrong one is believed; and a file that ends too early is taken for whole.
func TestPcapgoMisreads(t *testing.T) {
	o := binary.LittleEndian
	p := sized(3, 100)
	pcap := capturetest.Pcap(o, true, p...)
	head := append(capturetest.Section(o), capturetest.Interface(o, 1, 0)...)
	enhanced := capturetest.Enhanced(o, 0, 1, p[0])
	ng := append(head, bytes.Repeat(enhanced, 3)...)
	second := len(head) + len(enhanced)
	for _, tt := range []struct {
		name   string
		file   []byte
		ng     bool
		own    string // behind the place
		pcapgo string
	}{
		{"cut within a header", pcap[:24+116+7], false, "unexpected EOF", "unexpected EOF"},
		{"cut behind a header", pcap[:24+116+16], false, "unexpected EOF", "EOF"},
		{"cut within a packet", pcap[:24+116+20], false, "unexpected EOF", "unexpected EOF"},
		{"captured length", capturetest.Patch(pcap, 24+116+8, 1<<30), false,
			"record claims 1073741824 captured bytes", "capture length exceeds snap length: 1073741824 > 65535"},
		{"ng cut", ng[:second+50], true, "unexpected EOF", "EOF"},
		{"ng captured length", capturetest.Patch(ng, second+20, 120), true, "record claims 120 captured bytes", "bufio: negative count"},
		{"ng captured length of 1 GiB", capturetest.Patch(ng, second+20, 1<<30), true, "record claims 1073741824 captured bytes", "EOF"},
		{"ng short block", capturetest.Patch(ng, second+4, 4), true, "block claims 4 bytes", "EOF"},
		{"ng trailer", capturetest.Patch(ng, second+len(enhanced)-4, 7), true, "block of 140 bytes ends with length 7", "EOF"},
	} {
		records, err := count(tt.file)
		var e *capture.Error
		if !errors.As(err, &e) || e.Record != 2 || records != 1 || e.Err.Error() != tt.own || e.Offset != int64(24+116) && e.Offset != int64(second) {
			t.Errorf("%s: %d records, %v; want %s", tt.name, records, err, tt.own)
		}
		if _, err := countGopackets(tt.file, tt.ng); err.Error() != tt.pcapgo {
			t.Errorf("%s: pcapgo says %v now, and said %s when it was decided against", tt.name, err, tt.pcapgo)
		}
	}
}

func BenchmarkFile(b *testing.B) {
	o := binary.LittleEndian
	for _, size := range []struct {
		name         string
		records, len int
	}{{"full", 66_000, 1498}, {"small", 1_000_000, 84}} {
		packets := sized(size.records, size.len)
		ng := append(capturetest.Section(o), capturetest.Interface(o, 1, 0)...)
		for _, p := range packets {
			ng = append(ng, capturetest.Enhanced(o, 0, 1, p)...)
		}
		for _, f := range []struct {
			name string
			file []byte
			ng   bool
		}{{"pcap", capturetest.Pcap(o, true, packets...), false}, {"pcapng", ng, true}} {
			run := func(name string, read func() (int, error)) {
				b.Run(size.name+"/"+f.name+"/"+name, func(b *testing.B) {
					b.SetBytes(int64(len(f.file)))
					b.ReportAllocs()
					for b.Loop() {
						if n, err := read(); n != size.records || err != io.EOF {
							b.Fatal(n, err)
						}
					}
					b.ReportMetric(float64(size.records*b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
				})
			}
			run("own", func() (int, error) { return count(f.file) })
			run("pcapgo", func() (int, error) { return countGopackets(f.file, f.ng) })
		}
	}
}

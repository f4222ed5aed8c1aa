package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// toys are datagrams of which each says how long it is, the last one last bytes.
func toys(n, size, last int) (all [][]byte) {
	for i := range n {
		d := bytes.Repeat([]byte{byte(i)}, size)
		d[0] = byte(size)
		all = append(all, d)
	}
	all[n-1] = all[n-1][:last]
	return all
}

func TestJoinedDatagrams(t *testing.T) {
	for name, datagrams := range map[string][][]byte{
		"two":            toys(2, 50, 50),
		"shorter behind": toys(9, 50, 1),
		"of one byte":    toys(3, 1, 1),
	} {
		for wire, c := range capturetest.Joined(t, datagrams...) {
			all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, c))
			want := Stats{Records: 1, Packets: len(datagrams), Joined: 1}
			if err != nil || stats != want {
				t.Fatalf("%s, %s: %+v, %v; want %+v", name, wire, stats, err, want)
			}
			for i, p := range all {
				if !bytes.Equal(p.Data, datagrams[i]) || p.Cut() || p.Length != len(datagrams[i]) {
					t.Fatalf("%s, %s: datagram %d is % x", name, wire, i, p.Data)
				}
				if p.Record != 1 || p.segment != fmt.Sprintf("%d/%d", i+1, len(datagrams)) || !p.Time.Equal(capturetest.Stamp) || p.dst == p.src {
					t.Errorf("%s, %s: %+v", name, wire, p)
				}
			}
		}
	}
}

// Wherever a snap length cuts, what was captured is delivered, once.
func TestJoinedAndCut(t *testing.T) {
	const headers, size = 20 + 8, 50
	datagrams := toys(4, size, 8)
	whole := capturetest.Joined(t, datagrams...)["IPv4"]
	for n := headers + 1; n < len(whole.Data); n++ {
		cut := capturetest.Packet{Link: 101, Data: whole.Data[:n], Length: len(whole.Data)}
		all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, false, cut))
		seen := (n - headers + size - 1) / size
		if err != nil || len(all) != seen || stats.Hidden != 4-seen || stats.Joined != 1 || stats.Cut > 1 {
			t.Fatalf("cut to %d: %d packets, %+v, %v", n, len(all), stats, err)
		}
		var got []byte
		for i, p := range all {
			got = append(got, p.Data...)
			if p.Length != len(datagrams[i]) || p.Cut() != (len(p.Data) < p.Length) {
				t.Errorf("cut to %d: packet %d of %d bytes", n, i, p.Length)
			}
		}
		if !bytes.Equal(got, whole.Data[headers:n]) {
			t.Fatalf("cut to %d: %d bytes delivered", n, len(got))
		}
	}
}

// A length that no datagram can have is not believed.
func TestSenselessLength(t *testing.T) {
	for _, size := range []byte{0, 50, 51, 255} {
		d := make([]byte, 50)
		d[0] = size
		for wire, c := range capturetest.Joined(t, d) {
			all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, c))
			if err != nil || stats != (Stats{Records: 1, Packets: 1}) || !bytes.Equal(all[0].Data, d) || all[0].segment != "0/0" {
				t.Errorf("%d, %s: %+v, %v", size, wire, stats, err)
			}
		}
	}
}

// sliceSource yields packets that are in no file.
type sliceSource struct {
	packets []capturetest.Packet
	end     error
}

func (s *sliceSource) Next() (Record, error) {
	if len(s.packets) == 0 {
		return Record{}, s.end
	}
	p := s.packets[0]
	s.packets = s.packets[1:]
	return Record{Time: capturetest.Stamp, Interface: 4, LinkType: p.Link, Data: p.Data, Length: int(p.Wire())}, nil
}

func TestSource(t *testing.T) {
	end := errors.New("unplugged")
	nothing := make([]byte, 60)
	src := &sliceSource{[]capturetest.Packet{
		wrapped(t)["ethernet"], capturetest.Of(linkEthernet, nothing), capturetest.Of(linkUnknown, nothing), capturetest.Joined(t, toys(2, 45, 45)...)["IPv6"],
	}, end}
	r := NewReader(src, toy{})
	var lengths []int
	for {
		p, err := r.Next()
		if err != nil {
			if _, again := r.Next(); err != end || again != end {
				t.Errorf("error %v, then %v", err, again)
			}
			break
		}
		if !p.Time.Equal(capturetest.Stamp) || p.Interface != 4 {
			t.Errorf("%+v", p)
		}
		lengths = append(lengths, p.Length)
	}
	if fmt.Sprint(lengths) != "[69 45 45]" || r.Stats() != (Stats{Records: 4, Packets: 3, Joined: 1, UnknownLink: 1, Other: 1}) {
		t.Errorf("lengths %v, %+v", lengths, r.Stats())
	}
}

// FuzzReader: nothing in a file breaks the reader, and it counts all that it saw.
func FuzzReader(f *testing.F) {
	for _, p := range wrapped(f) {
		f.Add(capturetest.Pcap(binary.LittleEndian, false, p))
		f.Add(capturetest.Ng(binary.BigEndian, p, p))
	}
	for _, p := range capturetest.Joined(f, toys(3, 20, 9)...) {
		f.Add(capturetest.Pcap(binary.LittleEndian, false, p))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		src, err := NewFile(bytes.NewReader(file))
		if err != nil {
			return
		}
		r := NewReader(src, toy{})
		packets, records := 0, 0
		for {
			p, err := r.Next()
			if err != nil {
				var e *Error
				if err != io.EOF && (!errors.As(err, &e) || e.Record != r.Stats().Records+1) {
					t.Fatalf("error %v after %d records", err, r.Stats().Records)
				}
				break
			}
			if packets++; p.Segment <= 1 {
				records++
			}
			if p.Segment > p.Segments || p.Segments == 1 {
				t.Fatalf("datagram %d of %d", p.Segment, p.Segments)
			}
			if len(p.Data) > p.Length {
				t.Fatalf("%d bytes of %d", len(p.Data), p.Length)
			}
		}
		s := r.Stats()
		if s.Packets != packets || records+s.Fragments+s.UnknownLink+s.Other != s.Records || s.Joined > records || s.Cut > s.Packets {
			t.Fatalf("%+v for %d packets", s, packets)
		}
	})
}

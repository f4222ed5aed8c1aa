package capture

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// carried is what is found in the packets of wrapped.
func carried(p *found) []byte {
	_, f := capturetest.Frame()
	if p.Src.UDP.IsValid() {
		return append([]byte{2, 0}, f...)
	}
	return f
}

func TestWrappings(t *testing.T) {
	for name, c := range wrapped(t) {
		t.Run(name, func(t *testing.T) {
			formats := map[string][]byte{
				"micro":     capturetest.Pcap(binary.LittleEndian, false, c),
				"nano":      capturetest.Pcap(binary.LittleEndian, true, c),
				"microBig":  capturetest.Pcap(binary.BigEndian, false, c),
				"nanoBig":   capturetest.Pcap(binary.BigEndian, true, c),
				"ng":        capturetest.Ng(binary.LittleEndian, c),
				"ngBig":     capturetest.Ng(binary.BigEndian, c),
				"gzip":      capturetest.Gzip(t, capturetest.Pcap(binary.LittleEndian, false, c)),
				"ngGzipped": capturetest.Gzip(t, capturetest.Ng(binary.BigEndian, c)),
			}
			for format, file := range formats {
				all, stats, err := readAll(file)
				if err != nil || len(all) != 1 || stats != (Stats{Records: 1, Packets: 1}) {
					t.Fatalf("%s: %d packets, %+v, %v", format, len(all), stats, err)
				}
				p := all[0]
				src, dst := "02:00:00:00:00:01", "02:00:00:00:00:02"
				switch {
				case strings.Contains(p.src, "["):
					src, dst = "[fd00::1]:40001", "[fd00::2]:40002"
				case p.Src.UDP.IsValid():
					src, dst = "10.0.0.1:40001", "10.0.0.2:40002"
				case strings.HasPrefix(name, "cooked"):
					dst = "00:00:00:00:00:00"
				}
				if p.src != src || p.dst != dst {
					t.Errorf("%s: from %s to %s", format, p.src, p.dst)
				}
				if want := carried(&p); !bytes.Equal(p.Data, want) || p.Cut() || p.Length != len(want) {
					t.Errorf("%s: cut %v, %d bytes on the wire\n% x, want\n% x", format, p.Cut(), p.Length, p.Data, want)
				}
				if p.Record != 1 || !p.Time.Equal(capturetest.Stamp) {
					t.Errorf("%s: record %d at %v", format, p.Record, p.Time)
				}
			}
		})
	}
}

// Packets cut by a snap length are delivered, marked, with what there is.
func TestCutPackets(t *testing.T) {
	for name, headers := range map[string]int{"ethernet": 14, "ethernetVLAN": 18, "udp6": 14 + 40 + 8, "raw4": 28} {
		whole := wrapped(t)[name]
		for n := headers + 1; n < len(whole.Data); n++ {
			cut := capturetest.Packet{Link: whole.Link, Data: whole.Data[:n], Length: len(whole.Data)}
			all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, false, cut))
			if err != nil || len(all) != 1 || stats.Cut != 1 {
				t.Fatalf("%s cut to %d: %d packets, %+v, %v", name, n, len(all), stats, err)
			}
			p := all[0]
			if want := carried(&p); !p.Cut() || p.Length != len(want) || !bytes.Equal(p.Data, want[:n-headers]) {
				t.Fatalf("%s cut to %d: %d of %d bytes", name, n, len(p.Data), p.Length)
			}
		}
	}
}

func TestFragments(t *testing.T) {
	for name, at := range map[string]int{"raw4": 6, "raw6": 40} {
		whole := wrapped(t)[name]
		b := bytes.Clone(whole.Data)
		first, later := uint16(0x2000), uint16(3)
		if name == "raw6" {
			b[6] = 44
			b = append(b[:40:40], append([]byte{17, 0, 0, 0, 0, 0, 0, 1}, whole.Data[40:]...)...)
			at += 2
			first, later = 1, 24
		}
		// The first fragment lacks the end.
		b = b[:len(b)-8]
		if name == "raw6" {
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
		} else {
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		}
		binary.BigEndian.PutUint16(b[at:], first)
		other := bytes.Clone(b)
		binary.BigEndian.PutUint16(other[at:], later)
		file := capturetest.Pcap(binary.LittleEndian, false, capturetest.Of(101, b), capturetest.Of(101, other))
		all, stats, err := readAll(file)
		if err != nil || stats != (Stats{Records: 2, Packets: 1, Cut: 1, Fragments: 1}) {
			t.Fatalf("%s: %+v, %v", name, stats, err)
		}
		if p, want := all[0], carried(&all[0]); !p.Cut() || p.Length != len(want) || !bytes.Equal(p.Data, want[:len(want)-8]) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestNotPackets(t *testing.T) {
	ip4, ip6 := wrapped(t)["raw4"].Data, wrapped(t)["raw6"].Data
	patch := capturetest.PatchByte
	for name, p := range map[string]capturetest.Packet{
		"nothing":        capturetest.Of(101, nil),
		"version":        capturetest.Of(101, patch(ip4, 0, 0x55)),
		"headerLength":   capturetest.Of(101, patch(ip4, 0, 0x44)),
		"headerPastEnd":  capturetest.Of(101, ip4[:19]),
		"totalLength":    capturetest.Of(101, patch(patch(ip4, 2, 0), 3, 19)),
		"tcp":            capturetest.Of(101, patch(ip4, 9, 6)),
		"udpCut":         capturetest.Of(101, ip4[:27]),
		"udpLength":      capturetest.Of(101, patch(patch(ip4, 24, 0), 25, 7)),
		"otherPort":      capturetest.Of(101, patch(ip4, 23, 0)),
		"ip6Short":       capturetest.Of(101, ip6[:39]),
		"ip6TCP":         capturetest.Of(101, patch(ip6, 6, 6)),
		"ip6ExtensionTo": capturetest.Of(101, patch(ip6, 6, 60)[:47]),
		"ip6AuthPastEnd": capturetest.Of(101, patch(patch(ip6, 6, 51), 41, 255)),
		"ethernetShort":  capturetest.Of(1, make([]byte, 13)),
		"vlanShort":      capturetest.Of(1, append(make([]byte, 12), 0x81, 0, 0)),
		"cookedShort":    capturetest.Of(113, make([]byte, 15)),
		"cooked2Short":   capturetest.Of(276, make([]byte, 19)),
		"nullShort":      capturetest.Of(0, make([]byte, 3)),
		"typeOf6":        capturetest.Of(1, slices.Concat(make([]byte, 12), []byte{0x86, 0xDD}, ip4)),
		"typeOf4":        capturetest.Of(276, slices.Concat([]byte{8, 0}, make([]byte, 18), ip6)),
		"arp":            capturetest.Of(1, append(make([]byte, 12), 8, 6)),
	} {
		all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, false, p))
		if err != nil || len(all) != 0 || stats != (Stats{Records: 1, Other: 1}) {
			t.Errorf("%s: %d packets, %+v, %v", name, len(all), stats, err)
		}
	}
}

// A UDP length of 0 leaves it to IP to say where the datagram ends.
func TestUDPLengthZero(t *testing.T) {
	for name, at := range map[string]int{"raw4": 24, "raw6": 44} {
		b := append(bytes.Clone(wrapped(t)[name].Data), "link padding"...)
		binary.BigEndian.PutUint16(b[at:], 0)
		all, _, err := readAll(capturetest.Pcap(binary.LittleEndian, false, capturetest.Of(101, b)))
		if err != nil || len(all) != 1 || !bytes.Equal(all[0].Data, carried(&all[0])) {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

package capture

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// tcpPackets are a segment in wrappings of several kinds.
func tcpPackets(t testing.TB, payload string) map[string]capturetest.Packet {
	ip4, ip6 := capturetest.IPv4(), capturetest.IPv6()
	ip4.Protocol, ip6.NextHeader = layers.IPProtocolTCP, layers.IPProtocolTCP
	tcp := &layers.TCP{SrcPort: 40001, DstPort: 7471, Seq: 1<<32 - 1, Ack: 5, ACK: true, Window: 17, Options: []layers.TCPOption{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 1}}}
	with := func(outer ...gopacket.SerializableLayer) []byte {
		if err := tcp.SetNetworkLayerForChecksum(outer[len(outer)-1].(gopacket.NetworkLayer)); err != nil {
			t.Fatal(err)
		}
		return capturetest.Serialize(t, append(outer, tcp, gopacket.Payload(payload))...)
	}
	raw4, raw6 := with(ip4), with(ip6)
	unsaid := bytes.Clone(raw4) // the sender's own capture of what its card segments
	binary.BigEndian.PutUint16(unsaid[2:], 0)
	return map[string]capturetest.Packet{
		"IPv4": capturetest.Of(101, raw4), "IPv6": capturetest.Of(101, raw6), "length unsaid": capturetest.Of(101, unsaid),
		"VLAN":   capturetest.Of(1, with(capturetest.Ethernet(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeIPv4}, ip4)),
		"padded": capturetest.Of(1, append(with(capturetest.Ethernet(layers.EthernetTypeIPv4), ip4), 0, 0, 0)),
		"cut":    {Link: 101, Data: raw4[:46], Length: len(raw4)},
		"bare":   {Link: 101, Data: raw4[:40], Length: len(raw4)},
	}
}

func TestSegment(t *testing.T) {
	const payload = "segment"
	for name, p := range tcpPackets(t, payload) {
		r := Record{LinkType: p.Link, Data: p.Data, Length: int(p.Wire())}
		s, ok := r.Segment()
		want := payload
		switch name {
		case "cut":
			want = "se"
		case "bare":
			want = ""
		}
		if !ok || s.Src.Port() != 40001 || s.Dst.Port() != 7471 || s.Seq != 1<<32-1 || s.Ack != 5 || s.Flags != ACK || s.Window != 17 || string(s.Data) != want || s.Length != len(payload) {
			t.Errorf("%s: %v %+v", name, ok, s)
		}
	}
	for name, p := range wrapped(t) {
		r := Record{LinkType: p.Link, Data: p.Data, Length: int(p.Wire())}
		if s, ok := r.Segment(); ok {
			t.Errorf("%s is taken for a segment: %+v", name, s)
		}
	}
}

// TestFilterTakesTCP only of ports that were asked for, at either end, and of ends as other packets.
func TestFilterTakesTCP(t *testing.T) {
	own := Filter{EtherType: 0xF042}
	for name, p := range tcpPackets(t, "segment") {
		if name == "bare" || name == "cut" {
			continue
		}
		for _, c := range []struct {
			name string
			f    Filter
			want bool
		}{
			{"none", own, false},
			{"port of UDP", Filter{EtherType: own.EtherType, Ports: []uint16{7471}}, false},
			{"port", Filter{EtherType: own.EtherType, TCP: []uint16{9, 7471}}, true},
			{"source port, beside one of UDP", Filter{EtherType: own.EtherType, Ports: []uint16{9}, TCP: []uint16{40001}}, true},
			{"other port", Filter{EtherType: own.EtherType, TCP: []uint16{7472}}, false},
			{"other end", Filter{EtherType: own.EtherType, TCP: []uint16{7471}, Ends: ends(t, "10.0.0.9", "fd00::9")}, false},
			{"end", Filter{EtherType: own.EtherType, TCP: []uint16{7471}, Ends: ends(t, "10.0.0.2:7471", "[fd00::2]:7471")}, true},
		} {
			if got := passes(t, c.f, p.Link, p.Data); got != c.want && (name != "VLAN" || got) {
				t.Errorf("%s, filter of %s: %v", name, c.name, got)
			}
		}
	}
	// What is taken of UDP stays the same.
	for name, p := range wrapped(t) {
		for asked, f := range someFilters(t) {
			if p.Link != linkEthernet && p.Link != linkRaw {
				continue
			}
			with := f
			with.TCP = []uint16{7471}
			if passes(t, f, p.Link, p.Data) != passes(t, with, p.Link, p.Data) {
				t.Errorf("%s, filter of %s: another answer with ports of TCP", name, asked)
			}
		}
	}
}

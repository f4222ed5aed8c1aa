package main

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// TestReportTellsWhatTheNetworkSays: of a frame to a port at which nothing listens, and of a capture that has nothing but the refusal of a connection.
func TestReportTellsWhatTheNetworkSays(t *testing.T) {
	_, f := capturetest.Frame()
	asked := capturetest.Serialize(t, capturetest.IPv4(), capturetest.UDP(), gopacket.Payload(append([]byte{2, 0}, f...)))
	back := capturetest.IPv4()
	back.SrcIP, back.DstIP, back.Protocol = back.DstIP, back.SrcIP, layers.IPProtocolICMPv4
	told := capturetest.Serialize(t, back, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 3)}, gopacket.Payload(asked))
	segment := func(from, to net.IP, s *layers.TCP) capturetest.Packet {
		ip := capturetest.IPv4()
		ip.SrcIP, ip.DstIP, ip.Protocol = from, to, layers.IPProtocolTCP
		if err := s.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		return capturetest.Of(101, capturetest.Serialize(t, ip, s))
	}
	a, b := net.IP{10, 0, 0, 1}, net.IP{10, 0, 0, 2}
	syn := segment(a, b, &layers.TCP{SrcPort: 5000, DstPort: 7471, Seq: 9, SYN: true})
	rst := segment(b, a, &layers.TCP{SrcPort: 7471, DstPort: 5000, Ack: 10, RST: true, ACK: true})
	for _, c := range []struct {
		name, flags string
		packets     []capturetest.Packet
		want, sums  string
	}{
		{"ICMP", "", []capturetest.Packet{capturetest.Of(101, asked), capturetest.Of(101, told)}, "10.0.0.2 told 10.0.0.1 once that nothing listens at its UDP port 40002 (ICMP).", "problems 1, "},
		{"refused", "--port tcp:7471", []capturetest.Packet{syn, rst}, "10.0.0.2:7471 refused 1 connection of TCP from 10.0.0.1 (RST)", "problems 1, "},
		{"refused, of anybody", "", []capturetest.Packet{syn, rst}, "10.0.0.2:7471 refused 1 connection of TCP from 10.0.0.1 (RST)", "problems 0, warnings 1, "},
	} {
		file := filepath.Join(t.TempDir(), "silence.pcap")
		if err := os.WriteFile(file, capturetest.Pcap(binary.LittleEndian, false, c.packets...), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"", "--json"} { // the page, and JSON
			args := strings.Fields(strings.Join([]string{"report", form, c.flags, file}, " "))
			code, out, said := runFor(t, context.Background(), args...)
			if code != exitOK || strings.Count(out, c.want) != 1 || !strings.Contains(said, c.sums) {
				t.Errorf("%s %s: code %d, %q, %d times %q", c.name, form, code, said, strings.Count(out, c.want), c.want)
			}
		}
	}
}

package capturetest

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
)

// Frame is a frame with two messages and dirty padding between them, and what
// it looks like with zeros there.
func Frame() (dirty, clean []byte) {
	clean = make([]byte, 128)
	var w frame.Writer
	w.Init(clean)
	first := frame.Message{Txn: 7, CompletionAddr: 0x40, CompletionValue: 1, Count: 2, Index: 1, Addr: 0x1000, Len: 5}
	second := first
	second.Index, second.Addr, second.Len = 2, 0x2000, 3
	copy(w.Add(&first), "first")
	copy(w.Add(&second), "2nd")
	h := frame.Header{Dst: 2, Src: 1, Seq: 9, AckStart: 4, AckCount: 2, Flags: frame.FlagMessages}
	h.Put(clean)
	clean = clean[:w.Len()]
	dirty = bytes.Clone(clean)
	copy(dirty[39:42], "pad")
	return dirty, clean
}

// Ethernet is a header between 02:00:00:00:00:01 and 02:00:00:00:00:02.
func Ethernet(kind layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{
		SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: kind,
	}
}

// IPv4 is a header between 10.0.0.1 and 10.0.0.2.
func IPv4() *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
}

// IPv6 is a header between fd00::1 and fd00::2.
func IPv6() *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
}

// UDP is a header between ports 40001 and 40002.
func UDP() *layers.UDP { return &layers.UDP{SrcPort: 40001, DstPort: 40002} }

// Serialize makes a packet, with lengths and checksums.
func Serialize(t testing.TB, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	for i, l := range ls {
		if udp, ok := l.(*layers.UDP); ok {
			for _, outer := range ls[:i] {
				if n, ok := outer.(gopacket.NetworkLayer); ok {
					if err := udp.SetNetworkLayerForChecksum(n); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, ls...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Joined are datagrams as a host with offload shows them, in one packet.
func Joined(t testing.TB, datagrams ...[]byte) map[string]Packet {
	t.Helper()
	payload := gopacket.Payload(bytes.Join(datagrams, nil))
	ip4 := Serialize(t, IPv4(), UDP(), payload)
	unsaid := bytes.Clone(ip4) // the sender's own capture, lengths left to the device
	binary.BigEndian.PutUint16(unsaid[2:], 0)
	binary.BigEndian.PutUint16(unsaid[24:], 0)
	return map[string]Packet{
		"IPv4":   {101, ip4, 0},
		"unsaid": {101, unsaid, 0},
		"IPv6":   {101, Serialize(t, IPv6(), UDP(), payload), 0},
	}
}

// Wrapped is a frame of DG/RDMA in every wrapping that is understood. Over UDP the
// prefix 2, 0 is before it.
func Wrapped(t testing.TB, f []byte) map[string]Packet {
	t.Helper()
	const own = frame.EtherType
	d := gopacket.Payload(f)
	x := gopacket.Payload(append([]byte{2, 0}, f...))
	ip4 := Serialize(t, IPv4(), UDP(), x)
	ip6 := Serialize(t, IPv6(), UDP(), x)
	options := IPv4()
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

	return map[string]Packet{
		"ethernet":      {1, Serialize(t, Ethernet(own), d), 0},
		"ethernetVLAN":  {1, Serialize(t, Ethernet(layers.EthernetTypeDot1Q), dot1q(own), d), 0},
		"ethernetQinQ":  {1, Serialize(t, Ethernet(layers.EthernetTypeQinQ), dot1q(layers.EthernetTypeDot1Q), dot1q(own), d), 0},
		"udp4VLAN":      {1, Serialize(t, Ethernet(layers.EthernetTypeDot1Q), dot1q(layers.EthernetTypeIPv4), gopacket.Payload(ip4)), 0},
		"udp4padded":    {1, append(Serialize(t, Ethernet(layers.EthernetTypeIPv4), gopacket.Payload(ip4)), "trailer"...), 0},
		"udp4options":   {101, Serialize(t, options, UDP(), x), 0},
		"udp6":          {1, Serialize(t, Ethernet(layers.EthernetTypeIPv6), gopacket.Payload(ip6)), 0},
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
		"cooked":        {113, append(append(cooked, own>>8, own&0xFF), f...), 0},
		"cookedUDP":     {113, append(append(cooked[:14:14], 8, 0), ip4...), 0},
		"cookedV2":      {276, append(append([]byte{own >> 8, own & 0xFF}, cooked2...), f...), 0},
		"cookedV2UDP":   {276, append(append([]byte{0x86, 0xDD}, cooked2...), ip6...), 0},
		"cookedV2VLAN":  {276, append(append([]byte{0x81, 0}, cooked2...), append([]byte{0, 5, own >> 8, own & 0xFF}, f...)...), 0},
		"segmentedIPv4": {101, append([]byte{ip4[0], ip4[1], 0, 0}, ip4[4:]...), 0},
	}
}

package dissect

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
)

// sample is a frame with two messages and dirty padding between them, and what
// it looks like with zeros there.
func sample(t testing.TB) (dirty, clean []byte) {
	t.Helper()
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

func parsed(t testing.TB, b []byte) frame.Frame {
	t.Helper()
	f, err := frame.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ethernet(kind layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{
		SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: kind,
	}
}

func serialize(t testing.TB, ls ...gopacket.SerializableLayer) []byte {
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

func ipv4() *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
}

func ipv6() *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
}

func udp() *layers.UDP { return &layers.UDP{SrcPort: 40001, DstPort: 40002} }

func TestRegister(t *testing.T) {
	for range 3 {
		if err := Register(DefaultEtherType); err != nil {
			t.Fatal(err)
		}
		if err := Register(0xF055); err != nil {
			t.Fatal(err)
		}
		if err := RegisterUDP(40001, 40002); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []uint16{0, 0x5FF, 0x0800, 0x86DD, 0x8100} {
		if err := Register(kind); err == nil {
			t.Errorf("type %#x: no error", kind)
		}
	}
	for _, ports := range [][]uint16{{0}, {53}, {40009, 4789}} {
		if err := RegisterUDP(ports...); err == nil {
			t.Errorf("ports %d: no error", ports)
		}
	}
	if layers.UDPPort(40009).LayerType() != gopacket.LayerTypePayload {
		t.Error("a refused list of ports was taken in part")
	}
	if LayerTypeDGRDMA.String() != "DGRDMA" || layers.EthernetType(DefaultEtherType).String() != "DGRDMA" {
		t.Errorf("named %v, %v", LayerTypeDGRDMA, layers.EthernetType(DefaultEtherType))
	}
}

func TestRegisterLayerConflicts(t *testing.T) {
	for _, tt := range []struct {
		num  gopacket.LayerType
		name string
		want string
	}{
		{gopacket.LayerTypePayload, "DGRDMATest", "is already Payload"},
		{1999, "Ethernet", "another layer is named Ethernet"},
	} {
		err := registerLayer(tt.num, tt.name, decodeFrame)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d %s: %v", tt.num, tt.name, err)
		}
	}
}

func TestLayerOnEthernet(t *testing.T) {
	if err := Register(DefaultEtherType); err != nil {
		t.Fatal(err)
	}
	dirty, clean := sample(t)
	data := serialize(t, ethernet(DefaultEtherType), &DGRDMA{Frame: parsed(t, dirty)})
	if !bytes.Equal(data[14:], clean) {
		t.Fatalf("wrote\n% x, want\n% x", data[14:], clean)
	}
	data = append(data, "link"...)
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
	d, ok := p.Layer(LayerTypeDGRDMA).(*DGRDMA)
	if !ok || p.ErrorLayer() != nil {
		t.Fatalf("%v", p)
	}
	if d.Frame.Messages() != 2 || d.Frame.Seq != 9 || !bytes.Equal(d.LayerContents(), clean) {
		t.Errorf("%v", d.Frame)
	}
	if string(d.Padding) != "link" || len(d.LayerPayload()) != 0 {
		t.Errorf("padding %q, payload %q", d.Padding, d.LayerPayload())
	}
}

func TestLayerOverUDP(t *testing.T) {
	if err := RegisterUDP(40001); err != nil {
		t.Fatal(err)
	}
	_, clean := sample(t)
	for name, ip := range map[string]gopacket.SerializableLayer{"v4": ipv4(), "v6": ipv6()} {
		kind := layers.EthernetTypeIPv4
		if name == "v6" {
			kind = layers.EthernetTypeIPv6
		}
		data := serialize(t, ethernet(kind), ip, udp(), &Prefix{Value: [2]byte{2, 0}}, &DGRDMA{Frame: parsed(t, clean)})
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
		d, ok := p.Layer(LayerTypeDGRDMA).(*DGRDMA)
		if !ok || d.Frame.Messages() != 2 {
			t.Fatalf("%s: %v", name, p)
		}
		if x := p.Layer(LayerTypePrefix).(*Prefix); x.Value != [2]byte{2, 0} {
			t.Errorf("%s: prefix %x", name, x.Value)
		}
	}
}

func TestLayerErrors(t *testing.T) {
	if err := Register(DefaultEtherType); err != nil {
		t.Fatal(err)
	}
	_, clean := sample(t)
	data := serialize(t, ethernet(DefaultEtherType), &DGRDMA{Frame: parsed(t, clean)})
	p := gopacket.NewPacket(data[:60], layers.LayerTypeEthernet, gopacket.NoCopy)
	if p.ErrorLayer() == nil || !p.Metadata().Truncated {
		t.Errorf("cut frame decoded: %v", p)
	}
	var d DGRDMA
	var bad *frame.Error
	if err := d.DecodeFromBytes(clean, gopacket.NilDecodeFeedback); err != nil || d.Frame.Messages() != 2 {
		t.Errorf("%v, %v", d.Frame, err)
	}
	if err := d.DecodeFromBytes(clean[:30], gopacket.NilDecodeFeedback); !errors.As(err, &bad) {
		t.Errorf("error %v", err)
	}
	if d.Frame.Messages() != 0 {
		t.Error("a frame is left from before")
	}
	var x Prefix
	if err := x.DecodeFromBytes(clean[:1], gopacket.NilDecodeFeedback); err == nil {
		t.Error("prefix of one byte decoded")
	}
}

// The buffer of a SerializeBuffer is not zero when it is used again.
func TestSerializeIntoUsedBuffer(t *testing.T) {
	dirty, clean := sample(t)
	d := &DGRDMA{Frame: parsed(t, dirty)}
	buf := gopacket.NewSerializeBuffer()
	for range 3 {
		used, err := buf.PrependBytes(200)
		if err != nil {
			t.Fatal(err)
		}
		for i := range used {
			used[i] = 0xAA
		}
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, d); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), clean) {
			t.Fatalf("wrote\n% x, want\n% x", buf.Bytes(), clean)
		}
	}
}

func TestSerializeFlags(t *testing.T) {
	_, clean := sample(t)
	with := &DGRDMA{Frame: parsed(t, clean)}
	with.Frame.Flags = 0
	without := &DGRDMA{Frame: frame.Frame{Header: frame.Header{Dst: 1, Src: 2, Flags: 1}}}
	for _, tt := range []struct {
		d    *DGRDMA
		fix  bool
		want byte
	}{{with, false, 0}, {with, true, 1}, {without, false, 1}, {without, true, 0}} {
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: tt.fix}, tt.d); err != nil {
			t.Fatal(err)
		}
		if got := buf.Bytes()[9]; got != tt.want {
			t.Errorf("%d messages, fix %v: flags %#x, want %#x", tt.d.Frame.Messages(), tt.fix, got, tt.want)
		}
	}
}

func TestLayersDecodeWithoutAllocation(t *testing.T) {
	if err := errors.Join(Register(DefaultEtherType), RegisterUDP(40001)); err != nil {
		t.Fatal(err)
	}
	_, clean := sample(t)
	f := parsed(t, clean)
	onEthernet := serialize(t, ethernet(DefaultEtherType), &DGRDMA{Frame: f})
	overUDP := serialize(t, ethernet(layers.EthernetTypeIPv4), ipv4(), udp(), new(Prefix), &DGRDMA{Frame: f})
	var (
		eth layers.Ethernet
		ip  layers.IPv4
		u   layers.UDP
		x   Prefix
		d   DGRDMA
	)
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &u, &x, &d)
	var decoded []gopacket.LayerType
	for name, data := range map[string][]byte{"Ethernet": onEthernet, "UDP": overUDP} {
		if n := testing.AllocsPerRun(100, func() {
			d = DGRDMA{}
			if err := parser.DecodeLayers(data, &decoded); err != nil {
				t.Fatal(err)
			}
			if decoded[len(decoded)-1] != LayerTypeDGRDMA || d.Frame.Messages() != 2 {
				t.Fatalf("decoded %v, %v", decoded, d.Frame)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

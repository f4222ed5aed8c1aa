package dissect

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

func parsed(t testing.TB, b []byte) frame.Frame {
	t.Helper()
	f, err := frame.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRegister(t *testing.T) {
	for range 3 {
		if err := Register(frame.EtherType); err != nil {
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
	if LayerTypeDGRDMA.String() != "DGRDMA" || layers.EthernetType(frame.EtherType).String() != "DGRDMA" {
		t.Errorf("named %v, %v", LayerTypeDGRDMA, layers.EthernetType(frame.EtherType))
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
	if err := Register(frame.EtherType); err != nil {
		t.Fatal(err)
	}
	dirty, clean := capturetest.Frame()
	data := capturetest.Serialize(t, capturetest.Ethernet(frame.EtherType), &DGRDMA{Frame: parsed(t, dirty)})
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
	_, clean := capturetest.Frame()
	for name, ip := range map[string]gopacket.SerializableLayer{"v4": capturetest.IPv4(), "v6": capturetest.IPv6()} {
		kind := layers.EthernetTypeIPv4
		if name == "v6" {
			kind = layers.EthernetTypeIPv6
		}
		data := capturetest.Serialize(t, capturetest.Ethernet(kind), ip, capturetest.UDP(), &Prefix{Value: [2]byte{2, 0}}, &DGRDMA{Frame: parsed(t, clean)})
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
	if err := Register(frame.EtherType); err != nil {
		t.Fatal(err)
	}
	_, clean := capturetest.Frame()
	data := capturetest.Serialize(t, capturetest.Ethernet(frame.EtherType), &DGRDMA{Frame: parsed(t, clean)})
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

// What peers of our own kind say behind a frame is in the layer, and padding is not.
func TestLayerWithWhatIsSaidBehind(t *testing.T) {
	name, err := frame.ParseServiceName("memory")
	if err != nil {
		t.Fatal(err)
	}
	var services frame.Services
	services.Add(frame.Service{Name: name, Base: 64})
	hello := make([]byte, frame.HandshakeSize+frame.ServicesSize)
	(&frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}).Put(hello, 2, 1)
	services.Put(hello[frame.HandshakeSize:])
	refused := make([]byte, frame.HandshakeSize+frame.RefusalSize)
	(&frame.Handshake{Kind: frame.HandshakeRefused, Sender: 7, Receiver: 7}).Put(refused, 1, 2)
	frame.Refusal{ID: 2, Size: 64, Why: 1}.Put(refused[frame.HandshakeSize:])
	for _, tt := range []struct {
		frame   []byte
		padding string
		want    string
	}{
		{hello, "", "1->2 [HELLO from epoch 7, serves memory]"},
		{hello, "link", "1->2 [HELLO from epoch 7, serves memory]"},
		{refused, "", "2->1 [REFUSED to epoch 7: no unknown sources are taken, endpoint 2 with 64 bytes]"},
		{refused, "link", "2->1 [REFUSED to epoch 7: no unknown sources are taken, endpoint 2 with 64 bytes]"},
		{frame.AddChecksum(append(make([]byte, 0, 200), hello...)), "", "1->2 checksum [HELLO from epoch 7, serves memory]"},
		{frame.AddChecksum(append(make([]byte, 0, 200), refused...)), "", "2->1 checksum [REFUSED to epoch 7: no unknown sources are taken, endpoint 2 with 64 bytes]"},
	} {
		var d DGRDMA
		if err := d.DecodeFromBytes(append(bytes.Clone(tt.frame), tt.padding...), gopacket.NilDecodeFeedback); err != nil {
			t.Fatal(err)
		}
		if d.Frame.String() != tt.want || !bytes.Equal(d.Contents, tt.frame) || string(d.Padding) != tt.padding {
			t.Errorf("%v, % x and % x of padding", d.Frame, d.Contents, d.Padding)
		}
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, &d); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), tt.frame) {
			t.Errorf("wrote % x, want % x", buf.Bytes(), tt.frame)
		}
	}
}

// The buffer of a SerializeBuffer is not zero when it is used again.
func TestSerializeIntoUsedBuffer(t *testing.T) {
	dirty, clean := capturetest.Frame()
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
	_, clean := capturetest.Frame()
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
	if err := errors.Join(Register(frame.EtherType), RegisterUDP(40001)); err != nil {
		t.Fatal(err)
	}
	_, clean := capturetest.Frame()
	f := parsed(t, clean)
	onEthernet := capturetest.Serialize(t, capturetest.Ethernet(frame.EtherType), &DGRDMA{Frame: f})
	overUDP := capturetest.Serialize(t, capturetest.Ethernet(layers.EthernetTypeIPv4), capturetest.IPv4(), capturetest.UDP(), new(Prefix), &DGRDMA{Frame: f})
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

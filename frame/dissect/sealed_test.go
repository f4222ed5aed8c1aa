package dissect

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// What endpoints with a key send is a layer of its own, on Ethernet and over UDP, for both decoders of gopacket.
func TestSealedLayer(t *testing.T) {
	if err := errors.Join(Register(frame.EtherType), RegisterUDP(40001)); err != nil {
		t.Fatal(err)
	}
	r := capturetest.Sealed(t, 1, 2)
	ether := capturetest.Ethernet(frame.EtherType)
	for _, c := range []struct {
		kind     datagram.Kind
		b        []byte
		dst, src frame.EndpointID
		counter  uint64
	}{
		{datagram.Question, r.Question, 2, 1, 0},
		{datagram.Challenge, r.Challenge, 1, 2, 0},
		{datagram.First, r.First, 2, 1, 0},
		{datagram.Second, r.Second, 1, 2, 0},
		{datagram.Sealed, r.There(seal.Salt{9}, 1400), 2, 1, 1},
		{datagram.Sealed, r.Back(seal.Salt{9}, 100), 1, 2, 0},
	} {
		for wire, data := range map[string][]byte{
			"Ethernet": capturetest.Serialize(t, ether, gopacket.Payload(c.b)),
			"UDP": capturetest.Serialize(t, capturetest.Ethernet(layers.EthernetTypeIPv4), capturetest.IPv4(), capturetest.UDP(),
				&Prefix{Value: [2]byte{2, 0}}, gopacket.Payload(c.b)),
		} {
			p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
			s, ok := p.Layer(LayerTypeSealed).(*Sealed)
			if !ok || p.ErrorLayer() != nil || p.Layer(LayerTypeDGRDMA) != nil {
				t.Fatalf("%v over %s: %v", c.kind, wire, p)
			}
			if s.Kind != c.kind || s.Dst != c.dst || s.Src != c.src || !bytes.Equal(s.LayerContents(), c.b) || len(s.LayerPayload()) != 0 {
				t.Errorf("%v over %s: %v from %d to %d, %d of %d bytes", c.kind, wire, s.Kind, s.Src, s.Dst, len(s.Contents), len(c.b))
			}
			if want := datagram.Counter(c.b); c.kind == datagram.Sealed && (s.Counter != want || s.Index != datagram.Index(c.b) || want != c.counter) {
				t.Errorf("%v over %s: counter %d of %d, %d", c.kind, wire, s.Counter, want, c.counter)
			}
			if c.kind != datagram.Sealed && s.Nonce != datagram.Nonce(r.Question) {
				t.Errorf("%v over %s: nonce %x, of the question %x", c.kind, wire, s.Nonce, datagram.Nonce(r.Question))
			}
		}
		var d DGRDMA
		if err := d.DecodeFromBytes(c.b, gopacket.NilDecodeFeedback); !errors.Is(err, ErrSealed) || d.Frame.Messages() != 0 {
			t.Errorf("%v as a frame: %v", c.kind, err)
		}
	}
	var (
		eth    layers.Ethernet
		ip     layers.IPv4
		u      layers.UDP
		x      Prefix
		d      DGRDMA
		s      Sealed
		parsed []gopacket.LayerType
	)
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &u, &x, &d, &s)
	data := capturetest.Serialize(t, capturetest.Ethernet(layers.EthernetTypeIPv4), capturetest.IPv4(), capturetest.UDP(), &Prefix{}, gopacket.Payload(r.Question))
	if err := parser.DecodeLayers(data, &parsed); err != nil || parsed[len(parsed)-1] != LayerTypeSealed || s.Kind != datagram.Question {
		t.Errorf("%v, %v", parsed, err)
	}
	_, clean := capturetest.Frame()
	if err := s.DecodeFromBytes(clean, gopacket.NilDecodeFeedback); err == nil || s.Kind != datagram.Plain {
		t.Errorf("a frame is %v: %v", s.Kind, err)
	}
}

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

// TestSessionLayer checks that frames of a session of each kind, with a checksum or without, are a layer of their own on Ethernet and over UDP, whose padding is not part of
// it, and that it serializes to the bytes that it came from.
func TestSessionLayer(t *testing.T) {
	if err := errors.Join(Register(frame.EtherType), RegisterUDP(40001)); err != nil {
		t.Fatal(err)
	}
	for _, checks := range []bool{false, true} {
		for _, c := range capturetest.Sessions(checks) {
			for wire, data := range map[string][]byte{
				"Ethernet": capturetest.Serialize(t, capturetest.Ethernet(frame.EtherType), gopacket.Payload(c.Data)),
				"UDP": capturetest.Serialize(t, capturetest.Ethernet(layers.EthernetTypeIPv4), capturetest.IPv4(), capturetest.UDP(),
					&Prefix{Value: [2]byte{2, 0}}, gopacket.Payload(c.Data)),
			} {
				padding := ""
				if wire == "Ethernet" && !checks && c.Name != "PROBE" { // which says how long it is
					padding = "link"
				}
				p := gopacket.NewPacket(append(data, padding...), layers.LayerTypeEthernet, gopacket.NoCopy)
				s, ok := p.Layer(LayerTypeSession).(*Session)
				if !ok || p.ErrorLayer() != nil || p.Layer(LayerTypeDGRDMA) != nil {
					t.Fatalf("%s over %s, checksum %v: %v", c.Name, wire, checks, p)
				}
				if !bytes.Equal(s.LayerContents(), c.Data) || strings.TrimLeft(string(s.Padding), "\x00") != padding || len(s.LayerPayload()) != 0 || s.Frame.Checks != checks ||
					(s.Checksum == frame.RightChecksum) != checks {
					t.Errorf("%s over %s, checksum %v: %v, %d of %d bytes, padding %q", c.Name, wire, checks, s.Frame, len(s.Contents), len(c.Data), s.Padding)
				}
				buf := gopacket.NewSerializeBuffer()
				for range 2 { // the second time into what was used
					if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, s); err != nil || !bytes.Equal(buf.Bytes(), c.Data) {
						t.Errorf("%s over %s, checksum %v: wrote % x, want % x, %v", c.Name, wire, checks, buf.Bytes(), c.Data, err)
					}
				}
			}
			var d DGRDMA
			if err := d.DecodeFromBytes(c.Data, gopacket.NilDecodeFeedback); !errors.Is(err, ErrSession) || d.Frame.Messages() != 0 {
				t.Errorf("%s as a frame of another kind: %v", c.Name, err)
			}
			var bad *frame.Error
			var s Session
			if err := s.DecodeFromBytes(c.Data[:18], gopacket.NilDecodeFeedback); !errors.As(err, &bad) || len(s.Contents) != 18 {
				t.Errorf("%s, cut: %v", c.Name, err)
			}
		}
	}
	_, clean := capturetest.Frame()
	var s Session
	if err := s.DecodeFromBytes(clean, gopacket.NilDecodeFeedback); err == nil {
		t.Error("a frame of another kind is one of a session")
	}
}

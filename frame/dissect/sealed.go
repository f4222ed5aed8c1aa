package dissect

import (
	"errors"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// LayerTypeSealed is what an endpoint with a key sends.
const LayerTypeSealed gopacket.LayerType = 1844

var (
	_ gopacket.Layer         = (*Sealed)(nil)
	_ gopacket.DecodingLayer = (*Sealed)(nil)
)

// Sealed is a sealed frame, or a datagram of the handshake for its keys, as a gopacket layer: what can be said of it
// without the key. Contents is all of it; there is no payload.
type Sealed struct {
	layers.BaseLayer
	Dst, Src frame.EndpointID
	Kind     datagram.Kind
	Counter  uint64                   // of a sealed frame: none comes twice under a key
	Index    byte                     // of a sealed frame: under which of the receiver's keys it is
	Nonce    [datagram.NonceSize]byte // of a handshake: all four datagrams of one have the same
}

// LayerType returns LayerTypeSealed.
func (s *Sealed) LayerType() gopacket.LayerType { return LayerTypeSealed }

// CanDecode returns LayerTypeSealed.
func (s *Sealed) CanDecode() gopacket.LayerClass { return LayerTypeSealed }

// NextLayerType returns LayerTypeZero: what is in it needs the key.
func (s *Sealed) NextLayerType() gopacket.LayerType { return gopacket.LayerTypeZero }

// DecodeFromBytes makes s a view of data.
func (s *Sealed) DecodeFromBytes(data []byte, _ gopacket.DecodeFeedback) error {
	*s = Sealed{BaseLayer: layers.BaseLayer{Contents: data}, Kind: datagram.KindOf(data)}
	if s.Kind == datagram.Plain {
		return errNotSealed
	}
	s.Dst, s.Src = frame.IDsOf(data)
	if s.Kind == datagram.Sealed {
		s.Counter, s.Index = datagram.Counter(data), datagram.Index(data)
	} else {
		s.Nonce = datagram.Nonce(data)
	}
	return nil
}

// ErrSealed is why a [DGRDMA] does not decode what a [Sealed] does.
var ErrSealed = errors.New("dissect: datagram is sealed, or of a handshake for keys: layer Sealed decodes it")

var errNotSealed = errors.New("dissect: datagram is not sealed, and not of a handshake")

func decodeSealed(data []byte, p gopacket.PacketBuilder) error {
	s := new(Sealed)
	if err := s.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(s)
	return nil
}

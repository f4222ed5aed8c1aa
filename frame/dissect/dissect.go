package dissect

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// Layer type numbers. gopacket leaves 1000 to 1999 to applications; which of
// them is arbitrary.
const (
	LayerTypeDGRDMA gopacket.LayerType = 1842
	LayerTypePrefix gopacket.LayerType = 1843
)

var (
	_ gopacket.Layer             = (*DGRDMA)(nil)
	_ gopacket.DecodingLayer     = (*DGRDMA)(nil)
	_ gopacket.SerializableLayer = (*DGRDMA)(nil)
	_ gopacket.Layer             = (*Prefix)(nil)
	_ gopacket.DecodingLayer     = (*Prefix)(nil)
	_ gopacket.SerializableLayer = (*Prefix)(nil)
)

// DGRDMA is a frame as a gopacket layer. Contents is the frame with the services or the
// refusal that follow the message of a handshake, and with all up to its checksum, if it has one; there is no payload.
type DGRDMA struct {
	layers.BaseLayer
	Frame    frame.Frame
	Checksum frame.Checksum
	Padding  []byte // what follows the frame in the datagram
}

// LayerType returns LayerTypeDGRDMA.
func (d *DGRDMA) LayerType() gopacket.LayerType { return LayerTypeDGRDMA }

// CanDecode returns LayerTypeDGRDMA.
func (d *DGRDMA) CanDecode() gopacket.LayerClass { return LayerTypeDGRDMA }

// NextLayerType returns LayerTypeZero: a frame carries no other protocol.
func (d *DGRDMA) NextLayerType() gopacket.LayerType { return gopacket.LayerTypeZero }

// DecodeFromBytes makes d a view of data. The error is a *frame.Error, [ErrSealed], or [ErrSession].
func (d *DGRDMA) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if datagram.KindOf(data) != datagram.Plain {
		*d = DGRDMA{BaseLayer: layers.BaseLayer{Contents: data}}
		return ErrSealed
	}
	if frame.IsSession(data) {
		*d = DGRDMA{BaseLayer: layers.BaseLayer{Contents: data}}
		return ErrSession
	}
	b, sum := frame.SplitChecksum(data)
	f, err := frame.Parse(b)
	if err != nil {
		*d = DGRDMA{BaseLayer: layers.BaseLayer{Contents: data}}
		df.SetTruncated()
		return err
	}
	var padding []byte
	if sum == frame.NoChecksum {
		padding = f.Padding()
	}
	*d = DGRDMA{layers.BaseLayer{Contents: data[:len(data)-len(padding)]}, f, sum, padding}
	return nil
}

// SerializeTo writes d.Frame, with zeros between its messages, and the services or the
// refusal of a handshake after them, and a right checksum if it had one. Padding is not written: it belongs to the link. With FixLengths the flags say whether there
// are messages, otherwise they are written as they are. To build a new frame,
// lay it out with frame.Writer and parse that.
func (d *DGRDMA) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	rest := d.Frame.Rest()
	said := rest
	if d.Checksum == frame.NoChecksum {
		said = rest[:len(rest)-len(d.Frame.Padding())]
	}
	end := frame.HeaderSize + len(d.Frame.Body())
	length := end + len(said)
	size := length
	if d.Checksum != frame.NoChecksum {
		size = frame.CheckedSize(length)
	}
	buf, err := b.PrependBytes(size)
	if err != nil {
		return err
	}
	h := d.Frame.Header
	if opts.FixLengths {
		h.Flags &^= frame.FlagMessages
		if d.Frame.Messages() > 0 {
			h.Flags |= frame.FlagMessages
		}
	}
	h.Put(buf)
	var w frame.Writer
	w.Init(buf)
	for c := d.Frame.Cursor(); c.Next(); {
		c.Msg.More = false
		copy(w.Add(&c.Msg), c.Data)
	}
	copy(buf[end:], said)
	if d.Checksum != frame.NoChecksum {
		frame.AddChecksum(buf[:length])
	}
	return nil
}

// Prefix is the two bytes before a frame in a UDP datagram. They mean nothing.
type Prefix struct {
	layers.BaseLayer
	Value [frame.PrefixSize]byte
}

// LayerType returns LayerTypePrefix.
func (p *Prefix) LayerType() gopacket.LayerType { return LayerTypePrefix }

// CanDecode returns LayerTypePrefix.
func (p *Prefix) CanDecode() gopacket.LayerClass { return LayerTypePrefix }

// NextLayerType returns LayerTypeDGRDMA, LayerTypeSession or LayerTypeSealed.
func (p *Prefix) NextLayerType() gopacket.LayerType {
	if datagram.KindOf(p.Payload) != datagram.Plain {
		return LayerTypeSealed
	}
	if frame.IsSession(p.Payload) {
		return LayerTypeSession
	}
	return LayerTypeDGRDMA
}

// DecodeFromBytes makes p a view of data.
func (p *Prefix) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if len(data) < frame.PrefixSize {
		df.SetTruncated()
		return errShortPrefix
	}
	p.BaseLayer = layers.BaseLayer{Contents: data[:frame.PrefixSize], Payload: data[frame.PrefixSize:]}
	p.Value = [frame.PrefixSize]byte(data)
	return nil
}

var errShortPrefix = errors.New("dissect: datagram ends within the prefix of the frame")

// SerializeTo writes p.Value.
func (p *Prefix) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	buf, err := b.PrependBytes(frame.PrefixSize)
	if err != nil {
		return err
	}
	copy(buf, p.Value[:])
	return nil
}

func decodeFrame(data []byte, p gopacket.PacketBuilder) error {
	if datagram.KindOf(data) != datagram.Plain {
		return decodeSealed(data, p)
	}
	if frame.IsSession(data) {
		return decodeSession(data, p)
	}
	d := new(DGRDMA)
	if err := d.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(d)
	return nil
}

func decodePrefix(data []byte, p gopacket.PacketBuilder) error {
	x := new(Prefix)
	if err := x.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(x)
	return p.NextDecoder(x.NextLayerType())
}

// registered remembers which layer types gopacket has from here.
var (
	registerMu sync.Mutex
	registered = map[gopacket.LayerType]bool{}
)

// Register makes gopacket decode Ethernet frames of this type as DG/RDMA. It
// may be repeated, and called for several types. It fails, and maps nothing,
// if somebody else has the type or one of the layer type numbers.
func Register(etherType uint16) error {
	registerMu.Lock()
	defer registerMu.Unlock()
	meta := &layers.EthernetTypeMetadata[etherType]
	switch {
	case etherType < 0x600:
		return fmt.Errorf("dissect: Ethernet type %#04x is a length", etherType)
	case meta.LayerType == LayerTypeDGRDMA:
		return nil
	case meta.LayerType != gopacket.LayerTypeZero || meta.Name != unknownEtherType:
		return fmt.Errorf("dissect: Ethernet type %#04x is already %s", etherType, meta.Name)
	}
	if err := registerLayers(); err != nil {
		return err
	}
	*meta = layers.EnumMetadata{
		DecodeWith: gopacket.DecodeFunc(decodeFrame), Name: "DGRDMA", LayerType: LayerTypeDGRDMA,
	}
	return nil
}

// unknownEtherType is how gopacket names a type that nobody has.
const unknownEtherType = "UnknownEthernetType"

// RegisterUDP makes gopacket decode UDP datagrams from and to these ports as
// DG/RDMA, under the conditions of [Register].
func RegisterUDP(ports ...uint16) error {
	registerMu.Lock()
	defer registerMu.Unlock()
	for _, port := range ports {
		switch t := layers.UDPPort(port).LayerType(); {
		case port == 0:
			return errors.New("dissect: UDP port 0 does not exist")
		case t != gopacket.LayerTypePayload && t != LayerTypePrefix:
			return fmt.Errorf("dissect: UDP port %d is already %v", port, t)
		}
	}
	if err := registerLayers(); err != nil {
		return err
	}
	for _, port := range ports {
		layers.RegisterUDPPortLayerType(layers.UDPPort(port), LayerTypePrefix)
	}
	return nil
}

func registerLayers() error {
	if err := registerLayer(LayerTypeDGRDMA, "DGRDMA", decodeFrame); err != nil {
		return err
	}
	if err := registerLayer(LayerTypeSealed, "DGRDMASealed", decodeSealed); err != nil {
		return err
	}
	if err := registerLayer(LayerTypeSession, "DGRDMASession", decodeSession); err != nil {
		return err
	}
	return registerLayer(LayerTypePrefix, "DGRDMAPrefix", decodePrefix)
}

// registerLayer turns the panic of gopacket into an error; there is no way to
// ask whether a number is taken.
func registerLayer(t gopacket.LayerType, name string, decode gopacket.DecodeFunc) (err error) {
	if registered[t] {
		return nil
	}
	if _, taken := gopacket.DecodersByLayerName[name]; taken {
		return fmt.Errorf("dissect: another layer is named %s", name)
	}
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("dissect: layer type %d is already %v", int(t), t)
		}
	}()
	gopacket.RegisterLayerType(int(t), gopacket.LayerTypeMetadata{Name: name, Decoder: decode})
	registered[t] = true
	return nil
}

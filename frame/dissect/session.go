package dissect

import (
	"errors"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
)

// LayerTypeSession is what endpoints of our own kind send that have a session.
const LayerTypeSession gopacket.LayerType = 1845

var (
	_ gopacket.Layer             = (*Session)(nil)
	_ gopacket.DecodingLayer     = (*Session)(nil)
	_ gopacket.SerializableLayer = (*Session)(nil)
)

// Session is a frame of a session as a gopacket layer. Contents is the frame with its checksum, if it has one; there is no payload.
type Session struct {
	layers.BaseLayer
	Frame    frame.SessionFrame
	Checksum frame.Checksum
	Padding  []byte // what follows the frame in the datagram
}

// LayerType returns LayerTypeSession.
func (s *Session) LayerType() gopacket.LayerType { return LayerTypeSession }

// CanDecode returns LayerTypeSession.
func (s *Session) CanDecode() gopacket.LayerClass { return LayerTypeSession }

// NextLayerType returns LayerTypeZero: a frame carries no other protocol.
func (s *Session) NextLayerType() gopacket.LayerType { return gopacket.LayerTypeZero }

// DecodeFromBytes makes s a view of data. The error is a *frame.Error.
func (s *Session) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	b, sum := frame.SplitChecksum(data)
	f, err := frame.ParseSession(b)
	if err != nil {
		*s = Session{BaseLayer: layers.BaseLayer{Contents: data}}
		df.SetTruncated()
		return err
	}
	var padding []byte
	if sum == frame.NoChecksum {
		padding = f.Padding()
	}
	*s = Session{layers.BaseLayer{Contents: data[:len(data)-len(padding)]}, f, sum, padding}
	return nil
}

// SerializeTo writes s.Frame, with zeros between its messages, and a right checksum if it had one. Padding is not written: it belongs to the link.
func (s *Session) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	body := s.Frame.Body()
	length := frame.SessionHeaderSize + len(body)
	size := length
	if s.Checksum != frame.NoChecksum {
		size = frame.CheckedSize(length)
	}
	buf, err := b.PrependBytes(size)
	if err != nil {
		return err
	}
	copy(buf[frame.SessionHeaderSize:], body)
	s.Frame.Put(buf)
	var w frame.Writer
	w.Init(buf[frame.SessionHeaderSize-frame.HeaderSize:])
	for c := s.Frame.Cursor(); c.Next(); {
		c.Msg.More = false
		copy(w.Add(&c.Msg), c.Data)
	}
	if s.Checksum != frame.NoChecksum {
		frame.AddChecksum(buf[:length])
	}
	return nil
}

// ErrSession is why a [DGRDMA] does not decode what a [Session] does.
var ErrSession = errors.New("dissect: frame is of a session: layer Session decodes it")

func decodeSession(data []byte, p gopacket.PacketBuilder) error {
	s := new(Session)
	if err := s.DecodeFromBytes(data, p); err != nil {
		return err
	}
	p.AddLayer(s)
	return nil
}

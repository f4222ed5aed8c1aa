package text

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// sealed takes apart what can be read without a key.
func (v *View) sealed() {
	if v.Kind = Sealed; v.Seal.IsHandshake() {
		v.Kind = Handshake
	}
	h, _ := v.Packet.Header()
	v.Header = frame.Header{Dst: h.Dst, Src: h.Src, Flags: h.Flags}
}

// Inside is how long the frame is that a sealed one has in it.
func (v *View) Inside() int { return v.Packet.Length - datagram.Overhead }

// salt returns as much of the salt of a sealed frame as was captured.
func (v *View) salt() []byte {
	b := v.Packet.Data
	return b[min(datagram.FlagsAt+1, len(b)):min(datagram.HeadSize, len(b))]
}

// nonce returns what the datagrams of a handshake have in common. Not ok: it was not captured.
func (v *View) nonce() (nonce [datagram.NonceSize]byte, ok bool) {
	if len(v.Packet.Data) < datagram.HandshakeHead+datagram.NonceSize {
		return nonce, false
	}
	return datagram.Nonce(v.Packet.Data), true
}

// unasked reports whether a challenge answers no question.
func (v *View) unasked() bool {
	nonce, ok := v.nonce()
	return v.Seal == datagram.Challenge && ok && nonce == [datagram.NonceSize]byte{}
}

// appendSealed appends it as lines have it.
func (v *View) appendSealed(b []byte) []byte {
	b = number(b, "", int(v.Header.Src))
	b = number(b, "->", int(v.Header.Dst))
	if v.Kind == Sealed {
		b = number(b, " sealed ", int(datagram.Counter(v.Packet.Data)))
		b = number(b, " key ", int(datagram.Index(v.Packet.Data)))
		return append(number(b, " [", v.Inside()), " bytes]"...)
	}
	b = append(append(b, " handshake "...), v.Seal.String()...)
	if v.unasked() {
		return append(b, " [of who does not know the key]"...)
	}
	if nonce, ok := v.nonce(); ok {
		b = append(hexBytes(append(b, " [nonce "...), nonce[:]), ']')
	}
	return b
}

// fieldsSealed appends all fields.
func (v *View) fieldsSealed(b []byte) []byte {
	h := &v.Header
	k := v.Packet
	if v.Kind == Sealed {
		b = number(b, "  sealed frame from endpoint ", int(h.Src))
		b = number(b, " to endpoint ", int(h.Dst))
		b = number(b, ", counter ", int(datagram.Counter(k.Data)))
		b = number(b, ", key ", int(datagram.Index(k.Data)))
		b = hexadecimal(b, ", flags ", uint32(h.Flags))
		b = hexBytes(append(b, ", salt "...), v.salt())
		return append(number(b, ", ", v.Inside()), " bytes, which nobody can read who has not their key\n"...)
	}
	b = append(append(b, "  handshake: "...), v.Seal.String()...)
	b = number(b, " from endpoint ", int(h.Src))
	b = number(b, " to endpoint ", int(h.Dst))
	b = hexadecimal(b, ", flags ", uint32(h.Flags))
	if nonce, ok := v.nonce(); ok {
		b = hexBytes(append(b, ", nonce "...), nonce[:])
	}
	switch _, known := v.nonce(); {
	case v.unasked():
		b = append(b, ", answers a sealed frame, of which it does not know the key"...)
	case v.Seal == datagram.Challenge && known:
		b = append(b, ", answers a question"...)
	}
	return append(b, '\n')
}

// jsonSealed appends what is special.
func (v *View) jsonSealed(b []byte) []byte {
	h := &v.Header
	b = number(b, `,"src":`, int(h.Src))
	b = number(b, `,"dst":`, int(h.Dst))
	b = number(b, `,"flags":`, int(h.Flags))
	if v.Kind == Sealed {
		b = number(b, `,"sealed":{"counter":`, int(datagram.Counter(v.Packet.Data)))
		b = number(b, `,"key":`, int(datagram.Index(v.Packet.Data)))
		b = hexBytes(append(b, `,"salt":"`...), v.salt())
		return append(number(b, `","length":`, v.Inside()), '}')
	}
	b = append(append(append(b, `,"handshake":{"is":"`...), v.Seal.String()...), '"')
	if nonce, ok := v.nonce(); ok {
		b = append(hexBytes(append(b, `,"nonce":"`...), nonce[:]), '"')
		if v.Seal == datagram.Challenge {
			b = boolean(b, `,"unasked":`, v.unasked())
		}
	}
	return append(b, '}')
}

package captured

import (
	"encoding/binary"
	"io"
	"iter"
	"os"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
)

// Packet is one frame in a capture. Its Data is the frame from its header on, and its
// Length what that would be without a snap length.
type Packet struct {
	capture.Packet
	Prefix []byte // over UDP: the bytes before the frame, two unless cut
}

// Header returns the frame header, if the packet is long enough to have one.
// It does not ask whether the messages behind it make sense. Of a frame of a session only ids and flags mean anything.
func (p *Packet) Header() (h frame.Header, ok bool) {
	if len(p.Data) < frame.HeaderSize {
		return h, false
	}
	var b [frame.HeaderSize]byte
	copy(b[:], p.Data)
	b[9] = 0
	f, err := frame.Parse(b[:])
	f.Flags = p.Data[9]
	return f.Header, err == nil
}

// Whole returns the frame without its checksum, if its header says that it has one, and whether that
// is right. Of a frame that was cut nobody knows.
func (p *Packet) Whole() ([]byte, frame.Checksum) {
	if p.Cut() {
		return p.Data, frame.NoChecksum
	}
	return frame.SplitChecksum(p.Data)
}

// Messages walks the messages as far as their headers were captured. The data
// of the last one may be shorter than it says; only in a frame that
// frame.Parse accepts it never is.
func (p *Packet) Messages() iter.Seq2[frame.Message, []byte] {
	return func(yield func(frame.Message, []byte) bool) {
		at, more := p.firstMessage()
		for more && len(p.Data)-at >= frame.MessageHeaderSize {
			b := p.Data[at:]
			m := messageHeader(b)
			end := frame.MessageHeaderSize + int(m.Len)
			if !yield(m, b[frame.MessageHeaderSize:min(end, len(b))]) {
				return
			}
			at += end + frame.PadLen(end)
			more = m.More
		}
	}
}

// firstMessage returns where the first message is, if there is any.
func (p *Packet) firstMessage() (at int, any bool) {
	if !p.Session() {
		h, _ := p.Header()
		return frame.HeaderSize, h.HasMessages()
	}
	h, ok := p.SessionHeader()
	return frame.SessionHeaderSize, ok && h.Control == frame.NoControl
}

// messageHeader lets frame.Parse read the header at the start of b, as the only
// message of a frame and without data.
func messageHeader(b []byte) frame.Message {
	var one [frame.HeaderSize + frame.MessageHeaderSize]byte
	one[9] = frame.FlagMessages
	copy(one[frame.HeaderSize:], b)
	clear(one[frame.HeaderSize+20 : frame.HeaderSize+22])
	one[frame.HeaderSize+23] = 0
	f, _ := frame.Parse(one[:])
	c := f.Cursor()
	c.Next()
	c.Msg.Len, c.Msg.More = binary.LittleEndian.Uint16(b[20:]), b[23] != 0
	return c.Msg
}

// Reader yields the frames of a capture.
type Reader struct {
	packets *capture.Reader
	packet  Packet
}

// NewReader finds the frames in a capture.
func NewReader(src capture.Source, o Options) *Reader {
	return &Reader{packets: capture.NewReader(src, o.recogniser())}
}

// NewFileReader reads the header of a capture file, as [capture.NewFile] does.
func NewFileReader(r io.Reader, o Options) (*Reader, error) {
	src, err := capture.NewFile(r)
	if err != nil {
		return nil, err
	}
	return NewReader(src, o), nil
}

// Stats returns the counts so far.
func (r *Reader) Stats() capture.Stats { return r.packets.Stats() }

// Next returns the next frame, valid until the call after. Errors are the source's,
// and stay.
func (r *Reader) Next() (*Packet, error) {
	p, err := r.packets.Next()
	if err != nil {
		return nil, err
	}
	r.packet.Packet = *p
	if r.packet.Prefix = nil; p.Src.UDP.IsValid() {
		r.packet.fill(p.Data, p.Length)
	}
	return &r.packet, nil
}

// fill gives p the frame of a datagram.
func (p *Packet) fill(datagram []byte, length int) {
	n := min(frame.PrefixSize, len(datagram))
	p.Prefix, p.Data, p.Length = datagram[:n], datagram[n:], max(0, length-frame.PrefixSize)
}

// ReadFile yields the frames of a file. If something is wrong with it, the last
// pair is a nil Packet and the error.
func ReadFile(name string, o Options) iter.Seq2[*Packet, error] {
	return func(yield func(*Packet, error) bool) {
		file, err := os.Open(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer file.Close()
		r, err := NewFileReader(file, o)
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			p, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

package dissect

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// Options says which packets of a capture are frames.
type Options struct {
	// EtherType is the Ethernet type of DG/RDMA; 0 means DefaultEtherType.
	EtherType uint16
	// Ports are the UDP ports of DG/RDMA, at either end. All their datagrams
	// are taken, even if they do not parse. Without any, what looks like a
	// frame is taken.
	Ports []uint16
}

// Packet is one frame in a capture.
type Packet struct {
	Record    int // place in the file, from 1; other packets count too
	Interface int // number of the interface within its pcapng section
	Time      time.Time
	Src, Dst  Addr
	Prefix    []byte // over UDP: the bytes before the frame, two unless cut
	Data      []byte // the frame from its header to the end of what was captured
	Length    int    // what Data would have without a snap length

	// Segment says which of Segments datagrams this one is, from 1, if the
	// capturing host recorded them as one. Both are 0 for one that came alone.
	Segment, Segments int
}

// Cut reports whether a snap length, or fragmentation, took the end of the
// frame away.
func (p *Packet) Cut() bool { return len(p.Data) < p.Length }

// Header returns the frame header, if the packet is long enough to have one.
// It does not ask whether the messages behind it make sense.
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

// Messages walks the messages as far as their headers were captured. The data
// of the last one may be shorter than it says; only in a frame that
// frame.Parse accepts it never is.
func (p *Packet) Messages() iter.Seq2[frame.Message, []byte] {
	return func(yield func(frame.Message, []byte) bool) {
		h, _ := p.Header()
		at := frame.HeaderSize
		for more := h.HasMessages(); more && len(p.Data)-at >= frame.MessageHeaderSize; {
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

// Stats counts the records of a capture by what they were.
type Stats struct {
	Records     int // all
	Frames      int // delivered
	Cut         int // delivered without their end
	Joined      int // records of several datagrams, each with its frame
	Hidden      int // frames in them that lie behind the snap length, not delivered
	Fragments   int // later fragments of UDP datagrams, not delivered
	UnknownLink int // records from an interface of a type that is not supported
	Other       int // records of anything else
}

// Error says where a capture stops being readable, and why.
type Error struct {
	Record int   // the record that could not be read, from 1; 0: the file header
	Offset int64 // of the damaged piece in the file, as it is without compression
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("dissect: record %d at offset %d: %v", e.Record, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Reader yields the frames of a capture.
type Reader struct {
	options Options
	src     Source
	in      *input // of src, if that is a file
	packet  Packet
	joined  joined // what follows packet in its record
	stats   Stats
	err     error
}

// NewReader reads the file header of a pcap or pcapng file. The error is an
// *[Error].
func NewReader(r io.Reader, o Options) (*Reader, error) {
	src, in, err := openSource(r)
	if err != nil {
		return nil, &Error{0, 0, err}
	}
	reader := NewSourceReader(src, o)
	reader.in = in
	return reader, nil
}

// NewSourceReader finds the frames in what is no file. Errors of src are
// returned as they are.
func NewSourceReader(src Source, o Options) *Reader {
	if o.EtherType == 0 {
		o.EtherType = DefaultEtherType
	}
	o.Ports = slices.Clone(o.Ports)
	return &Reader{options: o, src: src}
}

// Stats returns the counts so far.
func (r *Reader) Stats() Stats { return r.stats }

// Next returns the next frame, valid until the call after. At the end of the
// file the error is io.EOF, at a damaged place an *[Error]; both stay.
func (r *Reader) Next() (*Packet, error) {
	for r.err == nil {
		if r.segment() {
			return &r.packet, nil
		}
		rec, err := r.src.Next()
		if err != nil {
			if err != io.EOF && r.in != nil {
				err = &Error{r.stats.Records + 1, r.in.start, err}
			}
			r.err = err
			break
		}
		r.stats.Records++
		if r.take(&rec) {
			return &r.packet, nil
		}
	}
	return nil, r.err
}

// take makes r.packet of rec and reports whether it is a frame.
func (r *Reader) take(rec *Record) bool {
	if !knownLinkType(rec.LinkType) {
		r.stats.UnknownLink++
		return false
	}
	c := content{data: rec.Data, length: rec.Length}
	found := c.unwrap(rec.LinkType, r.options.EtherType)
	p := &r.packet
	*p = Packet{Record: r.stats.Records, Interface: rec.Interface, Time: rec.Time, Src: c.src, Dst: c.dst}
	switch found {
	case foundEther:
		p.Data, p.Length = c.data, c.length
		r.count()
		return true
	case foundUDP:
		datagrams := r.joined.split(c.data, c.length)
		p.fill(r.joined.at(0))
		if !r.wants(p) {
			r.joined = joined{}
			break
		}
		if datagrams > 1 {
			p.Segment, p.Segments = 1, datagrams
			r.stats.Joined++
			r.stats.Hidden += datagrams - r.joined.captured()
		}
		r.joined.next()
		r.count()
		return true
	case foundFragment:
		r.stats.Fragments++
		return false
	}
	r.stats.Other++
	return false
}

// segment makes r.packet the next datagram of those that it came with, and
// reports whether there is one.
func (r *Reader) segment() bool {
	p := &r.packet
	next, ok := r.joined.next()
	if !ok {
		return false
	}
	p.fill(next)
	p.Segment++
	r.count()
	return true
}

// fill gives p the frame of another one.
func (p *Packet) fill(from Packet) { p.Prefix, p.Data, p.Length = from.Prefix, from.Data, from.Length }

func (r *Reader) count() {
	r.stats.Frames++
	if r.packet.Cut() {
		r.stats.Cut++
	}
}

func (r *Reader) wants(p *Packet) bool {
	if len(r.options.Ports) > 0 {
		return slices.Contains(r.options.Ports, p.Src.UDP.Port()) || slices.Contains(r.options.Ports, p.Dst.UDP.Port())
	}
	return plausible(p)
}

// plausible tells frames from other datagrams by fields that no known sender
// uses. A frame that was cut need only be plausible as far as it goes.
func plausible(p *Packet) bool {
	h, ok := p.Header()
	if !ok || h.Dst == 0 || h.Src == 0 || h.Flags&^frame.FlagMessages != 0 || !plausiblePrefix(p, &h) {
		return false
	}
	if !h.HasMessages() {
		return p.Length == frame.HeaderSize && h.AckCount != 0 ||
			p.Length == frame.HeaderSize+frame.StampSize && (p.Cut() || stamped(p.Data))
	}
	for m := range p.Messages() {
		// Message types up to 3 are named in OpenCPI.
		if m.Type > 3 || m.Index > m.Count && m.Count != 0 {
			return false
		}
	}
	_, err := frame.Parse(p.Data)
	return err == nil || p.Cut()
}

// plausiblePrefix reports whether the bytes before a frame are what some known
// sender puts there.
func plausiblePrefix(p *Packet, h *frame.Header) bool {
	id := binary.LittleEndian.Uint16(p.Prefix)
	return id == 0 || id == uint16(h.Dst)
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
		r, err := NewReader(file, o)
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

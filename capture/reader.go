package capture

import (
	"net/netip"
	"time"
)

// Record is one captured packet, as it was on the link.
type Record struct {
	Time      time.Time
	Interface int    // number of the interface within its pcapng section, or capture
	Name      string // of the interface, if that is known
	LinkType  int    // as in capture files: 1 is Ethernet, 101 bare IP
	Data      []byte // valid until the next one
	Length    int    // on the wire
}

// Interface is where packets were captured.
type Interface struct {
	Name     string // empty: not known
	LinkType int    // as in Record
}

// Source yields the records of a capture, and io.EOF at its end.
type Source interface {
	Next() (Record, error)
}

// Recogniser knows one protocol. It must keep no reference to data.
type Recogniser interface {
	// Ethernet reports whether frames of that Ethernet type are the protocol's.
	Ethernet(etherType uint16) bool
	// Datagram reports whether a datagram of UDP is the protocol's, of which data was
	// captured and length bytes were on the wire. The capturing host may have joined
	// it of several: size is how long each is but the last, which is not longer, or
	// length if it is one.
	Datagram(src, dst netip.AddrPort, data []byte, length int) (size int, ok bool)
}

// Packet is one of the protocol's in a capture: what an Ethernet frame or a datagram
// of UDP carries.
type Packet struct {
	Record    int // place in the capture, from 1; other packets count too
	Interface int // as in Record
	Name      string
	Time      time.Time
	Src, Dst  Addr
	Data      []byte // to the end of what was captured
	Length    int    // what Data would have without a snap length

	// Segment says which of Segments datagrams this one is, from 1, if the
	// capturing host recorded them as one. Both are 0 for one that came alone.
	Segment, Segments int
}

// Cut reports whether a snap length, or fragmentation, took the end of the packet
// away.
func (p *Packet) Cut() bool { return len(p.Data) < p.Length }

// Stats counts the records of a capture by what they were.
type Stats struct {
	Records     int // all
	Packets     int // delivered
	Cut         int // delivered without their end
	Joined      int // records of several datagrams, each with its packet
	Hidden      int // packets in them that lie behind the snap length, not delivered
	Fragments   int // later fragments of UDP datagrams, not delivered
	UnknownLink int // records from an interface of a type that is not supported
	Other       int // records of anything else
}

// Reader yields the packets of a protocol in a capture.
type Reader struct {
	src      Source
	protocol Recogniser
	packet   Packet
	joined   joined // what follows packet in its record
	stats    Stats
	err      error
}

// NewReader finds the packets of a protocol in a capture.
func NewReader(src Source, protocol Recogniser) *Reader {
	return &Reader{src: src, protocol: protocol}
}

// Stats returns the counts so far.
func (r *Reader) Stats() Stats { return r.stats }

// Next returns the next packet, valid until the call after. Errors are the source's,
// and stay.
func (r *Reader) Next() (*Packet, error) {
	for r.err == nil {
		if r.segment() {
			return &r.packet, nil
		}
		rec, err := r.src.Next()
		if err != nil {
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

// take makes r.packet of rec and reports whether it is the protocol's.
func (r *Reader) take(rec *Record) bool {
	if !knownLinkType(rec.LinkType) {
		r.stats.UnknownLink++
		return false
	}
	c := content{data: rec.Data, length: rec.Length}
	found := c.unwrap(rec.LinkType, r.protocol)
	p := &r.packet
	*p = Packet{Record: r.stats.Records, Interface: rec.Interface, Name: rec.Name, Time: rec.Time, Src: c.src, Dst: c.dst}
	switch found {
	case foundEther:
		p.Data, p.Length = c.data, c.length
		r.count()
		return true
	case foundUDP:
		size, ok := r.protocol.Datagram(c.src.UDP, c.dst.UDP, c.data, c.length)
		if !ok {
			break
		}
		r.joined = join(c.data, c.length, size)
		if n := r.joined.datagrams(); n > 1 {
			p.Segment, p.Segments = 1, n
			r.stats.Joined++
			r.stats.Hidden += n - r.joined.captured()
		}
		p.Data, p.Length = r.joined.next()
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
	if r.joined.captured() == 0 {
		return false
	}
	p := &r.packet
	p.Data, p.Length = r.joined.next()
	p.Segment++
	r.count()
	return true
}

func (r *Reader) count() {
	r.stats.Packets++
	if r.packet.Cut() {
		r.stats.Cut++
	}
}

// joined is a datagram that is one or several.
type joined struct {
	data   []byte // what is left to be delivered, of which length was on the wire
	length int
	size   int // of each datagram but the last
}

// join is one datagram if size makes no sense.
func join(data []byte, length, size int) joined {
	if size < 1 || size > length {
		size = max(length, 1)
	}
	return joined{data, length, size}
}

func (j *joined) datagrams() int { return (j.length + j.size - 1) / j.size }

// captured returns of how many datagrams something is there.
func (j *joined) captured() int {
	if len(j.data) == 0 {
		return 0
	}
	return (len(j.data) + j.size - 1) / j.size
}

// next takes a datagram off the front.
func (j *joined) next() (data []byte, length int) {
	n := min(j.size, len(j.data))
	data, length = j.data[:n], min(j.size, j.length)
	j.data, j.length = j.data[n:], max(j.length-j.size, 0)
	return data, length
}

package rpcrdma

import "encoding/binary"

// Property is a property of a side of version 2, as a CONNPROP carries it. Data of length 0 is its default.
type Property struct {
	ID   PropertyID
	Data []byte
}

// PropertyID is which property it is.
type PropertyID uint32

// Properties that are known.
const (
	PropertySendSize     PropertyID = 1 + iota // SBSIZ
	PropertyReceiveSize                        // RBSIZ
	PropertySegmentSize                        // RSSIZ
	PropertySegmentCount                       // RCSIZ
	PropertyReverse                            // BRS
	PropertyHostAuth                           // HOSTAUTH
)

// Reverse is which RPCs a side takes in the reverse direction.
type Reverse uint32

// Levels of support for the reverse direction.
const (
	ReverseNone      Reverse = iota
	ReverseSimple            // one message each, without chunks
	ReverseContinued         // and continued ones, without chunks
	ReverseGeneral           // as forward
)

// Sizes of version 2.
const (
	// DefaultThreshold2 is the length of the longest Send of version 2 unless properties say otherwise.
	DefaultThreshold2 = 4096
	// FirstThreshold2 is the length of the longest first message of a client, of which it does not know whether the server
	// speaks version 2.
	FirstThreshold2 = 1024

	defaultSegmentSize  = 1 << 20
	defaultSegmentCount = 16
)

// Properties are what a side of version 2 has said of itself, or its defaults.
type Properties struct {
	SendSize     uint32 // of its longest Send
	ReceiveSize  uint32 // of its receives
	SegmentSize  uint32 // of the longest segment that it sends or takes
	SegmentCount uint32 // of the most segments in a Requester's header
	Reverse      Reverse
	// HostAuth is a message for the program. It authenticates nothing by itself. Nil is none.
	HostAuth []byte

	count, octets int // that came, of all messages
}

// DefaultProperties are those of a side that has said nothing.
func DefaultProperties() Properties {
	return Properties{SendSize: DefaultThreshold2, ReceiveSize: DefaultThreshold2, SegmentSize: defaultSegmentSize, SegmentCount: defaultSegmentCount}
}

// numberShape is a property that is a number.
type numberShape struct {
	usual         uint32 // the default
	lowest, upper uint32 // less is refused, and more counts as the upper bound
}

// numbers are the properties that are numbers, by their id.
var numbers = [PropertyHostAuth]numberShape{
	PropertySendSize:     {DefaultThreshold2, 1024, 1 << 20},
	PropertyReceiveSize:  {DefaultThreshold2, 1024, 1 << 20},
	PropertySegmentSize:  {defaultSegmentSize, 1, 1<<32 - 1},
	PropertySegmentCount: {defaultSegmentCount, 1, 1 << 16},
	PropertyReverse:      {uint32(ReverseNone), 0, uint32(ReverseGeneral)},
}

// number returns the place of a property that is a number.
func (p *Properties) number(id PropertyID) *uint32 {
	switch id {
	case PropertySendSize:
		return &p.SendSize
	case PropertyReceiveSize:
		return &p.ReceiveSize
	case PropertySegmentSize:
		return &p.SegmentSize
	case PropertySegmentCount:
		return &p.SegmentCount
	}
	return (*uint32)(&p.Reverse)
}

// List returns the properties for a CONNPROP. Those that have their default are left out.
func (p *Properties) List() (list []Property) {
	for id := PropertySendSize; id < PropertyHostAuth; id++ {
		if v := *p.number(id); v != numbers[id].usual {
			list = append(list, Property{id, binary.BigEndian.AppendUint32(nil, v)})
		}
	}
	if p.HostAuth != nil {
		data := binary.BigEndian.AppendUint32(nil, uint32(len(p.HostAuth)))
		list = append(list, Property{PropertyHostAuth, appendPad(append(data, p.HostAuth...), len(p.HostAuth))})
	}
	return list
}

// Apply takes over what a decoded CONNPROP says; of a property that is there twice the last one counts. HostAuth is then a part
// of the message. It reports whether all messages together keep within [MaxProperties] and [MaxPropertiesSize];
// otherwise nothing is taken over, and the answer is BAD_PROPVAL.
func (p *Properties) Apply(list []Property) bool {
	count, octets := p.count+len(list), p.octets
	for i := range list {
		octets += len(list[i].Data)
	}
	if count > MaxProperties || octets > MaxPropertiesSize {
		return false
	}
	p.count, p.octets = count, octets
	for i := range list {
		id, data := list[i].ID, list[i].Data
		switch {
		case id == 0 || id > PropertyHostAuth:
		case id == PropertyHostAuth:
			p.HostAuth = nil
			if len(data) > 0 {
				p.HostAuth = data[wordSize:][:binary.BigEndian.Uint32(data):binary.BigEndian.Uint32(data)]
			}
		case len(data) == 0:
			*p.number(id) = numbers[id].usual
		default:
			*p.number(id) = min(binary.BigEndian.Uint32(data), numbers[id].upper)
		}
	}
	return true
}

// Threshold2 returns the length of the longest Send of version 2 from this side to the peer (RPC2-072).
func Threshold2(local, peer *Properties) int {
	return int(max(min(local.SendSize, peer.ReceiveSize), FirstThreshold2))
}

// valid reports whether a known property has the form and bounds of its kind. Others may be anything.
func (p *Property) valid() bool {
	n := len(p.Data)
	switch {
	case p.ID == 0 || p.ID > PropertyHostAuth || n == 0:
		return true
	case n < wordSize:
		return false
	}
	v := binary.BigEndian.Uint32(p.Data)
	if p.ID == PropertyHostAuth {
		return uint64(n) == wordSize+roundup(uint64(v))
	}
	return n == wordSize && v >= numbers[p.ID].lowest
}

// size returns the length of the property in a header.
func (p *Property) size() int { return 2*wordSize + int(roundup(uint64(len(p.Data)))) }

func (p *Property) append(b []byte) []byte {
	b = appendWords(b, uint32(p.ID), uint32(len(p.Data)))
	return appendPad(append(b, p.Data...), len(p.Data))
}

// appendPad rounds up an item of length n.
func appendPad(b []byte, n int) []byte {
	for ; n%wordSize != 0; n++ {
		b = append(b, 0)
	}
	return b
}

// connProp reads the properties of a CONNPROP.
func (d *Decoder) connProp(m *message) *Fault {
	bad := func(reason string) *Fault { return m.refuse(Report{Code: CodeBadPropVal}, reason) }
	if m.h.XID == 0 {
		return m.malformed("the xid of a CONNPROP is 0")
	}
	count, ok := m.word()
	if !ok || uint64(count)*2*wordSize > uint64(m.left()) {
		return m.malformed("a count is above what the message has room for")
	}
	if count > MaxProperties {
		return bad("more properties than the limit")
	}
	for i := range d.properties[:count] {
		if m.left() < 2*wordSize {
			return m.malformed("the message ends within its properties")
		}
		p := &d.properties[i]
		p.ID = PropertyID(m.next())
		n := m.next()
		switch {
		case roundup(uint64(n)) > uint64(m.left()):
			return bad("a property is longer than the message")
		case n > MaxPropertySize:
			return bad("a property is longer than the limit")
		}
		p.Data = m.b[m.at:][:n:n]
		m.at += int(roundup(uint64(n)))
		if !p.valid() {
			return bad("a property is not of its kind, or below its bounds")
		}
		m.h.Properties = d.properties[: i+1 : i+1]
	}
	return nil
}

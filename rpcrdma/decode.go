package rpcrdma

import "encoding/binary"

// Decoder reads headers of one connection. It belongs to one goroutine.
type Decoder struct {
	Limits Limits
	// Lowest and Highest are the versions that are spoken here: 1 and 2, or the one on which
	// the connection has settled. They are what an ERR_VERS says.
	Lowest, Highest uint32

	segments   [MaxSegments]Segment
	reads      [MaxReadChunks]ReadChunk
	writes     [MaxWriteChunks]Chunk
	properties [MaxProperties]Property
}

// NewDecoder returns a Decoder for a connection that may be of any version.
func NewDecoder(l Limits) *Decoder { return &Decoder{Limits: l, Lowest: Version1, Highest: Version2} }

// Decode reads the header of a message, and returns the payload after it. Lists, properties and payload are
// valid until the next call and as long as the message is. The error is a [*Fault]; the header is then set
// as far as it was read.
//
// An ERR_VERS is read whatever its version word is: see [Report].
func (d *Decoder) Decode(b []byte, h *Header) (payload []byte, err error) {
	*h = Header{}
	m := message{b: b, h: h}
	if f := d.decode(&m); f != nil {
		return nil, f
	}
	return b[m.at:], nil
}

// message is one that is being read.
type message struct {
	b  []byte
	at int
	h  *Header

	shape *versionShape // nil as long as the version is not known
	used  int           // of the Decoder's segments
}

// left returns how many octets are not read yet.
func (m *message) left() int { return len(m.b) - m.at }

// word reads the next word. It is not ok if the message ends before.
func (m *message) word() (v uint32, ok bool) {
	if m.left() < wordSize {
		return 0, false
	}
	v = binary.BigEndian.Uint32(m.b[m.at:])
	m.at += wordSize
	return v, true
}

// next reads the next word, which [message.left] has said is there.
func (m *message) next() uint32 {
	v := binary.BigEndian.Uint32(m.b[m.at:])
	m.at += wordSize
	return v
}

// segment reads the next segment, which is there.
func (m *message) segment(s *Segment) {
	s.Handle = m.next()
	s.Length = m.next()
	s.Offset = binary.BigEndian.Uint64(m.b[m.at:])
	m.at += 2 * wordSize
}

// refuse makes the Fault of the message.
func (m *message) refuse(r Report, reason string) *Fault {
	f := &Fault{XID: m.h.XID, Type: m.h.Type, Reason: reason, At: m.at, Version: m.h.Version, Report: r}
	if m.h.Type == TypeError {
		f.Report = Report{} // an ERROR is never answered by an ERROR
	}
	return f
}

// drop makes the Fault of a message that is not answered.
func (m *message) drop(reason string) *Fault { return m.refuse(Report{}, reason) }

// malformed makes the Fault of a message that is not what the XDR says.
func (m *message) malformed(reason string) *Fault {
	return m.refuse(Report{Code: m.shape.malformed}, reason)
}

// beyond makes the Fault of a message that is beyond a limit. Version 1 has one code for all of them.
func (m *message) beyond(c ErrorCode, limit int, reason string) *Fault {
	report := Report{Code: c, Max: uint32(limit)}
	if m.h.Version == Version1 {
		report = Report{Code: m.shape.malformed}
	}
	f := m.refuse(report, reason)
	f.Limit = true
	return f
}

func (d *Decoder) decode(m *message) *Fault {
	least := PrefixSize2
	if d.Highest == Version1 {
		least = PrefixSize1
	}
	if len(m.b) < least {
		return m.drop("the message ends before its header does")
	}
	p, _ := Peek(m.b)
	*m.h = Header{XID: p.XID, Version: p.Version, Credit: p.Credit, Type: p.Type}
	if p.Type == TypeError {
		if layout, is := isErrVers(m.b, d.Highest); is {
			return m.errVers(layout)
		}
	}
	if p.Version < d.Lowest || p.Version > d.Highest {
		return d.version(m)
	}
	m.shape = &shapes[p.Version]
	var t typeShape
	if int64(p.Type) < int64(len(m.shape.types)) {
		t = m.shape.types[p.Type]
	}
	m.at = PrefixSize1 - wordSize
	switch {
	case t.dropped:
		return m.drop("the type is not in use")
	case t.body == noBody:
		return m.refuse(Report{Code: m.shape.unknown}, "the type is unknown")
	}
	m.at = PrefixSize1
	if m.shape.prefix == PrefixSize2 {
		m.h.Flags = Flags(m.next()) & knownFlags
		if f := m.flags(t); f != nil {
			return f
		}
	}
	var f *Fault
	switch t.body {
	case listsBody:
		if f = d.lists(m); f == nil {
			f = m.checkLists()
		}
	case reportBody:
		f = m.report()
	case propertiesBody:
		f = d.connProp(m)
	}
	if f == nil && !t.payload && m.left() > 0 {
		f = m.malformed("octets follow the header")
	}
	return f
}

// version refuses a version that is not spoken here. An answer in version 1's layout is one that every
// version can read; a connection that has settled on version 2 has its own (RPCN-06).
func (d *Decoder) version(m *message) *Fault {
	m.at = wordSize
	f := m.refuse(Report{Code: CodeVers, Refused: m.h.Version, Low: d.Lowest, High: d.Highest}, "the version is not spoken here")
	f.Version = Version1
	if d.Lowest == Version2 {
		f.Version = Version2
	}
	return f
}

// errVers reads an ERR_VERS in a version's layout, whose length is right.
func (m *message) errVers(layout uint32) *Fault {
	m.h.Report.Refused = m.h.Version
	m.h.Version = layout
	m.shape = &shapes[layout]
	m.at = PrefixSize1
	if m.shape.prefix == PrefixSize2 {
		m.h.Flags = Flags(m.next()) & knownFlags
	}
	m.report() // finds no fault: code and length are those of an ERR_VERS
	if m.h.Report.Low > m.h.Report.High {
		return m.drop("the lowest version is above the highest one")
	}
	return nil
}

// flags checks those of version 2, as far as one message shows what is wrong.
func (m *message) flags(t typeShape) *Fault {
	const continued = FlagMore | FlagTPMore
	switch odd := m.h.Flags & continued &^ t.flags; {
	case odd&FlagTPMore != 0:
		return m.refuse(Report{Code: CodeInvalHType}, "TPMORE is set in a type without properties")
	case odd&FlagMore != 0:
		return m.refuse(Report{Code: CodeInvalCont}, "MORE is set in a type that does not continue")
	case m.h.Flags&FlagMore != 0 && t.body == listsBody:
		// Only the last part has lists: whatever else these words are, they are not this part's.
		for _, x := range m.b[m.at:min(m.at+4*wordSize, len(m.b))] {
			if x != 0 {
				return m.refuse(Report{Code: CodeInvalCont}, "MORE is set in a message with chunks")
			}
		}
	case m.h.Type == TypeError && m.h.Flags&FlagResponse == 0:
		return m.drop("RESPONSE is not set in an ERROR")
	}
	return nil
}

// report reads what an ERROR reports.
func (m *message) report() *Fault {
	r := &m.h.Report
	v, ok := m.word()
	if !ok {
		return m.drop("the message ends before its code")
	}
	r.Code = ErrorCode(v)
	s, known := reportShapes[m.h.Version][r.Code]
	if !known {
		return m.drop("the code is unknown")
	}
	for _, f := range s.fields {
		if f == noField {
			continue
		}
		if v, ok = m.word(); !ok {
			return m.drop("the message ends before what its code announces")
		}
		*r.field(f) = v
	}
	return nil
}

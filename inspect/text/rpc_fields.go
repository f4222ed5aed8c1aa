package text

import (
	"encoding/binary"
	"strconv"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// rpcFields appends what a line does not say of a message: numbers in place of names, what the Call asks for or was answered, and each segment of its chunks.
func rpcFields(b []byte, m *rpcrdma.Message) []byte {
	h := m.Header
	b = number(b, "  a Send of ", int(m.Length))
	b = number(b, " bytes, of which ", int(m.Payload))
	b = append(b, " follow the header"...)
	if h.Version == codec.Version2 {
		b = hexadecimal(b, ", flags ", uint32(h.Flags))
		b = number(b, ", most outstanding ", int(h.Maximum()))
		b = number(b, ", newly granted ", int(h.Granted()))
	} else {
		b = strconv.AppendUint(append(b, ", credits "...), uint64(h.Credit), 10)
	}
	if m.Invalidates {
		b = hexadecimal(b, ", invalidates STag ", m.STag)
	}
	b = append(b, '\n')
	if c := m.Call; c != nil && c.Known {
		b = append(append(b, "  RPC program "...), c.ProgramNumber()...)
		b = number(b, " version ", int(c.ProgramVersion))
		b = append(number(b, " procedure ", int(c.Procedure)), '\n')
	}
	b = detailWords(b, "  credential: ", m.Credential())
	b = detailWords(b, "  arguments: ", m.Arguments())
	b = detailWords(b, "  results: ", m.Results())
	for i := range h.Reads {
		b = segmentFields(b, "  Read segment at Position "+strconv.FormatUint(uint64(h.Reads[i].Position), 10), h.Reads[i].Segments)
	}
	for i, w := range h.Writes {
		b = segmentFields(b, "  segment of Write chunk "+strconv.Itoa(i+1), w)
	}
	if h.HasReply {
		b = segmentFields(b, "  segment of the Reply chunk", h.Reply)
	}
	for i := range h.Properties {
		b = append(appendProperty(append(b, "  property "...), &h.Properties[i]), '\n')
	}
	return b
}

func segmentFields(b []byte, before string, c codec.Chunk) []byte {
	for i := range c {
		b = number(append(b, before...), ": ", int(c[i].Length))
		b = append(place64(append(b, " bytes"...), " at ", c[i].Handle, c[i].Offset), '\n')
	}
	return b
}

// propertyNames are what properties of version 2 are called.
var propertyNames = map[codec.PropertyID]string{
	codec.PropertySendSize: "send size", codec.PropertyReceiveSize: "receive size", codec.PropertySegmentSize: "segment size",
	codec.PropertySegmentCount: "segment count", codec.PropertyReverse: "reverse direction", codec.PropertyHostAuth: "host authentication",
}

// lineProperties is how many properties a line shows: a message may have thousands.
const lineProperties = 8

// propertyWords appends what a side says of itself.
func propertyWords(b []byte, list []codec.Property) []byte {
	if len(list) == 0 {
		return append(b, ", none"...)
	}
	for i := range list {
		if i == lineProperties {
			return append(number(b, " and ", len(list)-i), " more"...)
		}
		b = appendProperty(append(b, ", "...), &list[i])
	}
	return b
}

// appendProperty appends a name and a value. Without a value it is the default.
func appendProperty(b []byte, p *codec.Property) []byte {
	name, known := propertyNames[p.ID]
	if known {
		b = append(b, name...)
	} else {
		b = strconv.AppendUint(append(b, "unknown "...), uint64(p.ID), 10)
	}
	switch {
	case len(p.Data) == 0:
		return append(b, " as by default"...)
	case known && p.ID != codec.PropertyHostAuth && len(p.Data) == 4:
		return strconv.AppendUint(append(b, ' '), uint64(binary.BigEndian.Uint32(p.Data)), 10)
	}
	return append(number(b, " of ", len(p.Data)), " bytes"...)
}

func propertyJSON(b []byte, list []codec.Property) []byte {
	b = append(b, `,"properties":[`...)
	for i := range list {
		p := &list[i]
		b = strconv.AppendUint(append(comma(b, i), `{"id":`...), uint64(p.ID), 10)
		if name, known := propertyNames[p.ID]; known {
			b = jsonName(append(b, `,"name":`...), name)
		}
		b = append(hexBytes(append(b, `,"data":"`...), p.Data), `"}`...)
	}
	return append(b, ']')
}

package text

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

func (p *Printer) json(b []byte, v *View) []byte {
	k := v.Packet
	b = append(b, '{')
	if p.File != "" {
		b = append(append(append(b, `"file":`...), p.file().quoted...), ',')
	}
	b = number(b, `"record":`, k.Record)
	if k.Segment > 0 {
		b = number(b, `,"segment":`, k.Segment)
		b = number(b, `,"segments":`, k.Segments)
	}
	b = number(b, `,"interface":`, k.Interface)
	if k.Name != "" {
		b = jsonName(append(b, `,"interface_name":`...), k.Name)
	}
	if known(k.Time) {
		b = append(p.date(append(b, `,"time":"`...), k.Time), '"')
		b = p.since(append(b, `,"seconds":`...), k.Time)
	}
	b = append(append(b, `,"wire":"`...), wire(v)...)
	b = ends(b, v, `","from":"`, `","to":"`)
	b = append(b, '"')
	if len(k.Prefix) > 0 {
		b = append(hexBytes(append(b, `,"prefix":"`...), k.Prefix), '"')
	}
	b = number(b, `,"length":`, k.Length)
	b = number(b, `,"captured":`, len(k.Data))
	b = boolean(b, `,"cut":`, k.Cut())
	b = append(append(append(b, `,"kind":"`...), v.Kind.String()...), '"')
	switch {
	case v.Seal != datagram.Plain:
		b = v.jsonSealed(b)
	case v.InSession:
		b = v.jsonSession(b)
	case v.Kind != None:
		h := &v.Header
		b = number(b, `,"src":`, int(h.Src))
		b = number(b, `,"dst":`, int(h.Dst))
		if !v.isShake() {
			b = number(b, `,"id":`, int(h.Seq))
			b = number(b, `,"ack_start":`, int(h.AckStart))
			b = number(b, `,"ack_count":`, int(h.AckCount))
		}
		b = number(b, `,"flags":`, int(h.Flags))
		if v.isShake() {
			b = v.jsonShake(b)
		}
	}
	if v.Checksum != frame.NoChecksum {
		b = boolean(b, `,"checksum_right":`, v.Checksum == frame.RightChecksum)
	}
	b = append(b, `,"messages":[`...)
	for i := range v.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.jsonMessage(b, v, &v.Messages[i])
	}
	b = number(b, `],"padding":`, len(v.Padding))
	if p.Bytes {
		b = append(hexBytes(append(b, `,"padding_bytes":"`...), v.Padding), '"')
	}
	if e := v.Malformed; e != nil {
		b = number(b, `,"malformed":{"offset":`, e.Off)
		b = append(append(append(b, `,"reason":"`...), e.Reason.String()...), `"}`...)
	}
	return append(b, "}\n"...)
}

// jsonShake appends what a frame of a handshake says.
func (v *View) jsonShake(b []byte) []byte {
	b = number(b, `,"session":{"sender":`, int(v.Shake.Sender))
	b = number(b, `,"receiver":`, int(v.Shake.Receiver))
	b = number(b, `,"check":`, int(v.Shake.Check))
	if v.Told {
		b = jsonServices(b, &v.Services)
	}
	if v.Why {
		if v.Shake.Kind == frame.HandshakeWelcome {
			b = append(b, `,"identity":{`...)
		} else {
			b = append(number(b, `,"refusal":{"why":`, int(v.Refusal.Why)), ',')
		}
		b = number(b, `"id":`, int(v.Refusal.ID))
		b = append(number(b, `,"size":`, int(v.Refusal.Size)), '}')
	}
	return append(b, '}')
}

func jsonName(b []byte, name string) []byte {
	if isWord(name) {
		return append(append(append(b, '"'), name...), '"')
	}
	return appendJSON(b, name)
}

// jsonServices needs no escapes: names are of letters, digits and hyphens.
func jsonServices(b []byte, s *frame.Services) []byte {
	b = append(b, `,"services":[`...)
	for i, x := range s.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = x.Name.Append(append(b, `{"name":"`...))
		b = append(number(b, `","base":`, int(x.Base)), '}')
	}
	return number(append(b, ']'), `,"knows":`, s.Known)
}

func (p *Printer) jsonMessage(b []byte, v *View, m *Message) []byte {
	b = number(b, `{"offset":`, m.Offset)
	b = number(b, `,"txn":`, int(m.Txn))
	b = number(b, `,"index":`, int(m.Index))
	b = number(b, `,"count":`, int(m.Count))
	b = number(b, `,"addr":`, int(m.Addr))
	b = number(b, `,"length":`, int(m.Len))
	b = number(b, `,"completion_addr":`, int(m.CompletionAddr))
	b = number(b, `,"completion_value":`, int(m.CompletionValue))
	b = boolean(b, `,"completes":`, m.Completes())
	b = number(b, `,"type":`, int(m.Type))
	b = boolean(b, `,"more":`, m.More)
	if s, ok := v.list(m); ok {
		b = jsonServices(b, &s)
	}
	if p.Bytes {
		b = append(hexBytes(append(b, `,"data":"`...), m.Data), '"')
	}
	return append(b, '}')
}

func boolean(b []byte, before string, v bool) []byte {
	if v {
		return append(append(b, before...), "true"...)
	}
	return append(append(b, before...), "false"...)
}

package captured

import "github.com/dgrdma/dgrdma/frame"

// Session reports whether the packet is a frame of a session, as far as it was captured.
func (p *Packet) Session() bool { return frame.IsSession(p.Data) }

// SessionHeader returns the header of a frame of a session. Not ok: it is none, or is cut within its header.
func (p *Packet) SessionHeader() (h frame.SessionHeader, ok bool) {
	if !p.Session() {
		return h, false
	}
	return frame.SessionHeaderOf(p.Data)
}

// plausibleSession tells frames of a session from other datagrams: nothing is padded, and no message has a type that no sender sets.
func plausibleSession(p *Packet) bool {
	h, ok := p.SessionHeader()
	if !ok || h.Src == 0 || h.Dst == 0 {
		return false
	}
	for m := range p.Messages() {
		if m.Type > mostType {
			return false
		}
	}
	if end, known := endOf(p); known && end != p.Length || !known && (!p.Cut() || end > p.Length) {
		return false
	}
	b, _ := p.Whole()
	_, err := frame.ParseSession(b)
	return err == nil || p.Cut()
}

// sessionEnd is contentEnd of a frame of a session.
func sessionEnd(p *Packet) (end int, known bool) {
	h, ok := p.SessionHeader()
	if !ok {
		return frame.SessionHeaderSize, false
	}
	if h.Control != frame.NoControl {
		end, known = frame.ControlSize(p.Data)
		return max(end, frame.SessionHeaderSize+1), known
	}
	more := true
	end = frame.SessionHeaderSize
	for m := range p.Messages() {
		end += frame.MessageHeaderSize + int(m.Len)
		if more = m.More; more {
			end += frame.PadLen(end - frame.SessionHeaderSize)
		}
	}
	if more {
		end += frame.MessageHeaderSize
	}
	return end, !more
}

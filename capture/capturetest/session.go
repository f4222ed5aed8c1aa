package capturetest

import "github.com/dgrdma/dgrdma/frame"

// SessionFrame is a frame of a session, with what it is.
type SessionFrame struct {
	Name string
	Data []byte
}

// Sessions are frames of a session from 1 to 2, of each kind, with a checksum or without. The tag is 0xcafe.
func Sessions(checks bool) (all []SessionFrame) {
	header := func(id uint32, copied uint8) *frame.SessionHeader {
		return &frame.SessionHeader{Dst: 2, Src: 1, ID: id, Copy: copied, Tag: 0xCAFE, Ack: 0x10002, Checks: checks}
	}
	add := func(name string, b []byte) {
		if b = append(make([]byte, 0, frame.CheckedSize(len(b))), b...); checks {
			b = frame.AddChecksum(b)
		}
		all = append(all, SessionFrame{name, b})
	}
	for copied := range uint8(2) {
		h := header(0x20001, 7*copied)
		name := []string{"data", "data sent again"}[copied]
		b := make([]byte, 256)
		h.Put(b)
		at := frame.SessionHeaderSize
		for i := range uint16(2) {
			m := frame.Message{Txn: 7, CompletionAddr: 0x40, CompletionValue: 1, Count: 2, Index: i + 1, Addr: 0x1000 + 16*uint32(i), Len: 13, More: i == 0}
			m.Put(b[at:])
			at += frame.MessageHeaderSize
			at += copy(b[at:], "thirteen long")
			if m.More {
				at += frame.PadLen(int(m.Len))
			}
		}
		add(name, b[:at])
	}
	b := make([]byte, 1500)
	h := header(0x20002, 1)
	h.Control = frame.ControlBell
	h.Put(b)
	add("BELL", b[:frame.SessionHeaderSize+1])
	add("ACK", b[:frame.PutSessionAckFrame(b, header(0x10009, 0), true, 2, 1000, []frame.Range{{First: 0x10004, Count: 1}, {First: 0x10008, Count: 2}})])
	add("BYE", b[:frame.PutBye(b, header(0, 0), frame.Bye{Reason: 3, Sender: 0x20000, Receiver: 0x10000})])
	add("PROBE", b[:frame.PutProbe(b, header(0, 0), 1400)])
	add("PROBED", b[:frame.PutProbed(b, header(0, 0), 1400)])
	add("RESET", b[:frame.PutReset(b, frame.SessionHeader{Dst: 1, Src: 2, ID: 0x10005, Copy: 3, Tag: 0xCAFE, Ack: 0x20000, Checks: checks})])
	marked := frame.PutSessionAckFrame(b, header(0x10009, 0), false, 0, 1000, []frame.Range{{First: 0x10004, Count: 1}})
	add("ACK with marks", b[:frame.PutMarks(b, marked, frame.Marks{Capable: 5, Congested: 2})])
	return all
}

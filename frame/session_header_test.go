package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// Golden session frames, derived from the layout tables by hand.
var sessionGoldens = []struct {
	name, hex string
	header    SessionHeader
	messages  []message
	control   any
}{
	{
		name: "data", hex: "0200 0100 01efcdab 00 04 44332211 88776655" +
			"11000000 40000000 efbeadde 0100 0100 00000100 0300 00 00 a1a2a3",
		header: SessionHeader{Dst: 2, Src: 1, ID: 0xABCDEF01, Tag: 0x11223344, Ack: 0x55667788},
		messages: []message{{Message{Txn: 0x11, CompletionAddr: 0x40, CompletionValue: 0xDEADBEEF, Count: 1, Index: 1, Addr: 0x10000, Len: 3},
			[]byte{0xA1, 0xA2, 0xA3}}},
	},
	{
		name: "two messages of the fifth retransmission, which has a checksum", hex: "0200 0100 01000000 00 2e 44332211 00000000" +
			"11000000 ffffffff ffffffff 0200 0100 00000100 0300 00 01 a1a2a3 0000000000" +
			"11000000 ffffffff ffffffff 0200 0200 03000100 0100 00 00 a4",
		header: SessionHeader{Dst: 2, Src: 1, ID: 1, Copy: 5, Tag: 0x11223344, Checks: true},
		messages: []message{
			{Message{Txn: 0x11, CompletionAddr: NoCompletion, CompletionValue: NoCompletion, Count: 2, Index: 1, Addr: 0x10000, Len: 3}, []byte{0xA1, 0xA2, 0xA3}},
			{Message{Txn: 0x11, CompletionAddr: NoCompletion, CompletionValue: NoCompletion, Count: 2, Index: 2, Addr: 0x10003, Len: 1}, []byte{0xA4}},
		},
	},
	{
		name: "bell", hex: "0200 0100 01000000 00 44 44332211 88776655 06",
		header: SessionHeader{Dst: 2, Src: 1, ID: 1, Tag: 0x11223344, Ack: 0x55667788, Control: ControlBell},
	},
	{
		name: "acknowledgement", hex: "0200 0100 03000100 00 44 44332211 f0ffffff 01 11 e803 0200 0200 0100 0500 0001",
		header:  SessionHeader{Dst: 2, Src: 1, ID: 0x10003, Tag: 0x11223344, Ack: 0xFFFFFFF0, Control: ControlAck},
		control: ackOf{true, 2, 1000, []Range{{0xFFFFFFF2, 1}, {0xFFFFFFF5, 256}}, Marks{}},
	},
	{
		name: "acknowledgement of a CONFIRM", hex: "0200 0100 f0ffffff 00 44 44332211 f0ffffff 01 00 ffff 0000",
		header:  SessionHeader{Dst: 2, Src: 1, ID: 0xFFFFFFF0, Tag: 0x11223344, Ack: 0xFFFFFFF0, Control: ControlAck},
		control: ackOf{false, 0, LongestDelay, nil, Marks{}},
	},
	{
		name: "acknowledgement with marks", hex: "0200 0100 03000100 00 44 44332211 f0ffffff 01 13 e803 0100 0200 0100 44332211 0d0c0b0a",
		header:  SessionHeader{Dst: 2, Src: 1, ID: 0x10003, Tag: 0x11223344, Ack: 0xFFFFFFF0, Control: ControlAck},
		control: ackOf{true, 2, 1000, []Range{{0xFFFFFFF2, 1}}, Marks{0x11223344, 0x0A0B0C0D}},
	},
	{
		name: "acknowledgement with marks and no ranges", hex: "0200 0100 03000100 00 44 44332211 f0ffffff 01 02 ffff 0000 00000000 01000000",
		header:  SessionHeader{Dst: 2, Src: 1, ID: 0x10003, Tag: 0x11223344, Ack: 0xFFFFFFF0, Control: ControlAck},
		control: ackOf{false, 0, LongestDelay, nil, Marks{0, 1}},
	},
	{
		name: "bye", hex: "0200 0100 00000000 00 44 44332211 88776655 02 03 0d0c0b0a 44332211",
		header:  SessionHeader{Dst: 2, Src: 1, Tag: 0x11223344, Ack: 0x55667788, Control: ControlBye},
		control: Bye{3, 0x0A0B0C0D, 0x11223344},
	},
	{
		name: "probe", hex: "0200 0100 00000000 00 44 44332211 88776655 03 00 1a00 00000000",
		header:  SessionHeader{Dst: 2, Src: 1, Tag: 0x11223344, Ack: 0x55667788, Control: ControlProbe},
		control: 26,
	},
	{
		name: "probed", hex: "0200 0100 00000000 00 44 44332211 88776655 04 00 dc05",
		header:  SessionHeader{Dst: 2, Src: 1, Tag: 0x11223344, Ack: 0x55667788, Control: ControlProbed},
		control: 1500,
	},
	{
		name: "reset", hex: "0100 0200 01efcdab 00 7c 44332211 88776655 05",
		header:  SessionHeader{Dst: 1, Src: 2, ID: 0xABCDEF01, Copy: 7, Tag: 0x11223344, Ack: 0x55667788, Control: ControlReset},
		control: resetOf{},
	},
}

type (
	ackOf struct {
		again  bool
		copied uint8
		delay  int
		ranges []Range
		marks  Marks
	}
	resetOf struct{}
)

// TestSessionFrames checks that each golden session frame is read as what it is, and written as it is.
func TestSessionFrames(t *testing.T) {
	for _, g := range sessionGoldens {
		t.Run(g.name, func(t *testing.T) {
			want := bytesOf(t, g.hex)
			f, err := ParseSession(want)
			if err != nil {
				t.Fatal(err)
			}
			if f.SessionHeader != g.header || f.Messages() != len(g.messages) || f.Size() != len(want) {
				t.Errorf("%+v, %d messages, %d bytes", f.SessionHeader, f.Messages(), f.Size())
			}
			i := 0
			for c := f.Cursor(); c.Next(); i++ {
				m := c.Msg
				m.More = false
				if m != g.messages[i].Message || !bytes.Equal(c.Data, g.messages[i].data) {
					t.Errorf("message %d: %+v, %x", i, m, c.Data)
				}
			}
			if b := encode(t, &f, &g.header, g.control, g.messages); !bytes.Equal(b, want) {
				t.Errorf("%x, want %x", b, want)
			}
			// Endpoints of another kind see a frame without messages that acknowledges nothing.
			if old, err := Parse(want); err != nil || old.Messages() != 0 || old.AckCount != 0 {
				t.Errorf("to others: %v, %v", old, err)
			}
		})
	}
}

// encode writes the frame that has that header and those contents, after it has checked that f has them.
func encode(t *testing.T, f *SessionFrame, h *SessionHeader, control any, messages []message) []byte {
	t.Helper()
	b := bytes.Repeat([]byte{0xEE}, 2048)
	head := *h
	switch c := control.(type) {
	case ackOf:
		a, ok := f.SessionAck()
		if !ok || a.Again != c.again || a.Copy != c.copied || a.Delay != c.delay || a.Ranges.Len() != len(c.ranges) || a.Marks != c.marks {
			t.Errorf("%+v, %v", a, ok)
		}
		for i, r := range c.ranges {
			if a.Ranges.At(i) != r {
				t.Errorf("range %d: %+v, want %+v", i, a.Ranges.At(i), r)
			}
		}
		return b[:PutMarks(b, PutSessionAckFrame(b, &head, c.again, c.copied, c.delay, c.ranges), c.marks)]
	case Bye:
		if y, ok := f.Bye(); !ok || y != c {
			t.Errorf("%+v, %v", y, ok)
		}
		return b[:PutBye(b, &head, c)]
	case int:
		if n, ok := f.Probe(); !ok || n != c {
			t.Errorf("%d, %v", n, ok)
		}
		if h.Control == ControlProbe {
			return b[:PutProbe(b, &head, c)]
		}
		return b[:PutProbed(b, &head, c)]
	case resetOf:
		head.Dst, head.Src, head.Control = head.Src, head.Dst, NoControl
		return b[:PutReset(b, head)]
	}
	h.Put(b)
	if h.Control == ControlBell {
		return b[:SessionHeaderSize+1]
	}
	at := SessionHeaderSize
	for i, m := range messages {
		m.More = i+1 < len(messages)
		m.Put(b[at:])
		at += MessageHeaderSize + copy(b[at+MessageHeaderSize:], m.data)
		if m.More {
			clear(b[at : at+PadLen(len(m.data))])
			at += PadLen(len(m.data))
		}
	}
	return b[:at]
}

// TestResetIsNoLonger checks that a RESET is never longer than the frame that it answers, with and without a checksum: forged
// source addresses multiply nothing by it.
func TestResetIsNoLonger(t *testing.T) {
	for _, checks := range []bool{false, true} {
		for _, g := range sessionGoldens {
			if g.control != nil {
				continue // not answered
			}
			h := g.header
			h.Checks = checks
			b := bytesOf(t, g.hex)
			h.Put(b)
			if checks {
				b = AddChecksum(append(b, make([]byte, 64)...)[:len(b)])
			}
			answer := make([]byte, 64)
			n := PutReset(answer, h)
			if checks {
				n = CheckedSize(n)
			}
			if n > len(b) {
				t.Errorf("%s, checksum %v: %d bytes answered with %d", g.name, checks, len(b), n)
			}
		}
	}
}

// TestNotSessionFrames checks that what is no session frame is refused, with the reason.
func TestNotSessionFrames(t *testing.T) {
	ack := "0200 0100 03000100 00 44 44332211 f0ffffff 01 11 e803 "
	for name, c := range map[string]struct {
		hex  string
		want Reason
	}{
		"nothing":                    {"", ShortSession},
		"a header of the other kind": {"0200 0100 0700 0000 00 00", ShortSession},
		"a cut header":               {"0200 0100 01efcdab 00 04 44332211 887766", ShortSession},
		"not flagged":                {"0200 0100 01efcdab 00 00 44332211 88776655 06", NoSession},
		"sealed":                     {"0200 0100 01efcdab 00 84 44332211 88776655 06", NoSession},
		"messages of the other kind": {"0200 0100 01efcdab 00 05 44332211 88776655 06", NoSession},
		"acknowledges":               {"0200 0100 01efcdab 01 44 44332211 88776655 06", NoSession},
		"data without a message":     {"0200 0100 01efcdab 00 04 44332211 88776655", ShortMessage},
		"half a message header":      {"0200 0100 01efcdab 00 04 44332211 88776655 1100000040000000", ShortMessage},
		"data past the end":          {"0200 0100 01efcdab 00 04 44332211 88776655 11000000 40000000 efbeadde 0100 0100 00000100 0300 00 00 a1a2", DataPastEnd},
		"control of no kind":         {"0200 0100 01efcdab 00 44 44332211 88776655 00", UnknownControl},
		"control of kind 7":          {"0200 0100 01efcdab 00 44 44332211 88776655 07", UnknownControl},
		"control cut":                {"0200 0100 01efcdab 00 44 44332211 88776655", ShortControl},
		"ACK cut":                    {ack + "01", ShortControl},
		"ACK with a range cut":       {ack + "0100 0200 01", ShortControl},
		"ranges out of order":        {ack + "0200 0500 0100 0200 0100", BadRanges},
		"ranges that touch":          {ack + "0200 0200 0100 0300 0100", BadRanges},
		"ranges that overlap":        {ack + "0200 0200 0500 0300 0100", BadRanges},
		"a range that continues the cumulative acknowledgement": {ack + "0100 0100 0100", BadRanges},
		"a range of the acknowledgement itself":                 {ack + "0100 0000 0100", BadRanges},
		"an empty range":                                        {ack + "0100 0200 0000", BadRanges},
		"65 ranges":                                             {ack + "4100", BadRanges},
		"BYE cut":                                               {"0200 0100 00000000 00 44 44332211 88776655 02 03 0d0c0b0a 443322", ShortControl},
		"PROBE cut":                                             {"0200 0100 00000000 00 44 44332211 88776655 03 00 1a", ShortControl},
		"PROBE that lost bytes":                                 {"0200 0100 00000000 00 44 44332211 88776655 03 00 1a00 000000", WrongProbe},
	} {
		b := bytesOf(t, c.hex)
		f, err := ParseSession(b)
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.want || e.Len != len(b) || e.Off > len(b) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if f.SessionHeader != (SessionHeader{}) || f.Messages() != 0 {
			t.Errorf("%s: a frame with the error: %+v", name, f)
		}
	}
}

// TestSessionFrameChanges checks what changes in a frame that is sent again: its copy number, and what it acknowledges.
func TestSessionFrameChanges(t *testing.T) {
	for _, g := range sessionGoldens {
		b := bytesOf(t, g.hex)
		for copied := range uint8(10) {
			PutCopy(b, copied)
			PutSessionAck(b, 0x01020304)
			want := g.header
			want.Copy, want.Ack = min(copied, MostCopies), 0x01020304
			if f, err := ParseSession(b); err != nil || f.SessionHeader != want {
				t.Errorf("%s: %+v, %v, want %+v", g.name, f.SessionHeader, err, want)
			}
		}
	}
}

// TestSessionHeaderText checks how a header is printed.
func TestSessionHeaderText(t *testing.T) {
	for want, h := range map[string]SessionHeader{
		"1->2 data id 7 copy 1 up to 3 tag 0xcafe checksum": {Dst: 2, Src: 1, ID: 7, Copy: 1, Tag: 0xCAFE, Ack: 3, Checks: true},
		"1->2 ACK of id 7 up to 3 tag 0xcafe":               {Dst: 2, Src: 1, ID: 7, Tag: 0xCAFE, Ack: 3, Control: ControlAck},
		"1->2 BYE up to 3 tag 0xcafe":                       {Dst: 2, Src: 1, Tag: 0xCAFE, Ack: 3, Control: ControlBye},
		"1->2 control 9 up to 3 tag 0xcafe":                 {Dst: 2, Src: 1, Tag: 0xCAFE, Ack: 3, Control: 9},
	} {
		if got := h.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSessionChecksums checks that a session frame tells whether it ends with a checksum, and is found damaged by it.
func TestSessionChecksums(t *testing.T) {
	for _, g := range sessionGoldens {
		b := bytesOf(t, g.hex)
		h := g.header
		h.Checks = true
		if h.Control == ControlProbe {
			continue // its length counts the checksum: TestCheckedProbe
		}
		h.Put(b)
		n := len(b)
		b = AddChecksum(append(b, make([]byte, 64)...)[:n])
		if cut, sum := SplitChecksum(b); sum != RightChecksum || len(cut) != len(b)-ChecksumSize {
			t.Errorf("%s: %v, %d bytes", g.name, sum, len(cut))
		} else if f, err := ParseSession(cut); err != nil || f.SessionHeader != h {
			t.Errorf("%s: %+v, %v", g.name, f.SessionHeader, err)
		}
		b[5] ^= 0x10
		if _, sum := SplitChecksum(b); sum != WrongChecksum {
			t.Errorf("%s, damaged: %v", g.name, sum)
		}
	}
}

// TestCheckedProbe checks that the length that a PROBE asks for has its checksum in it.
func TestCheckedProbe(t *testing.T) {
	b := make([]byte, 1500)
	n := PutProbe(b, &SessionHeader{Dst: 2, Src: 1, Checks: true}, 1500)
	whole := AddChecksum(b[:n])
	cut, sum := SplitChecksum(whole)
	f, err := ParseSession(cut)
	if size, ok := f.Probe(); len(whole) != 1500 || sum != RightChecksum || err != nil || !ok || size != 1500 {
		t.Errorf("%d bytes, %v, %v, %d", len(whole), sum, err, size)
	}
}

// TestManyRanges checks an acknowledgement of as many ranges as there may be, as far apart as they may be.
func TestManyRanges(t *testing.T) {
	var ranges []Range
	for i := range MostRanges {
		ranges = append(ranges, Range{uint32(1000*(i+1) - 1), 999})
	}
	ranges[MostRanges-1] = Range{65534, 65535}
	b := make([]byte, 512)
	h := SessionHeader{Dst: 2, Src: 1, ID: 5, Ack: 0xFFFFFFFF}
	f, err := ParseSession(b[:PutSessionAckFrame(b, &h, false, 9, 1<<30, ranges)])
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.SessionAck()
	if a.Copy != MostCopies || a.Delay != LongestDelay || a.Ranges.Len() != MostRanges {
		t.Errorf("%+v", a)
	}
	for i, r := range ranges {
		if a.Ranges.At(i) != r {
			t.Errorf("range %d: %+v, want %+v", i, a.Ranges.At(i), r)
		}
	}
}

// FuzzParseSession checks that no bytes make ParseSession panic or read what is not there, and that what it takes is what was written.
func FuzzParseSession(f *testing.F) {
	for _, g := range sessionGoldens {
		b := bytesOf(f, g.hex)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:len(b):len(b)]
		fr, err := ParseSession(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Len != len(b) || e.Off < 0 || e.Off > len(b) || e.Reason.String() == "" {
				t.Fatalf("error %#v for %d bytes", err, len(b))
			}
			return
		}
		again := bytes.Clone(b)
		fr.Put(again)
		if !bytes.Equal(again, b) {
			t.Fatalf("header %+v is written as %x, and was %x", fr.SessionHeader, again, b)
		}
		at := SessionHeaderSize
		for c := fr.Cursor(); c.Next(); {
			n := int(binary.LittleEndian.Uint16(b[at+20:]))
			if len(c.Data) != n || cap(c.Data) != n {
				t.Fatalf("message at %d: %d bytes, want %d", at, len(c.Data), n)
			}
			at += MessageHeaderSize + n
			if c.Msg.More {
				at += PadLen(n)
			}
		}
		if a, ok := fr.SessionAck(); ok {
			end := fr.Ack + 1
			for i := range a.Ranges.Len() {
				r := a.Ranges.At(i)
				if r.First-fr.Ack <= end-fr.Ack || r.Count <= 0 {
					t.Fatalf("range %d: %+v after %d, acknowledged %d", i, r, end, fr.Ack)
				}
				end = r.First + uint32(r.Count)
			}
		}
	})
}

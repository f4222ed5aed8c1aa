package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// message is a decoded message with a copy of its data.
type message struct {
	Message
	data []byte
}

func dataMessage(txn uint32, n int) message {
	data := make([]byte, n)
	for j := range data {
		data[j] = byte(7*j + int(txn) + 1)
	}
	return message{
		Message{Txn: txn, CompletionAddr: 0x40, CompletionValue: txn, Count: 1, Index: 1,
			Addr: 0x10000, Len: uint16(n)},
		data,
	}
}

// lay builds a frame by appending, field after field, sharing no code with
// Writer and Put. Padding between messages is filled with pad.
func lay(h Header, pad byte, msgs ...message) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(h.Dst))
	b = le.AppendUint16(b, uint16(h.Src))
	b = le.AppendUint16(b, uint16(h.Seq))
	b = le.AppendUint16(b, uint16(h.AckStart))
	b = append(b, h.AckCount, h.Flags)
	for i, m := range msgs {
		b = le.AppendUint32(b, m.Txn)
		b = le.AppendUint32(b, m.CompletionAddr)
		b = le.AppendUint32(b, m.CompletionValue)
		b = le.AppendUint16(b, m.Count)
		b = le.AppendUint16(b, m.Index)
		b = le.AppendUint32(b, m.Addr)
		b = le.AppendUint16(b, m.Len)
		b = append(b, m.Type)
		if i == len(msgs)-1 {
			return append(append(b, 0), m.data...)
		}
		b = append(append(b, 1), m.data...)
		for (len(b)-10)%8 != 0 {
			b = append(b, pad)
		}
	}
	return b
}

// collect walks f; More is cleared, because lay and Writer derive it.
func collect(f Frame) (msgs []message) {
	for c := f.Cursor(); c.Next(); {
		m := c.Msg
		m.More = false
		msgs = append(msgs, message{m, bytes.Clone(c.Data)})
	}
	return msgs
}

func sameMessages(a, b []message) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Message != b[i].Message || !bytes.Equal(a[i].data, b[i].data) {
			return false
		}
	}
	return true
}

// write encodes with Header.Put and Writer into a buffer full of 0xAA.
func write(t testing.TB, h Header, msgs ...message) []byte {
	t.Helper()
	buf := bytes.Repeat([]byte{0xAA}, 1<<18)
	var w Writer
	w.Init(buf)
	for i := range msgs {
		if w.Room() < len(msgs[i].data) {
			t.Fatalf("message %d: room %d for %d bytes", i, w.Room(), len(msgs[i].data))
		}
		copy(w.Add(&msgs[i].Message), msgs[i].data)
	}
	h.Put(buf)
	return buf[:w.Len()]
}

// DGRDMA-010: ten bytes, little-endian.
func TestHeaderBytes(t *testing.T) {
	h := Header{Dst: 0x0102, Src: 0x0304, Seq: 0x0506, AckStart: 0x0708, AckCount: 0x09, Flags: 0x01}
	want := []byte{0x02, 0x01, 0x04, 0x03, 0x06, 0x05, 0x08, 0x07, 0x09, 0x01}
	got := make([]byte, HeaderSize)
	h.Put(got)
	if !bytes.Equal(got, want) {
		t.Errorf("Put: % x, want % x", got, want)
	}
	h.Flags = 0
	want[9] = 0
	f, err := Parse(want)
	if err != nil || f.Header != h {
		t.Errorf("Parse: %+v, %v; want %+v", f.Header, err, h)
	}
}

// DGRDMA-010, DGRDMA-018: every field of a message header at its offset.
func TestMessageHeaderBytes(t *testing.T) {
	m := Message{
		Txn: 0x01020304, CompletionAddr: 0x05060708, CompletionValue: 0x090A0B0C,
		Count: 0x0D0E, Index: 0x0F10, Addr: 0x11121314, Len: 0x0002, Type: 0x17,
	}
	want := []byte{
		0x04, 0x03, 0x02, 0x01, 0x08, 0x07, 0x06, 0x05, 0x0C, 0x0B, 0x0A, 0x09,
		0x0E, 0x0D, 0x10, 0x0F, 0x14, 0x13, 0x12, 0x11, 0x02, 0x00, 0x17, 0x00,
	}
	got := make([]byte, MessageHeaderSize)
	m.Put(got)
	if !bytes.Equal(got, want) {
		t.Errorf("Put: % x\n want % x", got, want)
	}
	b := append([]byte{1, 0, 2, 0, 0, 0, 0, 0, 0, 1}, want...)
	f, err := Parse(append(b, 0xD0, 0xD1))
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(f); !sameMessages(got, []message{{m, []byte{0xD0, 0xD1}}}) {
		t.Errorf("Parse: %+v", got)
	}

	m.More = true
	m.Put(got)
	if got[23] != 1 {
		t.Errorf("more byte is %d, want exactly 1", got[23])
	}
}

// DGRDMA-007, DGRDMA-019: messages of several transactions, each header on a
// multiple of 8 from the end of the frame header, whatever the lengths.
func TestMessagesOfSeveralTransactions(t *testing.T) {
	for n := range 17 {
		msgs := []message{dataMessage(1, n), dataMessage(2, n+3), dataMessage(2, 0), dataMessage(9, 17-n)}
		h := Header{Dst: 2, Src: 1, Seq: 77, Flags: FlagMessages}
		want := lay(h, 0, msgs...)
		got := write(t, h, msgs...)
		if !bytes.Equal(got, want) {
			t.Fatalf("length %d: wrote\n% x, want\n% x", n, got, want)
		}
		f, err := Parse(lay(h, 0xEE, msgs...))
		if err != nil {
			t.Fatalf("length %d: %v", n, err)
		}
		if f.Messages() != len(msgs) || !sameMessages(collect(f), msgs) {
			t.Fatalf("length %d: read %+v", n, collect(f))
		}
	}
}

func TestAlignmentCountsFromFrameHeader(t *testing.T) {
	h := Header{Dst: 2, Src: 1, Flags: FlagMessages}
	for _, tt := range []struct{ n, second int }{
		{0, 34}, {1, 42}, {7, 42}, {8, 42}, {9, 50}, {64, 98}, {1437, 1474},
	} {
		b := write(t, h, dataMessage(1, tt.n), dataMessage(2, 0))
		if got := len(b) - MessageHeaderSize; got != tt.second {
			t.Errorf("after %d data bytes the second header is at %d, want %d", tt.n, got, tt.second)
		}
	}
}

// DGRDMA-020: the last message ends the frame, not the datagram.
func TestTrailingBytesIgnored(t *testing.T) {
	h := Header{Dst: 2, Src: 1, Seq: 5, Flags: FlagMessages}
	msg := dataMessage(1, 5)
	b := lay(h, 0, msg)
	for n := range 64 {
		padded := append(bytes.Clone(b), bytes.Repeat([]byte{0xFF}, n)...)
		f, err := Parse(padded)
		if err != nil {
			t.Fatalf("%d trailing bytes: %v", n, err)
		}
		if !sameMessages(collect(f), []message{msg}) || !bytes.Equal(f.Body(), b[HeaderSize:]) {
			t.Fatalf("%d trailing bytes: %v", n, f)
		}
	}
	ack := lay(Header{Dst: 2, Src: 1, AckStart: 1, AckCount: 2}, 0)
	f, err := Parse(append(ack, bytes.Repeat([]byte{0xFF}, 36)...))
	if err != nil || f.Messages() != 0 || len(f.Body()) != 0 {
		t.Errorf("padded acknowledgement: %v, %v", f, err)
	}
}

// DGRDMA-015: only bit 0 of the flags counts.
func TestReservedFlagsIgnored(t *testing.T) {
	msg := dataMessage(1, 8)
	for flags := range 256 {
		h := Header{Dst: 2, Src: 1, Flags: uint8(flags)}
		f, err := Parse(lay(h, 0, msg))
		if err != nil {
			t.Fatalf("flags %#x: %v", flags, err)
		}
		if f.HasMessages() != (flags&1 == 1) || f.Messages() != flags&1 || len(collect(f)) != flags&1 {
			t.Errorf("flags %#x: %d messages", flags, f.Messages())
		}
		if f.Header != h {
			t.Errorf("flags %#x read as %#x", flags, f.Flags)
		}
	}
}

func TestAnyMoreByteMeansMore(t *testing.T) {
	b := lay(Header{Dst: 2, Src: 1, Flags: 1}, 0, dataMessage(1, 8), dataMessage(2, 8))
	for _, more := range []byte{1, 2, 0x80, 0xFF} {
		b[HeaderSize+msgMore] = more
		f, err := Parse(b)
		if err != nil || f.Messages() != 2 {
			t.Errorf("more byte %#x: %d messages, %v", more, f.Messages(), err)
		}
	}
}

// DGRDMA-021: a frame cut anywhere is refused, and the error says where.
func TestTruncatedAtEveryOffset(t *testing.T) {
	// Headers at 10, 42 and 72+8; data 34..39, 66..77, 104..107.
	msgs := []message{dataMessage(1, 5), dataMessage(2, 12), dataMessage(3, 3)}
	b := lay(Header{Dst: 2, Src: 1, Flags: 1}, 0, msgs...)
	want := func(n int) Error {
		switch {
		case n < 10:
			return Error{0, n, ShortHeader}
		case n < 34:
			return Error{10, n, ShortMessage}
		case n < 39:
			return Error{10, n, DataPastEnd}
		case n < 42:
			return Error{39, n, PaddingNoMore}
		case n < 66:
			return Error{42, n, ShortMessage}
		case n < 78:
			return Error{42, n, DataPastEnd}
		case n < 82:
			return Error{78, n, PaddingNoMore}
		case n < 106:
			return Error{82, n, ShortMessage}
		default:
			return Error{82, n, DataPastEnd}
		}
	}
	if len(b) != 109 {
		t.Fatalf("frame of %d bytes", len(b))
	}
	for n := range b {
		f, err := Parse(b[:n:n])
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if *e != want(n) {
			t.Errorf("%d bytes: %v, want %v", n, e, &Error{want(n).Off, n, want(n).Reason})
		}
		if f.Messages() != 0 || f.Body() != nil || f.Header != (Header{}) {
			t.Errorf("%d bytes: error with a frame: %v", n, f)
		}
	}
	if _, err := Parse(b); err != nil {
		t.Error(err)
	}
}

// DGRDMA-021: a length that reaches past the datagram, by one or by all.
func TestLengthPastTheEnd(t *testing.T) {
	h := Header{Dst: 2, Src: 1, Flags: 1}
	for _, claimed := range []uint16{9, 16, 255, 256, 32767, 32768, 65535} {
		first, last := dataMessage(1, 8), dataMessage(2, 8)
		last.Len = claimed
		_, err := Parse(lay(h, 0, first, last))
		var e *Error
		if !errors.As(err, &e) || e.Reason != DataPastEnd || e.Off != 42 {
			t.Errorf("last message claims %d: %v", claimed, err)
		}
	}
}

// DGRDMA-021: a flag that announces a message where none fits.
func TestMoreWithoutMessage(t *testing.T) {
	for n := range 9 {
		b := lay(Header{Dst: 2, Src: 1, Flags: 1}, 0, dataMessage(1, n))
		b[HeaderSize+msgMore] = 1
		want := PaddingNoMore
		if n%8 == 0 {
			want = ShortMessage
		}
		_, err := Parse(b)
		var e *Error
		if !errors.As(err, &e) || e.Reason != want || e.Off != len(b) {
			t.Errorf("%d data bytes: %v", n, err)
		}
	}
}

// DGRDMA-016: the widest range, and ranges over the wrap.
func TestAcknowledgedRanges(t *testing.T) {
	for _, tt := range []struct {
		start Seq
		count uint8
		last  Seq
	}{
		{6577, 1, 6577}, {65535, 3, 1}, {65535, 1, 65535}, {65281, 255, 65535}, {65500, 255, 218}, {0, 255, 254},
	} {
		b := make([]byte, HeaderSize)
		h := Header{Dst: 1, Src: 2}
		h.Put(b)
		PutAck(b, tt.start, tt.count)
		f, err := Parse(b)
		if err != nil || f.AckStart != tt.start || f.AckCount != tt.count {
			t.Errorf("%+v: read %v, %v", tt, f, err)
		}
		if last := f.AckStart.Add(int(f.AckCount) - 1); last != tt.last {
			t.Errorf("%+v: last is %d", tt, last)
		}
	}
}

// DGRDMA-031: a fresh acknowledgement changes no other byte.
func TestPutAckTouchesThreeBytes(t *testing.T) {
	b := bytes.Repeat([]byte{0xAA}, 40)
	PutAck(b, 0x1234, 0x56)
	want := bytes.Repeat([]byte{0xAA}, 40)
	copy(want[6:], []byte{0x34, 0x12, 0x56})
	if !bytes.Equal(b, want) {
		t.Errorf("% x", b)
	}
}

// DGRDMA-003: 16-bit fields at their ends.
func TestWidestFields(t *testing.T) {
	m := dataMessage(0xFFFFFFFF, MaxData)
	m.CompletionAddr, m.CompletionValue, m.Addr = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF
	m.Count, m.Index, m.Type = MaxMessages, MaxMessages, 255
	h := Header{Dst: 65535, Src: 65535, Seq: 65535, AckStart: 65535, AckCount: 255, Flags: 1}
	small := dataMessage(0, 0)
	for _, msgs := range [][]message{{m}, {m, small}, {small, m}, {m, m}} {
		want := lay(h, 0, msgs...)
		got := write(t, h, msgs...)
		if !bytes.Equal(got, want) {
			t.Errorf("%d messages: encodings differ", len(msgs))
		}
		f, err := Parse(got)
		if err != nil || f.Header != h || !sameMessages(collect(f), msgs) {
			t.Errorf("%d messages: %v", len(msgs), err)
		}
		if _, err := Parse(got[:len(got)-1]); err == nil {
			t.Errorf("%d messages: one byte less is accepted", len(msgs))
		}
	}
}

// DGRDMA-006 and the quirk of a peer that sends data with count 0: both parse,
// and the data is there for the receiver to place.
func TestCountZero(t *testing.T) {
	for _, n := range []int{0, 1, 64} {
		m := dataMessage(7, n)
		m.Count = 0
		f, err := Parse(lay(Header{Dst: 2, Src: 1, Flags: 1}, 0, m, dataMessage(8, 4)))
		if err != nil {
			t.Fatal(err)
		}
		c := f.Cursor()
		if !c.Next() || c.Msg.Count != 0 || !bytes.Equal(c.Data, m.data) {
			t.Errorf("%d bytes: %v % x", n, c.Msg, c.Data)
		}
		if !c.Next() || c.Msg.Txn != 8 || c.Next() {
			t.Errorf("%d bytes: the message after it is lost", n)
		}
	}
}

// DGRDMA-023: what makes two messages one transaction.
func TestSameTransaction(t *testing.T) {
	base := Message{Txn: 1, CompletionAddr: 2, CompletionValue: 3, Count: 4}
	other := base
	other.Index, other.Addr, other.Len, other.Type, other.More = 9, 9, 9, 9, true
	if !base.SameTransaction(&other) {
		t.Error("per-message fields must not matter")
	}
	for name, change := range map[string]func(*Message){
		"txn":   func(m *Message) { m.Txn++ },
		"addr":  func(m *Message) { m.CompletionAddr++ },
		"value": func(m *Message) { m.CompletionValue++ },
		"count": func(m *Message) { m.Count++ },
	} {
		other := base
		change(&other)
		if base.SameTransaction(&other) {
			t.Errorf("%s must matter", name)
		}
	}
}

func TestCompletes(t *testing.T) {
	for _, tt := range []struct {
		addr, value uint32
		want        bool
	}{
		{0x40, 1, true}, {0, 0, true}, {NoCompletion, 1, true}, {0x40, NoCompletion, true}, {NoCompletion, NoCompletion, false},
	} {
		m := Message{CompletionAddr: tt.addr, CompletionValue: tt.value}
		if m.Completes() != tt.want {
			t.Errorf("%+v: %v", tt, !tt.want)
		}
	}
}

// The data of a message must not be growable into the next one.
func TestDataCapacityEndsWithData(t *testing.T) {
	b := lay(Header{Dst: 2, Src: 1, Flags: 1}, 0, dataMessage(1, 5), dataMessage(2, 5))
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	for c := f.Cursor(); c.Next(); {
		if cap(c.Data) != len(c.Data) {
			t.Errorf("capacity %d for %d bytes", cap(c.Data), len(c.Data))
		}
	}
}

func TestCursorOfNothing(t *testing.T) {
	for _, f := range []Frame{{}, {Header: Header{Flags: 1}}} {
		if c := f.Cursor(); c.Next() {
			t.Error("message in an empty frame")
		}
	}
	f, _ := Parse(lay(Header{Flags: 1}, 0, dataMessage(1, 3)))
	c := f.Cursor()
	for c.Next() {
	}
	if c.Next() {
		t.Error("Next after the end")
	}
}

func TestPadLen(t *testing.T) {
	for n := range 4096 {
		if p := PadLen(n); p < 0 || p > 7 || (n+p)%8 != 0 {
			t.Fatalf("PadLen(%d) = %d", n, p)
		}
	}
}

// DGRDMA-013: serial arithmetic through the wrap.
func TestSeq(t *testing.T) {
	for _, tt := range []struct {
		s, t Seq
		diff int
	}{
		{0, 0, 0}, {1, 0, 1}, {0, 1, -1}, {0, 65535, 1}, {65535, 0, -1}, {5, 65530, 11},
		{32767, 0, 32767}, {0, 32767, -32767}, {32768, 0, -32768}, {0, 32768, -32768}, {40000, 7233, 32767},
	} {
		if d := tt.s.Diff(tt.t); d != tt.diff {
			t.Errorf("%d.Diff(%d) = %d, want %d", tt.s, tt.t, d, tt.diff)
		}
		if before := tt.s.Before(tt.t); before != (tt.diff < 0) {
			t.Errorf("%d.Before(%d) = %v", tt.s, tt.t, before)
		}
		if got := tt.t.Add(tt.diff); got != tt.s {
			t.Errorf("%d.Add(%d) = %d, want %d", tt.t, tt.diff, got, tt.s)
		}
	}
	for s := range 65536 {
		for _, n := range []int{-32767, -256, -1, 0, 1, 255, 32767} {
			if d := Seq(s).Add(n).Diff(Seq(s)); d != n {
				t.Fatalf("(%d+%d)-%d = %d", s, n, s, d)
			}
		}
	}
	if got := Seq(3).Add(-65536 - 4); got != 65535 {
		t.Errorf("Add over a whole turn: %d", got)
	}
}

func TestStrings(t *testing.T) {
	h := Header{Dst: 2, Src: 1, Seq: 7, AckStart: 65535, AckCount: 2, Flags: 0x81}
	m := dataMessage(9, 16)
	done := Message{Txn: 3, CompletionAddr: 0x40, CompletionValue: 1, Index: 1, Type: 2}
	plain := Message{Txn: 4, CompletionAddr: NoCompletion, CompletionValue: NoCompletion, Count: 2, Index: 2, Addr: 0x80, Len: 4}
	f, err := Parse(lay(h, 0, m, message{Message: done}))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ got, want string }{
		{Header{Dst: 2, Src: 1, Seq: 7, AckStart: 9, Flags: 1}.String(), "1->2 id 7"},
		{h.String(), "1->2 id 7 ack 65535+2 flags 0x81"},
		{m.String(), "txn 9 1/1 16 bytes at 0x10000 then 0x9 at 0x40"},
		{done.String(), "txn 3 1/0 then 0x1 at 0x40 type 2"},
		{plain.String(), "txn 4 2/2 4 bytes at 0x80"},
		{f.String(), "1->2 id 7 ack 65535+2 flags 0x81 [txn 9 1/1 16 bytes at 0x10000 then 0x9 at 0x40] [txn 3 1/0 then 0x1 at 0x40 type 2]"},
		{(&Error{42, 50, DataPastEnd}).Error(), "dgrdma: bad frame at offset 42 of 50 bytes: data length of the message reaches past the end of the datagram"},
		{Reason(0).String(), "reason 0"},
		{Reason(99).String(), "reason 99"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	for r := ShortHeader; r <= PaddingNoMore; r++ {
		if strings.HasPrefix(r.String(), "reason") {
			t.Errorf("reason %d has no text", r)
		}
	}

	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("in", "frame", f)
	want := "frame.src=1 frame.dst=2 frame.id=7 frame.ackStart=65535 frame.ackCount=2 frame.messages=2\n"
	if !strings.HasSuffix(log.String(), want) {
		t.Errorf("logged %q, want ... %q", log.String(), want)
	}
}

func TestNoAllocations(t *testing.T) {
	buf := lay(Header{Dst: 2, Src: 1, Flags: 1}, 0, dataMessage(1, 100), dataMessage(2, 3), dataMessage(3, 700))
	out := make([]byte, 1490)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		f, err := Parse(buf)
		if err != nil {
			t.Fatal(err)
		}
		var w Writer
		w.Init(out)
		for c := f.Cursor(); c.Next(); {
			c.Msg.More = false
			sum += copy(w.Add(&c.Msg), c.Data)
		}
		f.Put(out)
		PutAck(out, 1, 1)
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
	if sum == 0 {
		t.Error("nothing was copied")
	}
}

package frame

import (
	"fmt"
	"log/slog"
	"strings"
)

// String describes h in one line, source first.
func (h Header) String() string {
	s := fmt.Sprintf("%d->%d id %d", h.Src, h.Dst, h.Seq)
	if h.AckCount != 0 {
		s += fmt.Sprintf(" ack %d+%d", h.AckStart, h.AckCount)
	}
	if h.Flags&^FlagMessages != 0 {
		s += fmt.Sprintf(" flags %#02x", h.Flags)
	}
	return s
}

// String describes m in one line.
func (m Message) String() string {
	s := fmt.Sprintf("txn %d %d/%d", m.Txn, m.Index, m.Count)
	if m.Len != 0 {
		s += fmt.Sprintf(" %d bytes at %#x", m.Len, m.Addr)
	}
	if m.Completes() {
		s += fmt.Sprintf(" then %#x at %#x", m.CompletionValue, m.CompletionAddr)
	}
	if m.Type != 0 {
		s += fmt.Sprintf(" type %d", m.Type)
	}
	return s
}

// String describes the frame and each of its messages in one line.
func (f Frame) String() string {
	var b strings.Builder
	b.WriteString(f.Header.String())
	for c := f.Cursor(); c.Next(); {
		fmt.Fprintf(&b, " [%v]", c.Msg)
	}
	return b.String()
}

// LogValue makes a frame readable in structured logs.
func (f Frame) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("src", int(f.Src)), slog.Int("dst", int(f.Dst)),
		slog.Int("id", int(f.Seq)),
		slog.Int("ackStart", int(f.AckStart)), slog.Int("ackCount", int(f.AckCount)),
		slog.Int("messages", f.messages))
}

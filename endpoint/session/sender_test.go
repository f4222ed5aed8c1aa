package session

import (
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// TestSenderHeads checks that each frame names the session by its tag, and has the newest cumulative acknowledgement: a new frame, a copy of one that was
// kept, those of a run, and the one that ends the session.
func TestSenderHeads(t *testing.T) {
	h := newHalves(false)
	h.r.ArrivedRun(0, 3)
	ScheduleAck(0, &h.s, &h.r, 1, 100, false)
	upTo := uint32(there) + 3
	head := func(b []byte) frame.SessionHeader {
		t.Helper()
		x := from(t, b)
		if x.Tag != Tag(there, here) || x.Ack != upTo || x.Dst != 1 || x.Src != 2 {
			t.Errorf("%+v", x.SessionHeader)
		}
		return x.SessionHeader
	}
	m := frame.Message{Txn: 1, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Count: 5, Index: 1, Len: 8}
	b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize+8)
	m.Put(b[frame.SessionHeaderSize:])
	if !h.s.Head(b, 71, 0) {
		t.Error("the acknowledgement does not travel along")
	}
	if x := head(b); x.ID != 71 || x.Copy != 0 {
		t.Errorf("%+v", x)
	}
	h.r.ArrivedRun(0, 1)
	upTo++
	ScheduleAck(0, &h.s, &h.r, 1, 100, false)
	if !h.s.HeadAgain(b, 2) || h.s.HeadAgain(b, 2) {
		t.Error("the acknowledgement travels along with a copy, once")
	}
	if x := head(b); x.ID != 71 || x.Copy != 2 {
		t.Errorf("%+v", x)
	}
	run := h.s.Run(71, &m)
	for i := range uint32(3) {
		run.Next(&m)
		run.Put(b)
		if x := head(b); x.ID != 72+i || x.Copy != 0 {
			t.Errorf("%+v", x)
		}
	}
	bye := make([]byte, 64)
	f := from(t, bye[:h.s.PutBye(bye, Frame{Kind: Bye, Sender: here, Receiver: there})])
	if y, ok := f.Bye(); !ok || y.Sender != uint32(here) || y.Receiver != uint32(there) || f.Tag != Tag(there, here) {
		t.Errorf("%+v, %+v", f.SessionHeader, y)
	}
}

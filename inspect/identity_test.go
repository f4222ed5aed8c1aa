package inspect

import (
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// TestWhoIsThereIsNoProblem: the question who is at an address is for the id 0, and answered in its
// name. Nothing else is.
func TestWhoIsThereIsNoProblem(t *testing.T) {
	a := New()
	add := func(h frame.Header, m frame.Message) {
		b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize)
		h.Flags = frame.FlagMessages
		h.Put(b)
		m.Put(b[frame.HeaderSize:])
		a.Add(&captured.Packet{Packet: capture.Packet{Record: 1, Data: b, Length: len(b)}})
	}
	add(frame.Header{Src: 1}, frame.Hello{Life: 7}.Message())
	add(frame.Header{Dst: 1}, frame.Hello{Life: 7, Peer: 7, Refers: true}.Message())
	if r := a.Report(); r.Capture.Malformed != 0 || r.Capture.Frames != 2 || len(r.Flows) != 0 {
		t.Errorf("%+v, %d flows", r.Capture, len(r.Flows))
	}
	add(frame.Header{Src: 1}, frame.Message{Txn: 7, CompletionValue: 1})
	if r := a.Report(); r.Capture.Malformed != 1 {
		t.Errorf("%+v", r.Capture)
	}
}

package inspect

import (
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// TestWhoIsThereIsNoProblem checks that the question who is at an address, for the id 0, and its answer in the name of that id are frames, and
// nothing else to the id 0 is.
func TestWhoIsThereIsNoProblem(t *testing.T) {
	a := New()
	add := func(b []byte) {
		a.Add(&captured.Packet{Packet: capture.Packet{Record: 1, Data: b, Length: len(b)}})
	}
	shake := func(dst, src frame.EndpointID, h frame.Handshake) {
		b := make([]byte, frame.HandshakeSize)
		h.Put(b, dst, src)
		add(b)
	}
	shake(0, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 7})
	shake(1, 0, frame.Handshake{Kind: frame.HandshakeRefused, Sender: 7, Receiver: 7})
	if r := a.Report(); r.Capture.Malformed != 0 || r.Capture.Frames != 2 || len(r.Flows) != 0 {
		t.Errorf("%+v, %d flows", r.Capture, len(r.Flows))
	}
	b := make([]byte, frame.HandshakeSize)
	(&frame.Header{Src: 1, Flags: frame.FlagMessages}).Put(b)
	(&frame.Message{Txn: 7, CompletionValue: 1}).Put(b[frame.HeaderSize:])
	add(b)
	if r := a.Report(); r.Capture.Malformed != 1 {
		t.Errorf("%+v", r.Capture)
	}
}

package rdmap

import (
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

type seen struct{ c *Completion }

func (s *seen) Complete(c *Completion) { d := *c; s.c = &d }

// COMMIT-026: the answer to a Verify has the hash that was asked for, or ends the stream.
func TestAnswerHasTheHash(t *testing.T) {
	got := new(seen)
	s := New(Config{Initiator: true, ORD: 1, IRD: 1, Sends: 4, Receives: 1, Extensions: Commit, Sent: got, Received: got})
	want := make([]byte, 32)
	want[0] = 1
	if err := s.Post(&Work{Op: OpVerify, Length: 10, Hash: want}); err != nil {
		t.Fatal(err)
	}
	var m ddp.Message
	if !s.Next(&m) {
		t.Fatal("nothing to send")
	}
	s.Sent(1)
	h := VerifyResponse.head()
	h.MSN, h.Last = 1, true
	span, err := s.Place(&h, 32)
	if err != nil {
		t.Fatal(err)
	}
	for i := range span.Bytes {
		span.Bytes[i] = 0xee
	}
	if err := s.Deliver(&h, 32); err == nil && got.c != nil && got.c.Err == nil {
		t.Errorf("asked to verify %x..., answered %x..., and it is done without an error", want[:4], got.c.Hash[:4])
	}
}

package main

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestAnswerThatIsNoStatus: a message without immediate data does not say that something was done.
func TestAnswerThatIsNoStatus(t *testing.T) {
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	l, err := host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		r, err := l.Accept(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		private := binary.BigEndian.AppendUint32(verbs.Key{STag: 1, Length: reach * slotSize}.Bytes(), 1)
		qp, err := r.Accept(t.Context(), &verbs.Options{Private: private, Extensions: verbs.Immediates, Posted: []verbs.Receive{{Data: make([]byte, 100)}}})
		if err == nil {
			_, err = qp.Received().Wait(t.Context(), make([]verbs.Completion, 1))
		}
		if err == nil {
			err = qp.Send(t.Context(), nil)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	c, err := Dial(t.Context(), "tcp:"+l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Put(t.Context(), "k", []byte("v")); err == nil || !strings.Contains(err.Error(), "a message of 0 bytes in place of a status") {
		t.Errorf("%v", err)
	}
}

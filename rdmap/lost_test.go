package rdmap_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestLostNamesTheRequest checks that of several requests which the carrier has, the one is named whose memory is gone, and that the
// Terminate has no header (F1, RDMAP-029).
func TestLostNamesTheRequest(t *testing.T) {
	for behind, want := range []string{"the data of Write 7: gone", "the data of Send 6: gone", "the data of Write 5: gone"} {
		s := rdmap.New(rdmap.Config{Initiator: true, Sends: 4})
		for i, op := range []rdmap.Op{rdmap.OpWrite, rdmap.OpSend, rdmap.OpWrite} {
			if err := s.Post(&rdmap.Work{ID: uint64(5 + i), Op: op, Data: make([]byte, 10)}); err != nil {
				t.Fatal(err)
			}
			if !s.Next(new(ddp.Message)) {
				t.Fatal("nothing to send")
			}
		}
		s.Lost(&ddp.LostError{Behind: behind}, errors.New("gone"))
		if err := s.Err(); !errors.Is(err, ddp.Catastrophic) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		var m ddp.Message
		if !s.Next(&m) || m.QN != 2 || m.Length != 4 || [4]byte(m.Inline[:4]) != [4]byte{} {
			t.Errorf("%+v is no Terminate 0/0/00 without headers", m)
		}
	}
}

package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestForgedStampDoesNotAgeAcks: one forged acknowledgement under an id far ahead does not have
// the acknowledgements that ride on a peer's data taken for late ones, for good (attack A12,
// SECURITY.md).
func TestForgedStampDoesNotAgeAcks(t *testing.T) {
	for _, forged := range []ack.Wide{0, 20000, 500000} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			id, txn := ack.Wide(2), uint32(life)
			sent := 0
			both := func(back bool) {
				done := false
				tx := &Transaction{Completion: Word(0, 1), Done: func(_ *Transaction, err error) { done = err == nil }}
				if err := c.Post(tx); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					for _, f := range s.recv(100 * time.Microsecond) {
						if _, hello := helloOf(&f); hello || !f.HasMessages() {
							continue
						}
						sent++
						if !back { // it only acknowledges, under the id that its next data will have
							c.mu.Lock()
							start := c.tx.sender.Wide(f.Seq)
							c.mu.Unlock()
							s.alone(stamp(s.theirs, id-1, start), 1)
							continue
						}
						b := s.encode(id.Seq(), data(txn, 1, 1, 64, []byte("12345678")))
						h := frame.Header{Dst: s.dst, Src: s.id, Seq: id.Seq(), Flags: frame.FlagMessages, AckStart: f.Seq, AckCount: 1}
						h.Put(b)
						s.raw(b)
						id, txn = id+1, txn+1
					}
				}
				s.recv(100 * time.Microsecond)
				if !done {
					t.Fatalf("forged %d ahead: what was posted when %d frames had gone is not acknowledged; refused %v", forged, sent, c.Stats().Refused)
				}
			}
			s.alone(stamp(s.theirs, id-1, 0), 0) // it believes us
			for range 2500 {
				both(false)
			}
			if forged > 0 {
				s.alone(stamp(s.theirs, id+forged, 0), 0)
			}
			for range 20000 {
				both(true)
			}
		})
	}
}

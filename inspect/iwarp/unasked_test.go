package iwarp_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// read asks for n bytes, which are to come to an STag of the same number as the message.
func read(msn, n uint32) []byte {
	b := make([]byte, 28)
	binary.BigEndian.PutUint32(b, msn)
	binary.BigEndian.PutUint32(b[12:], n)
	return fpdu(ddp.Header{Last: true, Control: 0x41, QN: 1, MSN: msn}, b)
}

func readResponse(stag uint32, n int) []byte {
	return fpdu(ddp.Header{Tagged: true, Last: true, Control: 0x42, STag: stag}, make([]byte, n))
}

// answersOf tells of each answer the MSN of what it answers, 0 if that is not known, and what is wrong; and how many requests have no answer
// in the end.
func answersOf(t *testing.T, records []capture.Record) (all []string) {
	eventsOf(t, iwarp.Options{}, records, func(e *iwarp.Event) {
		switch {
		case e.Kind == iwarp.Frame && e.Header.Tagged && e.Opcode.String() == "Read Response":
			msn := uint32(0)
			if e.Answers != nil {
				msn = e.Answers.MSN
			}
			all = append(all, fmt.Sprint(msn, e.Odd))
		case e.WantMSN != 0:
			all = append(all, fmt.Sprint("want ", e.WantMSN))
		case e.Kind == iwarp.Gone:
			for w := range tcp.Way(2) {
				if left, _ := e.Conn.Waiting(w); len(left) > 0 {
					all = append(all, fmt.Sprint(len(left), " left"))
				}
			}
		}
	})
	return all
}

// TestBehindAHole: of an answer to a request that is not in the capture nothing is said, and each other one goes with its own request.
func TestBehindAHole(t *testing.T) {
	whole := said(request(0x40), reply(0x40), read(1, 10), nil, read(2, 20), nil, read(3, 30), readResponse(1, 10), nil, readResponse(2, 20), nil, readResponse(3, 30),
		read(4, 40), readResponse(4, 40), read(5, 50))
	cut := func(records []capture.Record, n, length int) []capture.Record {
		records = slices.Clone(records)
		records[n-1].Data = records[n-1].Data[:40+length]
		return records
	}
	for _, c := range []struct {
		name    string
		records []capture.Record
		want    []string
	}{
		{"whole", whole, []string{"1", "2", "3", "4", "1 left"}},
		{"without the second request", without(whole, 7), []string{"1", "0", "3", "4", "1 left"}},
		{"without the second and third", without(whole, 7, 9), []string{"1", "0", "0", "4", "1 left"}},
		{"the second cut behind its length", cut(whole, 7, 2), []string{"1", "0", "3", "4", "1 left"}},
		{"the second cut behind its header", cut(whole, 7, 20), []string{"1", "2", "3", "4", "1 left"}},
		{"without the first answer", without(whole, 10), []string{"0", "0", "4", "1 left"}},
		{"without the set-up", whole[4:], []string{"0", "0", "0", "4", "1 left"}},
		{"without all before the third", whole[8:], []string{"0", "0", "0", "4", "1 left"}},
	} {
		if got := answersOf(t, c.records); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

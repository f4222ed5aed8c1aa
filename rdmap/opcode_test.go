package rdmap_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestEveryControlOctet (RDMAP-020 to 022, 093, 096, RDMAPX-003, 005, 007, 045, COMMIT-002, 004, 006, 007, 046): each control octet, tagged and not,
// on each queue, means with each set of extensions what the specifications say: it is that opcode, or it is refused with the fault
// that belongs to it. The fifth bit of the opcode counts where Commit is agreed on; elsewhere it is reserved, and not looked at.
func TestEveryControlOctet(t *testing.T) {
	type meaning struct {
		tagged bool
		queue  uint32
		needs  rdmap.Extensions
		then   error // of such a message, the second of its queue, where the first is due
	}
	const a, i, c = rdmap.Atomics, rdmap.Immediates, rdmap.Commit
	means := map[byte]meaning{
		0x00: {true, 0, 0, nil}, 0x01: {false, 1, 0, ddp.UntaggedMSN}, 0x02: {true, 0, 0, ddp.TaggedSTag},
		0x03: {false, 0, 0, ddp.UntaggedMSN}, 0x04: {false, 0, 0, ddp.UntaggedMSN}, 0x05: {false, 0, 0, ddp.UntaggedMSN}, 0x06: {false, 0, 0, ddp.UntaggedMSN},
		0x07: {false, 2, 0, nil}, 0x08: {false, 0, i, ddp.UntaggedMSN}, 0x09: {false, 0, i, ddp.UntaggedMSN},
		0x0a: {false, 1, a, ddp.UntaggedMSN}, 0x0b: {false, 3, a, ddp.UntaggedMSN},
		0x0c: {false, 1, c, ddp.UntaggedMSN}, 0x0d: {false, 3, c, ddp.UntaggedMSN}, 0x0e: {false, 1, c, ddp.UntaggedMSN}, 0x0f: {false, 3, c, ddp.UntaggedMSN},
		0x10: {false, 1, c, ddp.UntaggedMSN}, 0x11: {false, 3, c, ddp.UntaggedMSN},
	}
	for e := range everything + 1 {
		for control := range 256 {
			opcode := byte(control) & 0x0f
			if e&rdmap.Commit != 0 {
				opcode = byte(control) & 0x1f
			}
			m, known := means[opcode]
			for _, h := range []ddp.Header{{Tagged: true}, {QN: 0}, {QN: 1}, {QN: 2}, {QN: 3}, {QN: 4}, {QN: 1 << 31}} {
				h.Control, h.Last = byte(control), true
				if h.Tagged {
					h.STag = 7 << 8
				} else {
					h.MSN = 2
				}
				want := m.then
				switch {
				case control>>6 != 1:
					want = ddp.OperationVersion
				case !known, m.needs&^e != 0, m.tagged != h.Tagged:
					want = ddp.OperationOpcode
				case !m.tagged && m.queue != h.QN:
					want = ddp.UntaggedQN
				}
				s := rdmap.New(rdmap.Config{Initiator: true, IRD: 4, ORD: 4, Extensions: e, Memory: memory{}, Sends: 1, Receives: 1})
				if err := s.Post(&rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 8)}); err != nil || !s.Next(new(ddp.Message)) {
					t.Fatal(err)
				}
				if _, err := s.Place(&h, 0); err != want {
					t.Fatalf("%#02x in %+v with %v: %v, want %v", control, h, e, err, want)
				}
			}
		}
	}
}

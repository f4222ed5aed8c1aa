package ddp_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Faults are those that siw answers with, which the captures have.
func TestInbound(t *testing.T) {
	const gib = 1 << 30
	type step struct {
		h     ddp.Header
		n     int
		fault error
		done  uint32 // length of the message that the segment completes, +1
	}
	write := func(stag uint32, to uint64, last bool) ddp.Header {
		return ddp.Header{Tagged: true, Last: last, Control: 0x40, STag: stag, TO: to}
	}
	send := func(msn, mo uint32, last bool) ddp.Header {
		return ddp.Header{Last: last, Control: 0x43, MSN: msn, MO: mo}
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"DDP-001: empty messages", []step{{h: write(1, 0, true), done: 1}, {h: send(1, 0, true), done: 1}}},
		{"DDP-002: a tagged message of three", []step{
			{h: write(1, 100, false), n: 10}, {h: write(1, 110, false), n: 10}, {h: write(1, 120, true), n: 3, done: 24},
			{h: write(2, 0, true), n: 5, done: 6}}},
		{"DDP-002: over the end of the offsets", []step{{h: write(1, 1<<64-4, false), n: 4}, {h: write(1, 0, true), n: 4, done: 9}}},
		{"DDP-002: a gap", []step{{h: write(1, 100, false), n: 10}, {h: write(1, 111, true), n: 3, fault: ddp.TaggedBounds}}},
		{"DDP-002: another STag", []step{{h: write(1, 100, false), n: 10}, {h: write(2, 110, true), n: 3, fault: ddp.TaggedSTag}}},
		{"DDP-003: an untagged message of two", []step{{h: send(1, 0, false), n: 7}, {h: send(1, 7, true), n: 7, done: 15}}},
		{"DDP-003: a first segment in the middle", []step{{h: send(1, 7, true), n: 7, fault: ddp.UntaggedMO}}},
		{"DDP-003: a gap", []step{{h: send(1, 0, false), n: 7}, {h: send(1, 8, true), n: 7, fault: ddp.UntaggedMO}}},
		{"DDP-003: another message", []step{{h: send(1, 0, false), n: 7}, {h: send(2, 7, true), n: 7, fault: ddp.UntaggedMSN}}},
		{"DDP-003: another queue", []step{{h: send(1, 0, false), n: 7}, {h: ddp.Header{QN: 1, Control: 0x43, MSN: 1, MO: 7}, fault: ddp.UntaggedQN}}},
		{"DDP-005: another operation of the kind", []step{{h: write(1, 0, false), n: 7},
			{h: ddp.Header{Tagged: true, Control: 0x42, STag: 1, TO: 7}, fault: ddp.OperationOpcode}}},
		{"DDP-005: a Send that becomes another", []step{{h: send(1, 0, false), n: 7},
			{h: ddp.Header{Control: 0x43, Invalidate: 9, MSN: 1, MO: 7}, fault: ddp.OperationOpcode}}},
		{"an abort inside a Send", []step{{h: send(1, 0, false), n: 7}, {h: ddp.Header{Last: true, Control: 0x47, QN: ddp.AbortQueue, MSN: 1}, n: 4, done: 5}}},
		{"an abort in two segments", []step{{h: send(1, 0, false), n: 7}, {h: ddp.Header{Control: 0x47, QN: ddp.AbortQueue, MSN: 1}, n: 4},
			{h: ddp.Header{Last: true, Control: 0x47, QN: ddp.AbortQueue, MSN: 1, MO: 4}, n: 48, done: 53}}},
		{"an abort inside an abort", []step{{h: ddp.Header{Control: 0x47, QN: ddp.AbortQueue, MSN: 1}, n: 4},
			{h: ddp.Header{Last: true, Control: 0x47, QN: ddp.AbortQueue, MSN: 1}, n: 4, fault: ddp.UntaggedMO}}},
		{"an abort that begins in the middle", []step{{h: send(1, 0, false), n: 7},
			{h: ddp.Header{Last: true, Control: 0x43, QN: ddp.AbortQueue, MSN: 1, MO: 7}, fault: ddp.UntaggedQN}}},
		{"the rest of a Send behind an abort", []step{{h: send(1, 0, false), n: 7}, {h: ddp.Header{Last: true, Control: 0x47, QN: ddp.AbortQueue, MSN: 1}, n: 4, done: 5},
			{h: send(1, 7, true), n: 7, fault: ddp.UntaggedMO}}},
		{"DDP-005: a Write inside a Send", []step{{h: send(1, 0, false), n: 7}, {h: write(5, 9, true), n: 1, done: 2}, {h: send(1, 7, true), n: 7, done: 15}}},
		{"RDMAP-001: 2^32-1 bytes, and one more", []step{
			{h: write(1, 0, false), n: gib}, {h: write(1, gib, false), n: gib}, {h: write(1, 2*gib, false), n: gib}, {h: write(1, 3*gib, false), n: gib - 1},
			{h: write(1, 1<<32-1, true), n: 1, fault: ddp.TaggedBounds},
			{h: write(1, 1<<32-1, true), n: 0, done: 0}}},
		{"RDMAP-001: untagged", []step{
			{h: send(1, 0, false), n: gib}, {h: send(1, gib, false), n: gib}, {h: send(1, 2*gib, false), n: gib}, {h: send(1, 3*gib, false), n: gib - 1},
			{h: send(1, 1<<32-1, true), n: 1, fault: ddp.UntaggedTooLong}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in ddp.Inbound
			began := map[bool]uint64{} // where the message of a kind began, if one did
			for i, s := range c.steps {
				if err := in.Follows(&s.h, s.n); err != s.fault {
					t.Fatalf("segment %d: %v, want %v", i, err, s.fault)
				}
				if s.fault != nil {
					continue
				}
				first, total := in.Placed(&s.h, s.n)
				if (first != nil) != s.h.Last || s.h.Last && total+1 != s.done {
					t.Fatalf("segment %d: message %v of %d bytes, want %d", i, first, total, int(s.done)-1)
				}
				at, going := began[s.h.Tagged]
				if !going {
					at = s.h.TO
					began[s.h.Tagged] = at
				}
				if first == nil {
					continue
				}
				if first.Tagged != s.h.Tagged || first.TO != at || first.MO != 0 {
					t.Fatalf("segment %d: the message begins with %+v, want it at %d", i, first, at)
				}
				delete(began, s.h.Tagged)
			}
		})
	}
}

package rpcrdma_test

import (
	"strings"
	"testing"
	"time"

	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// TestNoCredits checks that Replies and ERRORs that grant 0 credits are found (RPC1-013).
func TestNoCredits(t *testing.T) {
	s := newScript(t)
	s.connect(private, private)
	for xid, grant := range []uint32{64, 0, 0} {
		s.send(client, v1(client, uint32(xid)), null(uint32(xid)))
		s.send(server, reply1(server, uint32(xid), grant), replyOf(uint32(xid)))
	}
	if got := strings.Join(s.found(), "; "); got != "no credits 2 at 6/0 of 1: Reply with XID 0x1" {
		t.Error(got)
	}
}

// TestAllCredits checks how long a client had no credit left: from the Call that takes the last one to the next Reply. Each message of the script is a millisecond after the one before.
func TestAllCredits(t *testing.T) {
	s := newScript(t)
	s.connect(private, private)
	call := func(xid uint32) { s.send(client, v1(client, xid), null(xid)) }
	answer := func(xid uint32) { s.send(server, reply1(server, xid, 2), replyOf(xid)) }
	call(1) // the only one before the first grant: that is not known to be all
	answer(1)
	call(2)
	call(3) // now none is left
	first := s.record
	answer(2)
	call(4) // again
	s.record += 10
	answer(4)
	answer(3)
	side := &s.seen.Sides[client]
	if side.Full != 12*time.Millisecond || side.FullRecord != first {
		t.Errorf("%v from record %d on, want 12ms from %d on", side.Full, side.FullRecord, first)
	}
}

// TestTimesOfCalls checks how long RDMA Reads of a Call waited for their answers, and how long RDMA Writes took.
func TestTimesOfCalls(t *testing.T) {
	s := newScript(t)
	s.connect(private, private)
	args := callOf(1, nfs, 3, 7, writeArgs(200, 0))
	h := v1(client, 1)
	h.Reads = []codec.ReadChunk{{Position: uint32(len(args)), Segments: codec.Chunk{{Handle: 5, Length: 200, Offset: 0x1000}}}}
	s.send(client, h, args)
	s.fetch(server, codec.Segment{Handle: 5, Offset: 0x1000}, make([]byte, 100)) // request and answer are 1 ms apart
	s.fetch(server, codec.Segment{Handle: 5, Offset: 0x1000 + 100}, make([]byte, 100))
	s.send(server, reply1(server, 1, 64), replyOf(1, numbers(0, 0, 0, 200, 2, 0, 0)))
	if c := s.last.Call; c.Reading != 2*time.Millisecond || c.Writing != 0 {
		t.Errorf("WRITE: Reads waited %v, Writes took %v", c.Reading, c.Writing)
	}
	place := codec.Segment{Handle: 6, Length: 3000, Offset: 0x1000}
	s.readCall(2, 3000, codec.Chunk{place})
	s.write(server, place, make([]byte, 3000)) // three frames
	s.readReply(2, 3000, 0, codec.Chunk{place})
	if c := s.last.Call; c.Reading != 0 || c.Writing != 2*time.Millisecond {
		t.Errorf("READ: Reads waited %v, Writes took %v", c.Reading, c.Writing)
	}
}

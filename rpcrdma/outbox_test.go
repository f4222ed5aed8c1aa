package rpcrdma

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// TestOutboxIsBounded checks that a peer that earns ERRORs and does not take them is left.
func TestOutboxIsBounded(t *testing.T) {
	s := reversed(t, Version1, 0, 2)
	s.room = 0
	for minute := 0; s.closed == nil && minute < 100; minute++ {
		for range maxMalformed {
			if s.closed == nil {
				s.raw([]byte{0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0})
			}
		}
		s.now = s.now.Add(malformedTime)
	}
	if n, most := s.m.out.len(), 2*s.m.cfg.Window+16; !errors.Is(s.closed, ErrProtocol) || n != most {
		t.Errorf("%d messages wait, want %d, %v", n, most, s.closed)
	}
}

// TestRepliesAndCallsTakeTurns checks that neither Calls nor answers wait for all of the others.
func TestRepliesAndCallsTakeTurns(t *testing.T) {
	s := reversed(t, Version1, 0, 8)
	s.call(&Call{Head: rpcCall(30, 40)}) // for the grant
	s.receive(s.reply(30), rpcReply(30, 28))
	for i := range 3 {
		s.receive(Header{XID: uint32(50 + i), Type: TypeMsg}, rpcCall(uint32(50+i), 40))
	}
	s.room, s.sent = 0, nil
	deliver := s.incoming[len(s.incoming)-3:]
	for i, in := range deliver {
		s.m.Place(s.now, in, nil)
		s.run()
		s.m.Reply(s.now, in, Answer{Head: rpcReply(in.XID, 28)})
		s.call(&Call{Head: rpcCall(uint32(60+i), 40)})
	}
	s.room = 64
	s.run()
	var order []uint32
	for _, b := range s.sent {
		p, _ := Peek(b)
		order = append(order, p.XID/10)
	}
	if !slices.Equal(order, []uint32{5, 6, 5, 6, 5, 6}) {
		t.Errorf("the order is %v", order)
	}
}

// TestPartsTakeTurns checks that the parts of a Call go between those of a long Reply, in either order of their beginnings: the peer waits for either for
// a bounded time (RPC2-008).
func TestPartsTakeTurns(t *testing.T) {
	for _, first := range []string{"the Call", "the Reply"} {
		s := reversed(t, Version2, ReverseContinued, 2)
		s.credit = Credit2(60, 60)
		s.receive(Header{XID: 50, Type: TypeMsg}, rpcCall(50, 40))
		s.room, s.sent = 0, nil
		in := s.incoming[len(s.incoming)-1]
		reply := func() { s.m.Reply(s.now, in, Answer{Head: rpcReply(50, 20000)}) }
		call := func() { s.call(&Call{Head: rpcCall(60, 20000)}) }
		begin := func() { // the first part
			var a Action
			for s.m.Next(64, &a) && a.Kind != ActPost {
			}
			s.sent = append(s.sent, bytes.Clone(a.Data))
			s.m.Completed(s.now, a.Serial)
		}
		if first == "the Call" {
			call()
			begin()
			reply()
		} else {
			reply()
			begin()
			call()
		}
		s.room = 64
		s.run()
		var order []uint32
		for _, b := range s.sent {
			p, _ := Peek(b)
			order = append(order, p.XID/10)
		}
		longest, run := 0, 0
		for i, x := range order {
			if run++; i == 0 || order[i-1] != x {
				run = 1
			}
			longest = max(longest, run)
		}
		calls := slices.DeleteFunc(slices.Clone(order), func(x uint32) bool { return x != 6 })
		if longest > 2 || len(calls) < 4 || len(order)-len(calls) < 4 {
			t.Errorf("%s begins: the order is %v", first, order)
		}
	}
}

// TestErrorsWaitForMemory checks that an ERROR for which the pool has no buffer is sent once, when there is one.
func TestErrorsWaitForMemory(t *testing.T) {
	s := reversed(t, Version1, 0, 2)
	s.room = 0
	s.raw([]byte{0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0}) // version 7
	s.room, s.pool.none = 64, 1
	if s.run(); len(s.sent) != 0 {
		t.Fatalf("%d messages were sent without memory", len(s.sent))
	}
	s.run()
	s.run()
	if h, _ := s.message(); len(s.sent) != 1 || h.Type != TypeError || h.Report.Code != CodeVers || h.XID != 9 {
		t.Errorf("%d messages, the last is %+v", len(s.sent), h)
	}
}

// TestRefreshGrants checks that a side which has nothing to say grants the credits of half a window of messages by one NOMSG without lists and XID, which counts as one message
// if there is a credit (RPC2-016, RPC2-017).
func TestRefreshGrants(t *testing.T) {
	s := reversed(t, Version2, ReverseGeneral, 2)
	for i := range uint32(8) {
		if len(s.sent) > 0 {
			break
		}
		s.receive(Header{XID: 50 + i, Type: TypeMsg}, rpcCall(50+i, 40))
	}
	if h, payload := s.message(); len(s.sent) != 1 || !h.IsRefresh() || h.Type != TypeNoMsg || h.XID != 0 || h.Granted() < 4 || len(payload) != 0 {
		t.Errorf("%d messages, the last is %+v", len(s.sent), h)
	}
}

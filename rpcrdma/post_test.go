package rpcrdma

import (
	"errors"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestEndOfParts checks that a Call that is cancelled after some parts can not be carried out: what was sent is a beginning of the message, or
// the last part is one that the peer refuses, as soon as the place of an item that was left out is passed (RPC2-008, RPC2-064).
func TestEndOfParts(t *testing.T) {
	for at, bad := range map[int]bool{100: true, 4000: true, 4096: false, 8996: false} {
		s := open(t, Version2)
		c := &Call{Head: rpcCall(7, 9000), Items: []xdr.Item{{At: at, Data: pattern(9000, 1)}}, MaxReply: 100}
		if err := s.m.Call(s.now, c); err != nil {
			t.Fatal(err)
		}
		s.steps(1)
		sent := c.out.sent
		s.m.Cancel(s.now, c)
		s.run()
		var h Header
		payload, err := NewDecoder(DefaultLimits()).Decode(s.sent[len(s.sent)-1], &h)
		if (err != nil) != bad || h.XID != 7 || h.Flags != 0 || len(payload) != 0 {
			t.Errorf("item at %d, %d octets sent: the last part is %+v, %v", at, sent, h, err)
		}
		if bad { // the peer's answer
			s.receive(Header{XID: 7, Version: 2, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeBadXDR}}, nil)
		} else {
			s.receive(s.reply(7), rpcReply(7, 24))
		}
		if len(s.m.req.out) != 0 || s.closed != nil || len(s.returned) != 1 {
			t.Errorf("item at %d: %d Calls are out, %v", at, len(s.m.req.out), s.closed)
		}
		s.clean(0)
	}
}

// TestErrorDuringParts checks that an ERROR that comes before all parts are sent returns the Call, and that the peer gets the last
// part: it drops all of the XID until then (RPC2-056, RPC2-083, RPC2-084).
func TestErrorDuringParts(t *testing.T) {
	s := open(t, Version2)
	c := write(7, 30000, 108, pattern(8, 1), pattern(8, 2)) // in a buffer
	s.m.req.limits.reads = 0
	if err := s.m.Call(s.now, c); err != nil {
		t.Fatal(err)
	}
	s.steps(3)
	s.receive(Header{XID: 7, Version: 2, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeInvalCont}}, nil)
	var e *PeerError
	if s.done(); !errors.As(c.Err, &e) || e.Report.Code != CodeInvalCont || !c.Sent {
		t.Fatalf("returned %v", c.Err)
	}
	if h, payload := s.message(); h.XID != 7 || h.Flags != 0 || len(payload) != 0 || len(s.sent) != 1+3 || len(s.m.req.free) != 1 {
		t.Errorf("after %d messages the last part is %+v", len(s.sent), h)
	}
	s.call(&Call{Head: rpcCall(7, 40)}) // its XID is free
	s.receive(s.reply(7), rpcReply(7, 28))
	if s.done().Err != nil {
		t.Error("the next Call fails")
	}
	s.clean(1)
}

// TestErrorBeforeTheLastPart checks that a Call whose last part waits for a buffer, and whose memory is registered for that, has all of it
// withdrawn when an ERROR returns it (RPC2-095).
func TestErrorBeforeTheLastPart(t *testing.T) {
	s := open(t, Version2)
	c := &Call{Head: rpcCall(7, 5000), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100}
	if err := s.m.Call(s.now, c); err != nil {
		t.Fatal(err)
	}
	s.steps(1)
	s.pool.none = 1
	s.run()
	if len(s.memory.lent) != 1 {
		t.Fatalf("%d pieces of memory are lent before the last part", len(s.memory.lent))
	}
	s.room = 0 // the part that ends the message has to wait
	s.receive(Header{XID: 7, Version: 2, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeSystem}}, nil)
	if s.done(); len(s.memory.lent) != 0 || c.Err == nil {
		t.Errorf("%d pieces of memory are lent, %v", len(s.memory.lent), c.Err)
	}
	s.room = 64
	s.run()
	s.clean(0)
}

// TestLostBeforeTheLastPart checks that a Call in parts that was answered by an ERROR holds nothing after the end of its connection, if the part that ends its
// message could not go.
func TestLostBeforeTheLastPart(t *testing.T) {
	s := open(t, Version2)
	s.m.req.limits.reads = 0
	c := write(7, 9000, 108, pattern(500, 1), pattern(9000, 2))
	c.MaxReply = 100
	if err := s.m.Call(s.now, c); err != nil {
		t.Fatal(err)
	}
	s.steps(1)
	s.room = 0
	s.receive(Header{XID: 7, Version: 2, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeSystem}}, nil)
	if s.done(); len(s.pool.out) == 0 {
		t.Fatal("the message has ended")
	}
	s.m.Lost(nil)
	s.run()
	s.clean(0)
}

// TestNoBuffer checks that the machine waits for the pool, at whatever point it is asked, and goes on when it is told anything.
func TestNoBuffer(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for none := 1; none < 12; none++ {
			s := open(t, version)
			s.credit = Credit2(8, 8)
			c := write(7, 9000, 108, pattern(500, 1), pattern(9000, 2))
			c.MaxReply = 50000
			s.pool.none = none
			s.call(c)
			for range none {
				s.m.Tick(s.now)
				s.run()
			}
			if version == Version2 {
				s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
			}
			s.receive(s.reply(7), rpcReply(7, 28))
			if s.done(); c.Err != nil {
				t.Errorf("%d times without a buffer: %v", none, c.Err)
			}
			s.clean(1)
		}
	})
}

// TestSignaled checks which works are signaled: so many that slots come back, and the last one for which there is room.
func TestSignaled(t *testing.T) {
	c := usual()
	c.Sends = 16
	s := begin(t, c)
	h := s.reply(1)
	s.call(&Call{Head: rpcCall(1, 40)})
	s.receive(h, rpcReply(1, 28))
	s.posts = nil
	for i := range 8 {
		s.room = 8 - i
		s.call(&Call{Head: rpcCall(uint32(10+i), 40)})
	}
	for i, a := range s.posts {
		if want := i == 2 || i == 6 || i == 7; a.Signaled != want { // the first Call was one of four
			t.Errorf("work %d is signaled: %v", i, a.Signaled)
		}
	}
}

// TestNoRoom checks that nothing is posted for which there is no room.
func TestNoRoom(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		n := len(s.sent)
		s.room = 0
		s.call(&Call{Head: rpcCall(7, 40)})
		if len(s.sent) != n {
			t.Error("a work is posted")
		}
		s.room = 1
		if s.run(); len(s.sent) != n+1 {
			t.Errorf("%d works are posted", len(s.sent)-n)
		}
	})
}

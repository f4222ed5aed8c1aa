package rpcrdma

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// cancelStates bring a Call, of XID 7, into each of its states.
var cancelStates = []struct {
	name     string
	state    state
	versions []uint32
	bring    func(s *script, direct bool) *Call
}{
	{"queued", callQueued, []uint32{Version1, Version2}, func(s *script, direct bool) *Call {
		s.room = 0
		return s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100, Direct: direct})
	}},
	{"sending", callSending, []uint32{Version2}, func(s *script, direct bool) *Call {
		c := &Call{Head: rpcCall(7, 20000), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100, Direct: direct}
		if err := s.m.Call(s.now, c); err != nil {
			s.t.Fatal(err)
		}
		s.steps(2)
		return c
	}},
	{"sent, nothing lent", callSent, []uint32{Version1, Version2}, func(s *script, direct bool) *Call {
		return s.call(&Call{Head: rpcCall(7, 40), MaxReply: 100, Direct: direct})
	}},
	{"sent", callSent, []uint32{Version1, Version2}, func(s *script, direct bool) *Call {
		c := write(7, 108, 108, pattern(9000, 1))
		c.Into, c.MaxReply, c.Direct = [][]byte{make([]byte, 9000)}, 100, direct
		return s.call(c)
	}},
	{"collecting", callCollecting, []uint32{Version2}, func(s *script, direct bool) *Call {
		c := s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, 9000)}, MaxReply: 10000, Direct: direct})
		s.part(7, rpcReply(7, 100), true)
		return c
	}},
}

// steps carries out so many works and no more.
func (s *script) steps(n int) {
	for range n {
		var a Action
		if !s.m.Next(s.room, &a) || a.Kind != ActPost {
			s.t.Fatal("no work is posted")
		}
		s.sent = append(s.sent, append([]byte(nil), a.Data...))
		s.m.Completed(s.now, a.Serial)
	}
}

// TestCancel cancels Calls in each state, and has each event follow. A Call returns once, and no memory that the program uses again is
// lent then; nothing that was sent is forgotten before its Reply or ERROR; the next Call goes (RPC2-008, RPC2-095, RPC2-113,
// RPC1-053).
func TestCancel(t *testing.T) {
	events := []string{"reply", "parts", "error", "invalidate", "lost", "give up", "cancel again"}
	for _, x := range cancelStates {
		for _, version := range x.versions {
			for _, direct := range []bool{false, true} {
				for _, event := range events {
					t.Run(fmt.Sprintf("%s, version %d, direct %v, %s", x.name, version, direct, event), func(t *testing.T) {
						s := open(t, version)
						s.credit = Credit2(8, 8)
						if version == Version2 {
							s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
						} else {
							s.call(&Call{Head: rpcCall(1, 40)})
							s.receive(s.reply(1), rpcReply(1, 28))
							s.pool.Put(s.done().Reply)
						}
						c := x.bring(s, direct)
						if c.out.state != x.state {
							t.Fatalf("the Call is %d, want %d", c.out.state, x.state)
						}
						lent := len(s.memory.lent) // of the Call
						s.m.Cancel(s.now, c)
						s.room = 64
						s.run()
						testCancelled(t, s, c, x.state, direct, lent)
						testAfterCancel(t, s, c, event)
					})
				}
			}
		}
	}
}

// testCancelled checks what is true right after a Cancel.
func testCancelled(t *testing.T, s *script, c *Call, was state, direct bool, lent int) {
	t.Helper()
	waits := direct && lent > 0
	if len(s.returned) != 1 && !waits || len(s.returned) != 0 && waits {
		t.Fatalf("%d Calls have returned", len(s.returned))
	}
	if !waits && (!errors.Is(c.Err, ErrCancelled) || c.Sent != (was != callQueued) || c.Kept != (lent > 0)) {
		t.Errorf("returned %+v", c)
	}
	if len(s.memory.lent) != lent {
		t.Errorf("%d pieces of memory are lent, want %d", len(s.memory.lent), lent)
	}
	if out := len(s.m.req.out); was == callQueued && out != 0 || was != callQueued && out != 1 {
		t.Errorf("%d Calls are out", out)
	}
	if was == callQueued {
		return
	}
	if err := s.m.Call(s.now, &Call{Head: rpcCall(7, 40)}); !errors.Is(err, ErrXID) {
		t.Errorf("the XID is free: %v", err)
	}
}

// testAfterCancel has an event follow a Cancel.
func testAfterCancel(t *testing.T, s *script, c *Call, event string) {
	t.Helper()
	waits := len(s.returned) == 0
	out := len(s.m.req.out) > 0
	back := s.reply(7)
	if out {
		for i := range s.m.req.out[0].writes {
			o := s.m.req.out[0]
			if o.lent {
				s := o.leases[o.reads+i].Segment
				back.Writes = append(back.Writes, Chunk{s})
			}
		}
	}
	switch event {
	case "reply", "cancel again":
		if event == "cancel again" {
			s.m.Cancel(s.now, c)
			s.run()
		}
		s.receive(back, rpcReply(7, 28))
	case "parts":
		if s.version == Version1 {
			return
		}
		s.part(7, rpcReply(7, 28), true)
		s.receive(back, nil)
	case "error":
		e := s.reply(7)
		e.Type, e.Report.Code = TypeError, CodeChunk
		s.receive(e, nil)
	case "invalidate":
		if !out || len(s.memory.lent) == 0 {
			return
		}
		s.receive(back, rpcReply(7, 28), s.m.req.out[0].leases[0].Handle)
	case "give up":
		for next := s.m.Tick(s.now); !next.IsZero() && s.closed == nil; next = s.m.Tick(s.now) {
			s.now = next
			s.m.Tick(s.now)
			s.run()
		}
		if out != (s.closed != nil) || out && s.now.Sub(s.m.since) > 2*s.m.cfg.GiveUp {
			t.Errorf("the connection has ended with %v", s.closed)
		}
	}
	if event == "lost" || event == "give up" {
		s.m.Lost(s.closed)
		s.run()
	} else {
		s.call(&Call{Head: rpcCall(8, 40)})
		if h, _ := s.message(); h.XID != 8 || s.closed != nil {
			t.Errorf("the next Call does not go: %+v, %v", h, s.closed)
		}
		s.receive(s.reply(8), rpcReply(8, 28))
	}
	if event != "lost" && event != "give up" && s.m.req.waiting != 0 {
		t.Errorf("%d Replies are waited for", s.m.req.waiting)
	}
	times := 0
	for _, r := range s.returned {
		if r == c {
			times++
		}
	}
	if times != 1 {
		t.Errorf("the Call has returned %d times", times)
	}
	if event == "error" && waits {
		var e *PeerError
		if !errors.As(c.Err, &e) {
			t.Errorf("the Call has returned %v", c.Err)
		}
	}
	s.clean(replyBuffers(s))
}

// replyBuffers counts the Replies that the program has.
func replyBuffers(s *script) (n int) {
	for _, c := range s.returned {
		if c.Reply != nil {
			n++
		}
	}
	return n
}

// TestCallAndReply checks that an inline Call goes in one Send, and its Reply returns it (RPC2-001, RPC2-044, RPC1-002).
func TestCallAndReply(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		c := s.call(&Call{Head: rpcCall(7, 40)})
		h, payload := s.message()
		if h.XID != 7 || h.Type != TypeMsg || !h.noLists() || !bytes.Equal(payload, rpcCall(7, 40)) {
			t.Fatalf("sent %+v and %d octets", h, len(payload))
		}
		s.receive(s.reply(7), rpcReply(7, 28))
		if s.done() != c || c.Err != nil || !c.Sent || !bytes.Equal(c.Message, rpcReply(7, 28)) {
			t.Fatalf("returned %+v", c)
		}
		s.clean(1)
	})
}

// TestQueue checks that Calls wait in order for the peer, and that a Call is refused if too many wait or one has its XID (RPC2-002).
func TestQueue(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		for i := range s.m.cfg.Window * (mostQueued + 1) {
			err := s.m.Call(s.now, &Call{Head: rpcCall(uint32(100+i), 40)})
			if s.run(); err != nil && !errors.Is(err, ErrQueue) {
				t.Fatal(err)
			}
		}
		if err := s.m.Call(s.now, &Call{Head: rpcCall(1, 40)}); !errors.Is(err, ErrQueue) {
			t.Errorf("a Call too many: %v", err)
		}
		h := s.reply(100)
		h.Credit = Credit2(8, 8) // in version 1 more than enough
		s.receive(h, rpcReply(100, 28))
		if err := s.m.Call(s.now, &Call{Head: rpcCall(101, 40)}); !errors.Is(err, ErrXID) {
			t.Errorf("an XID again: %v", err)
		}
		if err := s.m.Call(s.now, &Call{Head: rpcCall(settleXID, 40)}); !errors.Is(err, ErrXID) {
			t.Errorf("the XID of the properties: %v", err)
		}
		for i, b := range s.sent {
			if p, _ := Peek(b); p.XID != uint32(100+i) {
				t.Errorf("message %d has xid %d", i, p.XID)
			}
		}
	})
}

// TestWindow checks that at most as many Calls are out as the peer and this side have room for, whatever the peer grants
// (RPC1-010, RPC1-011, RPC1-012, RPC1-013, RPC1-015, RPC2-013, RPC2-114).
func TestWindow(t *testing.T) {
	for _, x := range []struct {
		name         string
		version      uint32
		first, grant uint32
		out          int // after the grant
	}{
		{"1: few", Version1, 1, 3, 3}, {"1: none counts as 1", Version1, 1, 0, 1}, {"1: more than there are receives", Version1, 1, 1<<32 - 1, 8},
		{"2: few", Version2, 0, Credit2(5, 5), 5}, {"2: many", Version2, 0, Credit2(1<<16-1, 1<<16-1), 8}, {"2: none counts as 1", Version2, 0, Credit2(0, 0), 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := usual()
			c.Highest = x.version
			s := begin(t, c)
			if x.version == Version1 {
				s.call(&Call{Head: rpcCall(7, 40)})
			} else {
				s.receive(Header{XID: 9, Version: 2, Type: TypeConnProp, Credit: x.grant}, nil)
			}
			s.sent = nil
			for i := range 20 {
				s.call(&Call{Head: rpcCall(uint32(100+i), 40)})
			}
			if x.version == Version1 {
				if len(s.sent) != 0 {
					t.Fatalf("%d Calls more are out before the first Reply", len(s.sent))
				}
				h := s.reply(7)
				h.Credit = x.grant
				s.raw(append(h.Append(nil), rpcReply(7, 28)...))
			}
			if len(s.sent) != x.out || s.closed != nil {
				t.Errorf("%d Calls are out, want %d (%v)", len(s.sent), x.out, s.closed)
			}
		})
	}
}

// TestCancelBeforeListsGo checks that memory is withdrawn at once when a Call is cancelled that was about to tell the peer of it.
func TestCancelBeforeListsGo(t *testing.T) {
	for _, direct := range []bool{false, true} {
		s := open(t, Version2)
		s.credit = Credit2(8, 8)
		c := &Call{Head: rpcCall(7, 9000), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100, Direct: direct}
		if err := s.m.Call(s.now, c); err != nil {
			t.Fatal(err)
		}
		s.steps(2)
		s.pool.none = 1
		if s.run(); len(s.memory.lent) != 1 {
			t.Fatalf("%d pieces of memory are lent", len(s.memory.lent))
		}
		s.m.Cancel(s.now, c)
		if s.run(); s.done() != c || c.Kept || len(s.memory.lent) != 0 {
			t.Errorf("kept: %v, %d pieces of memory are lent", c.Kept, len(s.memory.lent))
		}
		s.receive(s.reply(7), rpcReply(7, 24))
		s.clean(0)
	}
}

// TestWhatACancelledCallKeeps checks that a Call that is cancelled keeps memory of the program only if its items or results are lent: its head is copied where all of it is
// in a Read chunk.
func TestWhatACancelledCallKeeps(t *testing.T) {
	for name, x := range map[string]struct {
		call *Call
		kept bool
	}{
		"nothing lent":       {write(7, 40, 0), false},
		"the head":           {write(7, 9000, 0), false},
		"an item":            {write(7, 108, 108, pattern(9000, 1)), true},
		"the head, an item":  {write(7, 9000, 108, pattern(8193, 1)), true},
		"room for the Reply": {&Call{Head: rpcCall(7, 40), MaxReply: 60000}, false},
		"results":            {&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100}, true},
	} {
		s := open(t, Version1)
		c := s.call(x.call)
		s.m.Cancel(s.now, c)
		if s.run(); s.done() != c || c.Kept != x.kept {
			t.Errorf("%s: memory is kept: %v", name, c.Kept)
		}
	}
}

// TestQueueStaysSmall checks that a queue that is never empty takes no more memory with time.
func TestQueueStaysSmall(t *testing.T) {
	s := open(t, Version1)
	for xid := range uint32(3) {
		s.call(&Call{Head: rpcCall(xid, 40)})
	}
	for xid := range uint32(5000) {
		s.call(&Call{Head: rpcCall(xid+3, 40)})
		h := s.reply(xid)
		h.Credit = 1
		s.receive(h, rpcReply(xid, 28))
		s.pool.Put(s.done().Reply)
	}
	if n := cap(s.m.req.queue); n > 64 || len(s.m.req.free)+len(s.m.req.out) > 8 {
		t.Errorf("the queue has room for %d Calls, and there are %d records", n, len(s.m.req.free)+len(s.m.req.out))
	}
}

// TestLostWithoutACause checks that the error of a Call whose connection ends without a reason is ErrLost, and no more.
func TestLostWithoutACause(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		c := s.call(&Call{Head: rpcCall(7, 40), MaxReply: 100})
		s.m.Lost(nil)
		if s.run(); c.Err == nil || c.Err.Error() != ErrLost.Error() {
			t.Errorf("returned %v", c.Err)
		}
	})
}

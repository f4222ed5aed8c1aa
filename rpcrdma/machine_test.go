package rpcrdma

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestMalformed checks that a peer whose messages cannot be used is left after a number of them in a minute.
func TestMalformed(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		for range 3 {
			for range maxMalformed {
				s.raw([]byte{1, 2, 3})
			}
			if s.closed != nil {
				t.Fatal("the connection has ended early")
			}
			s.now = s.now.Add(malformedTime)
		}
		for range maxMalformed + 1 {
			s.raw([]byte{1, 2, 3})
		}
		if !errors.Is(s.closed, ErrProtocol) {
			t.Errorf("the connection has ended with %v", s.closed)
		}
	})
}

// TestHostileMessages has machines of both sides and versions, with Calls in all states, receive messages that are changed at random. Nothing panics;
// whatever the connection comes to, all Calls return once, and neither memory nor buffers are left (RPC2-028, RPC2-080, RPC2-090, RPC2-091,
// RPC1-001, RPC1-005, RPC1-006, RPC1-052).
func TestHostileMessages(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 10))
		version := uint32(1 + r.IntN(2))
		var s *script
		if r.IntN(2) == 0 {
			s = open(t, version)
		} else {
			s = reversed(t, version, ReverseGeneral, 4)
		}
		if version == Version2 {
			s.credit = Credit2(8, 8)
		}
		calls := 0
		for xid := range uint32(6) {
			c := write(20+xid, 108+r.IntN(2)*9000, 108, pattern(r.IntN(9000), 1))
			c.Into, c.MaxReply, c.Direct = [][]byte{make([]byte, 1+r.IntN(9000))}, r.IntN(60000), r.IntN(2) == 0
			if s.m.Call(s.now, c) == nil {
				calls++
			}
			s.run()
			if r.IntN(4) == 0 {
				s.m.Cancel(s.now, c)
				s.run()
			}
		}
		for range 60 {
			s.raw(s.mutate(r), s.stag(r)...)
			if s.closed != nil {
				break
			}
			if s.now = s.now.Add(time.Duration(r.IntN(5000)) * time.Millisecond); r.IntN(3) == 0 {
				s.m.Tick(s.now)
				s.run()
			}
		}
		s.m.Lost(nil)
		s.run()
		for _, in := range s.incoming {
			s.m.Reply(s.now, in, Answer{Head: rpcReply(in.XID, 28)})
		}
		s.run()
		replies := replyBuffers(s)
		slices.SortFunc(s.returned, func(a, b *Call) int { return bytes.Compare(a.Head[:4], b.Head[:4]) })
		if n := len(slices.Compact(slices.Clone(s.returned))); n != calls || n != len(s.returned) {
			t.Errorf("seed %d: %d of %d Calls have returned, %d times", seed, n, calls, len(s.returned))
		}
		if s.clean(replies); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// mutate makes a message that may be nearly right.
func (s *script) mutate(r *rand.Rand) []byte {
	xid := 20 + uint32(r.IntN(8))
	h := s.reply(xid)
	h.Credit = s.credit
	payload := rpcReply(xid, 28+4*r.IntN(100))
	if o := s.m.req.find(xid); o != nil && r.IntN(3) > 0 && o.lent {
		for i := range o.writes {
			l := o.leases[o.reads+i].Segment
			l.Length = uint32(r.IntN(int(l.Length) + 1))
			h.Writes = append(h.Writes, Chunk{l})
		}
		if o.hasReply && r.IntN(2) == 0 {
			h.Type, h.HasReply, payload = TypeNoMsg, true, nil
			h.Reply = Chunk{o.leases[o.reads+o.writes].Segment}
		}
	}
	switch r.IntN(10) {
	case 0:
		h = Header{XID: xid, Version: s.version, Credit: s.credit, Type: TypeError, Flags: h.Flags,
			Report: Report{Code: ErrorCode(1 + r.IntN(2)), Low: 1, High: 2}}
		payload = nil
	case 1, 2, 3:
		if s.version == Version2 && h.Type == TypeMsg {
			h.Flags |= FlagMore
			h.Writes = nil
		}
	case 4: // a Call
		h.Flags, h.Writes = 0, nil
		payload = rpcCall(xid, 40)
	}
	if h.Type == TypeError {
		h.Writes, h.Reply, h.HasReply = nil, nil, false
	}
	b := append(h.Append(nil), payload...)
	if r.IntN(3) == 0 {
		for range 1 + r.IntN(3) {
			b[r.IntN(min(len(b), 80))] = byte(r.IntN(256) >> (r.IntN(2) * 7))
		}
	}
	if r.IntN(10) == 0 {
		b = b[:r.IntN(len(b))]
	}
	return b
}

// stag sometimes is the tag that a message withdraws.
func (s *script) stag(r *rand.Rand) []uint32 {
	if r.IntN(20) > 0 {
		return nil
	}
	for handle := range s.memory.lent {
		return []uint32{handle}
	}
	return nil
}

// TestReceivesComeFirst checks that receives are posted before what grants them is sent, and each again before anything else when its message has come
// (RPC2-016, RPC1-014, RPC1-015, RPC1-016).
func TestReceivesComeFirst(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		c := both(Server)
		c.Lowest, c.Highest, c.Reverse = version, version, 3
		s := begin(t, c)
		h := Header{XID: 7, Version: version, Credit: 5}
		message := append(h.Append(nil), rpcCall(7, 40)...)
		if version == Version2 {
			h.Type, h.Credit = TypeConnProp, Credit2(5, 5)
			message = h.Append(nil)
		}
		b := s.pool.Get(4096)
		s.m.Received(s.now, b, copy(b.B, message), false, 0)
		want := c.Window + c.Reverse + 1 // version 2: both windows, and a refresh
		if version == Version2 {
			want = c.Window + 5 + 1
		}
		var a Action
		if !s.m.Next(64, &a) || a.Kind != ActReceive || a.N != want-1 {
			t.Errorf("first comes %+v, want %d receives", a, want-1)
		}
		if max := c.Receives(); want > max {
			t.Errorf("%d receives are more than %d", want, max)
		}
	})
}

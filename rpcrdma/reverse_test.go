package rpcrdma

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// reversed makes a server whose client has made a Call, 7, and takes as much of the reverse direction as a level says.
func reversed(t testing.TB, version uint32, level Reverse, most int) *script {
	c := usual()
	c.Side, c.Highest, c.Reverse = Server, version, most
	s := begin(t, c)
	if version == Version2 {
		s.credit = Credit2(8, 8)
		p := DefaultProperties()
		p.Reverse = level
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Properties: p.List()}, nil)
	}
	s.receive(Header{XID: 7, Type: TypeMsg}, rpcCall(7, 40))
	s.sent = nil
	return s
}

// TestReverseCalls checks that the Calls of a server go as its client takes them: in version 1 one Send without lists, in version 2 as the client
// has said (RPC2-006, RPC2-073, RPC2-075, RPC2-076, RPC2-079, RPC1-060, RPC1-061, RPC1-062, RPC1-063).
func TestReverseCalls(t *testing.T) {
	item := []xdr.Item{{At: 40, Data: pattern(9000, 1)}}
	for _, x := range []struct {
		name    string
		version uint32
		level   Reverse
		most    int
		call    Call
		queue   error // of Machine.Call
		err     error // of the Call
		parts   int
		chunks  bool
	}{
		{"1, not agreed", Version1, 0, 0, Call{Head: rpcCall(7, 40)}, ErrReverse, nil, 0, false},
		{"1", Version1, 0, 2, Call{Head: rpcCall(7, 40), MaxReply: 9000, Into: [][]byte{make([]byte, 100)}}, nil, nil, 1, false},
		{"1, long", Version1, 0, 2, Call{Head: rpcCall(7, 40), Items: item}, nil, ErrTooLong, 0, false},
		{"2, not agreed", Version2, ReverseGeneral, 0, Call{Head: rpcCall(7, 40)}, ErrReverse, nil, 0, false},
		{"2, none", Version2, ReverseNone, 2, Call{Head: rpcCall(7, 40)}, ErrReverse, nil, 0, false},
		{"2, simple", Version2, ReverseSimple, 2, Call{Head: rpcCall(7, 40), MaxReply: 90000, Into: [][]byte{make([]byte, 100)}}, nil, nil, 1, false},
		{"2, simple, long", Version2, ReverseSimple, 2, Call{Head: rpcCall(7, 40), Items: item}, nil, ErrTooLong, 0, false},
		{"2, continued", Version2, ReverseContinued, 2, Call{Head: rpcCall(7, 40), Items: item, MaxReply: 90000}, nil, nil, 3, false},
		{"2, general", Version2, ReverseGeneral, 2, Call{Head: rpcCall(7, 40), Items: item}, nil, nil, 1, true},
	} {
		s := reversed(t, x.version, x.level, x.most)
		c := x.call
		if err := s.m.Call(s.now, &c); !errors.Is(err, x.queue) {
			t.Errorf("%s: queued: %v", x.name, err)
		}
		if s.run(); x.queue != nil {
			continue
		}
		if x.err != nil {
			if s.done(); !errors.Is(c.Err, x.err) || c.Sent {
				t.Errorf("%s: returned %v", x.name, c.Err)
			}
			continue
		}
		var payload []byte
		var h Header
		for _, b := range s.sent {
			p, err := NewDecoder(DefaultLimits()).Decode(b, &h)
			if err != nil {
				t.Fatal(err)
			}
			payload = append(payload, p...)
		}
		if len(s.sent) != x.parts || h.noLists() == x.chunks || h.Flags != 0 || h.XID != 7 || x.version == Version1 && h.Credit != 2 {
			t.Errorf("%s: %d messages, the last one %+v", x.name, len(s.sent), h)
		}
		if got, want := s.fetch(h, payload), xdr.AppendFlat(nil, c.Head, c.Items); !bytes.Equal(got, want) {
			t.Errorf("%s: the client gets another message of %d octets", x.name, len(got))
		}
		s.receive(s.reply(7), rpcReply(7, 28)) // the XID is also that of a forward Call
		if s.done(); c.Err != nil || c.Placed[0] != -1 {
			t.Errorf("%s: returned %+v", x.name, c)
		}
	}
}

// TestReverseCredits checks that the Calls of a server have credits of their own in version 1: one at first, then as many as the client grants,
// and never more than there are receives for (RPC1-011, RPC1-012, RPC1-061, RPC1-062).
func TestReverseCredits(t *testing.T) {
	s := reversed(t, Version1, 0, 4)
	if want := 8 + 4 + 1; s.receives != want {
		t.Errorf("%d receives, want %d", s.receives, want)
	}
	for i := range 10 {
		s.call(&Call{Head: rpcCall(uint32(20+i), 40)})
	}
	if len(s.sent) != 1 {
		t.Errorf("%d Calls are out before the first Reply", len(s.sent))
	}
	for i, grant := range []uint32{2, 100} {
		h := s.reply(uint32(20 + i))
		h.Credit = grant
		s.receive(h, rpcReply(uint32(20+i), 28))
		if want := 1 + i + int(min(grant, 4)); len(s.sent) != want {
			t.Errorf("granted %d, %d Calls have gone, want %d", grant, len(s.sent), want)
		}
	}
}

// TestReverseLost checks that a server's Calls return when its client is gone: it cannot connect again (RPC2-078).
func TestReverseLost(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := reversed(t, version, ReverseGeneral, 2)
		for i := range 5 {
			s.call(&Call{Head: rpcCall(uint32(20+i), 40), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100})
		}
		s.m.Lost(nil)
		s.run()
		if len(s.returned) != 5 || len(s.memory.lent) != 0 {
			t.Errorf("%d Calls have returned, %d pieces of memory are lent", len(s.returned), len(s.memory.lent))
		}
		for _, c := range s.returned {
			if !errors.Is(c.Err, ErrLost) {
				t.Error(c.Err)
			}
		}
		if err := s.m.Call(s.now, &Call{Head: rpcCall(77, 40)}); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

// TestMalformedReverseReply checks that a server does not answer a malformed Reply as if it were a Call (RPC2-090, RPC1-005).
func TestMalformedReverseReply(t *testing.T) {
	s := reversed(t, Version1, 0, 2)
	s.call(&Call{Head: rpcCall(30, 40)})
	for xid, answers := range map[uint32]int{30: 0, 31: 1} {
		s.sent = nil
		h := Header{XID: xid, Version: 1, Credit: 1}
		s.raw(h.Append(nil)[:20])
		if len(s.sent) != answers {
			t.Errorf("xid %d: %d answers", xid, len(s.sent))
		}
	}
}

// TestReverseCancelled checks that a server which has given up a Call that lent nothing keeps its connection, which it cannot make again, while one
// whose memory the client may still use ends it (RPC2-078, RPC2-113).
func TestReverseCancelled(t *testing.T) {
	for _, x := range []struct {
		version uint32
		into    int
		ends    bool
	}{{Version1, 0, false}, {Version2, 0, false}, {Version2, 9000, true}} {
		s := reversed(t, x.version, ReverseGeneral, 2)
		c := &Call{Head: rpcCall(20, 40), MaxReply: 100}
		if x.into > 0 {
			c.Into = [][]byte{make([]byte, x.into)}
		}
		s.call(c)
		s.m.Cancel(s.now, c)
		s.run()
		s.now = s.now.Add(s.m.cfg.GiveUp + time.Second)
		s.m.Tick(s.now)
		if s.run(); !errors.Is(c.Err, ErrCancelled) || errors.Is(s.closed, ErrNoReply) != x.ends {
			t.Errorf("version %d, %d octets lent: returned %v, closed %v", x.version, x.into, c.Err, s.closed)
		}
	}
}

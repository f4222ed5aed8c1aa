package rpcrdma

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// both is a client's Config that allows both versions.
func both(side Side) Config {
	c := usual()
	c.Side, c.Highest = side, Version2
	return c
}

// TestFirstMessage checks that a client of version 2 begins with its properties and is silent until the server has answered, and one of version 1 with
// a Call (RPC2-022, RPC2-023, RPC2-061, RPC2-068, RPC2-109, RPC1-011, RPCN-01).
// Attack P15 (SECURITY.md).
func TestFirstMessage(t *testing.T) {
	s := begin(t, both(Client))
	h, _ := s.message()
	if len(s.sent) != 1 || len(s.sent[0]) > 1024 || h.Version != 2 || h.Type != TypeConnProp || h.XID == 0 || h.Flags != 0 || h.Maximum() != 8 || h.Granted() != 8 {
		t.Errorf("the first message is %+v", h)
	}
	for i := range 3 {
		s.call(&Call{Head: rpcCall(uint32(10+i), 40)})
	}
	if len(s.sent) != 1 {
		t.Errorf("%d messages before the server has said anything", len(s.sent))
	}
	s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Credit: Credit2(8, 8), Flags: FlagTPMore}, nil)
	if len(s.sent) != 1 {
		t.Errorf("%d messages before the server has said all properties", len(s.sent))
	}
	s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Credit: Credit2(8, 1)}, nil)
	if len(s.sent) != 4 || s.m.Version() != Version2 || s.m.Phase() != Open {
		t.Errorf("%d messages afterwards", len(s.sent))
	}
	// Receives are there before they are granted: the window, what may be unproven, and a refresh.
	if s.receives != 8+8+1 {
		t.Errorf("%d receives", s.receives)
	}
}

// errVers is an ERR_VERS in the layout of a version.
func errVers(layout, xid, low, high uint32) []byte {
	h := Header{XID: xid, Version: layout, Credit: 64, Type: TypeError, Report: Report{Code: CodeVers, Refused: 2, Low: low, High: high}}
	if layout == Version2 {
		h.Flags, h.Credit = FlagResponse, Credit2(8, 8)
	}
	return h.Append(nil)
}

// TestFallBack checks that a client goes on in version 1 on the same connection if the server knows no other, in whatever layout it
// says so, with credits and thresholds of version 1, and gives up where nothing is in common (RPC2-025, RPC2-026, RPC2-027, RPCN-02, RPCN-03,
// RPCN-05).
func TestFallBack(t *testing.T) {
	for _, layout := range []uint32{Version1, Version2} {
		for _, x := range []struct {
			lowest, low, high uint32
			want              error
		}{{1, 1, 1, nil}, {1, 0, 1, nil}, {1, 1, 7, nil}, {1, 3, 9, ErrVersion}, {2, 1, 1, ErrVersion}, {1, 0, 0, ErrVersion}, {1, 2, 1, nil}} {
			if x.low > x.high {
				continue // dropped by the Decoder
			}
			t.Run(fmt.Sprintf("layout %d, %d to %d of %d", layout, x.low, x.high, x.lowest), func(t *testing.T) {
				c := both(Client)
				c.Lowest = x.lowest
				s := begin(t, c)
				s.version, s.credit = Version1, 64
				call := s.call(write(7, 108, 108, pattern(3800, 1)))
				s.call(&Call{Head: rpcCall(8, 40)})
				s.raw(errVers(layout, settleXID, x.low, x.high))
				if !errors.Is(s.closed, x.want) {
					t.Fatalf("the connection has ended with %v", s.closed)
				}
				if x.want != nil {
					s.m.Lost(s.closed)
					if s.run(); call.Sent || !errors.Is(call.Err, x.want) {
						t.Errorf("returned %+v", call)
					}
					return
				}
				h, _ := s.message()
				if s.m.Version() != Version1 || len(s.sent) != 2 || h.Version != 1 || h.XID != 7 || h.Credit != 8 {
					t.Fatalf("after %d messages: %+v", len(s.sent), h)
				}
				s.receive(s.reply(7), rpcReply(7, 28))
				if h, _ := s.message(); h.XID != 8 || s.done() != call || call.Err != nil {
					t.Errorf("%v, next %+v", call.Err, h)
				}
				if s.receives != c.Posted() {
					t.Errorf("%d receives, want %d", s.receives, c.Posted())
				}
			})
		}
	}
}

// TestNoVersion2 checks that a client leaves a server that does not take part in version 2, so that version 1 is tried on a new connection: nothing
// comes, what comes is of version 1, or an ERROR about the properties (RPCN-04).
func TestNoVersion2(t *testing.T) {
	report := func(c ErrorCode) func(s *script) {
		return func(s *script) {
			s.receive(Header{XID: settleXID, Version: 2, Type: TypeError, Credit: 1, Flags: FlagResponse, Report: Report{Code: c}}, nil)
		}
	}
	for name, x := range map[string]func(s *script){
		"nothing": func(s *script) {
			if next := s.m.Tick(s.now); next.Sub(s.now) != s.m.cfg.First {
				t.Errorf("the next time is in %v", next.Sub(s.now))
			}
			s.now = s.now.Add(10 * time.Second)
			s.m.Tick(s.now)
		},
		"version 1": func(s *script) {
			s.raw(append((&Header{XID: 7, Version: 1, Credit: 9}).Append(nil), rpcReply(7, 28)...))
		},
		"version 3": func(s *script) { s.raw([]byte{0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}) },
		"BAD_XDR":   report(CodeBadXDR), "BAD_PROPVAL": report(CodeBadPropVal), "INVAL_HTYPE": report(CodeInvalHType), "SYSTEM": report(CodeSystem),
		"properties": func(s *script) {
			s.receive(Header{XID: 7, Version: 2, Type: TypeConnProp, Credit: Credit2(8, 8), Properties: []Property{{PropertyReceiveSize, []byte{0, 0, 0, 1}}}}, nil)
		},
	} {
		s := begin(t, both(Client))
		c := s.call(&Call{Head: rpcCall(7, 40)})
		x(s)
		if s.run(); !errors.Is(s.closed, ErrFallBack) {
			t.Errorf("%s: the connection has ended with %v", name, s.closed)
		}
		s.m.Lost(s.closed)
		if s.run(); s.done() != c || c.Sent || !errors.Is(c.Err, ErrFallBack) {
			t.Errorf("%s: returned %+v", name, c)
		}
	}
}

// TestServerSettles checks that a server speaks the version of the client's first message, and says which ones it knows if it knows another one, whenever
// it comes (RPC2-024, RPC2-026, RPC2-028, RPC2-068, RPCN-06).
func TestServerSettles(t *testing.T) {
	message := func(version uint32) []byte {
		h := Header{XID: 7, Version: min(max(version, 1), 2), Credit: 1}
		if version == Version2 {
			h.Type, h.Credit = TypeConnProp, Credit2(8, 8)
		}
		b := h.Append(nil)
		b[7] = byte(version)
		if version != Version2 {
			b = append(b, rpcCall(7, 40)...)
		}
		return b
	}
	for _, x := range []struct {
		lowest, highest uint32
		come            []uint32 // versions of messages
		answers         []uint32 // layouts of ERR_VERS; 9: properties; 0: nothing
		speaks          uint32
	}{
		{1, 2, []uint32{1}, []uint32{0}, 1}, {1, 2, []uint32{2}, []uint32{9}, 2},
		{1, 2, []uint32{3, 0, 2}, []uint32{1, 1, 9}, 2}, {1, 1, []uint32{2, 1}, []uint32{1, 0}, 1}, {2, 2, []uint32{1, 2}, []uint32{2, 9}, 2},
		{1, 2, []uint32{1, 2}, []uint32{0, 1}, 1}, {1, 2, []uint32{2, 1}, []uint32{9, 2}, 2},
	} {
		c := both(Server)
		c.Lowest, c.Highest = x.lowest, x.highest
		s := begin(t, c)
		if s.receives != 2 || len(s.sent) != 0 {
			t.Fatalf("%d receives, %d messages before the client has spoken", s.receives, len(s.sent))
		}
		for i, version := range x.come {
			s.sent = nil
			s.raw(message(version))
			var h Header
			if len(s.sent) > 0 {
				if _, err := NewDecoder(DefaultLimits()).Decode(s.sent[0], &h); err != nil {
					t.Fatal(err)
				}
			}
			switch want := x.answers[i]; {
			case want == 0 && len(s.sent) == 0:
			case want == 9 && h.Type == TypeConnProp && h.Maximum() == 8 && h.Granted() == 8:
			case want == 1 || want == 2:
				low, high := x.lowest, x.highest
				if s.m.Version() != 0 {
					low, high = s.m.Version(), s.m.Version()
				}
				if r := h.Report; h.Version != want || r.Code != CodeVers || r.Refused != version || r.Low != low || r.High != high || h.XID != 7 || h.Credit == 0 {
					t.Errorf("%v: message %d is answered by %+v", x.come, i, h)
				}
			default:
				t.Errorf("%v: message %d is answered by %d messages, %+v", x.come, i, len(s.sent), h)
			}
		}
		if s.m.Version() != x.speaks || s.closed != nil {
			t.Errorf("%v: version %d, %v", x.come, s.m.Version(), s.closed)
		}
	}
}

// TestPropertiesOfPeers checks what comes of CONNPROPs of all kinds (RPC2-059, RPC2-060, RPC2-069, RPC2-070, RPC2-072, RPC2-105).
func TestPropertiesOfPeers(t *testing.T) {
	s := begin(t, both(Server))
	number := func(id PropertyID, v byte) Property { return Property{id, []byte{0, 0, v, 0}} }
	prop := func(flags Flags, list ...Property) {
		s.sent = nil
		s.receive(Header{XID: 7, Version: 2, Type: TypeConnProp, Credit: Credit2(8, 8), Flags: flags, Properties: list}, nil)
	}
	if prop(FlagTPMore, number(PropertyReceiveSize, 8)); s.m.Phase() != Settling || len(s.sent) != 1 {
		t.Errorf("phase %d, %d messages", s.m.Phase(), len(s.sent))
	}
	if prop(FlagTPMore, number(PropertyReceiveSize, 6), Property{PropertyReverse, []byte{1}}); s.m.threshold() != 2048 {
		t.Errorf("the threshold is %d", s.m.threshold())
	}
	if h, _ := s.message(); h.Type != TypeError || h.Report.Code != CodeBadPropVal {
		t.Errorf("a bad property is answered by %+v", h)
	}
	if prop(0, number(77, 9), Property{PropertyHostAuth, []byte{0, 0, 0, 1, 65, 0, 0, 0}}); s.m.Phase() != Open || string(s.m.settle.peer.HostAuth) != "A" {
		t.Errorf("phase %d, %q", s.m.Phase(), s.m.settle.peer.HostAuth)
	}
	prop(0, number(PropertyReceiveSize, 5))
	if h, _ := s.message(); h.Type != TypeError || h.Report.Code != CodeInvalHType || s.m.threshold() != 2048 {
		t.Errorf("properties after the last ones are answered by %+v", h)
	}

	s = begin(t, both(Server)) // a client without properties
	s.receive(Header{XID: 7, Version: 2, Credit: Credit2(8, 8)}, rpcCall(7, 40))
	if s.m.Phase() != Open || len(s.sent) != 1 {
		t.Errorf("phase %d, %d messages", s.m.Phase(), len(s.sent))
	}
	prop(0)
	if h, _ := s.message(); h.Report.Code != CodeInvalHType {
		t.Errorf("properties after a Call are answered by %+v", h)
	}
}

// TestServerHearsNothing checks that a server leaves a client that does not speak.
func TestServerHearsNothing(t *testing.T) {
	s := begin(t, both(Server))
	s.m.Tick(s.now.Add(10*time.Second - 1))
	if s.run(); s.closed != nil {
		t.Error("the connection has ended early")
	}
	s.m.Tick(s.now.Add(10 * time.Second))
	if s.run(); !errors.Is(s.closed, ErrSilent) {
		t.Errorf("the connection has ended with %v", s.closed)
	}
}

// TestLateErrVers checks that a version stays what it is after the first messages (RPC2-026).
func TestLateErrVers(t *testing.T) {
	s := open(t, Version2)
	s.raw(errVers(Version2, settleXID, 1, 1))
	if !errors.Is(s.closed, ErrFallBack) || s.m.Version() != Version2 {
		t.Errorf("version %d, %v", s.m.Version(), s.closed)
	}

	s = open(t, Version1) // credits of another layout are none
	for i := range 3 {
		s.call(&Call{Head: rpcCall(uint32(7+i), 40)})
	}
	s.raw(errVers(Version2, 7, 1, 1))
	if len(s.sent) != 2 {
		t.Errorf("%d Calls have gone", len(s.sent))
	}
}

// TestOnlyVersion2 checks that a client that may not speak version 1 is not told to try it.
func TestOnlyVersion2(t *testing.T) {
	c := both(Client)
	c.Lowest = Version2
	s := begin(t, c)
	s.m.Tick(s.now.Add(10 * time.Second))
	if s.run(); !errors.Is(s.closed, ErrSilent) {
		t.Errorf("the connection has ended with %v", s.closed)
	}
}

// TestLostUnanswered checks that a connection that ends before the server has answered is a reason to try version 1, and one that ends later is not (RPCN-04).
func TestLostUnanswered(t *testing.T) {
	cut := errors.New("connection reset")
	for _, x := range []struct {
		lowest   uint32
		answered bool
		cause    error
		fallBack bool
	}{{1, false, cut, true}, {1, false, nil, true}, {2, false, cut, false}, {1, true, cut, false}, {1, true, nil, false}} {
		c := both(Client)
		c.Lowest = x.lowest
		s := begin(t, c)
		call := s.call(&Call{Head: rpcCall(7, 40)})
		if x.answered {
			s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Credit: Credit2(8, 8)}, nil)
		}
		why := s.m.Lost(x.cause)
		s.run()
		if errors.Is(why, ErrFallBack) != x.fallBack || x.cause != nil && !errors.Is(why, x.cause) {
			t.Errorf("%+v: the reason is %v", x, why)
		}
		if !errors.Is(call.Err, ErrLost) || call.Sent != x.answered {
			t.Errorf("%+v: returned %v, sent %v", x, call.Err, call.Sent)
		}
	}
}

// TestPropertiesBeforeCalls checks that a server that calls its client sends its properties first, even if there is no buffer for them when there is one for the Call
// (RPC2-061).
func TestPropertiesBeforeCalls(t *testing.T) {
	for none := range 4 {
		c := both(Server)
		c.Reverse = 2
		s := begin(t, c)
		call := &Call{Head: rpcCall(9, 40)}
		if err := s.m.Call(s.now, call); err != nil {
			t.Fatal(err)
		}
		p := DefaultProperties()
		p.Reverse = ReverseGeneral
		h := Header{XID: 1, Version: Version2, Type: TypeConnProp, Credit: Credit2(8, 8), Properties: p.List()}
		b := s.pool.Get(c.ReceiveSize)
		n := copy(b.B, h.Append(nil))
		s.receives--
		s.pool.none = none
		s.m.Received(s.now, b, n, false, 0)
		for range none + 2 {
			s.run()
		}
		var types []Type
		for _, b := range s.sent {
			var h Header
			if _, err := NewDecoder(DefaultLimits()).Decode(b, &h); err != nil {
				t.Fatal(err)
			}
			types = append(types, h.Type)
		}
		if len(types) != 2 || types[0] != TypeConnProp || types[1] != TypeMsg {
			t.Errorf("a buffer is missing %d times: %v were sent", none, types)
		}
	}
}

// TestReverseCallsBeforeProperties checks what becomes of a Call that a server has queued before it knows its client, or while it knows some of its properties: it
// goes if the client takes it, and else returns with ErrReverse, unsent (RPC2-075, RPC2-076).
func TestReverseCallsBeforeProperties(t *testing.T) {
	for level := ReverseNone; level <= ReverseGeneral; level++ {
		for _, begun := range []bool{false, true} {
			c := both(Server)
			c.Reverse = 2
			s := begin(t, c)
			s.credit = Credit2(8, 8)
			if begun {
				s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Flags: FlagTPMore}, nil)
			}
			call := s.call(&Call{Head: rpcCall(9, 40)})
			p := DefaultProperties()
			p.Reverse = level
			s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Properties: p.List()}, nil)
			if level == ReverseNone {
				if s.done() != call || !errors.Is(call.Err, ErrReverse) || call.Sent || len(s.sent) != 1 {
					t.Errorf("not taken, properties have begun %v: %v, %d messages", begun, call.Err, len(s.sent))
				}
				continue
			}
			if h, _ := s.message(); len(s.returned) != 0 || h.XID != 9 || h.Type != TypeMsg {
				t.Errorf("level %v, properties have begun %v: sent %+v, %v", level, begun, h, call.Err)
			}
		}
	}
}

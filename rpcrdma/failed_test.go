package rpcrdma

import (
	"errors"
	"testing"
)

// TestErrors checks what the ERRORs of the peer do to a Call, to the next one, and to the connection (RPC2-082, RPC2-083, RPC2-085,
// RPC2-086, RPC2-087, RPC2-088, RPC2-112, RPC1-051).
func TestErrors(t *testing.T) {
	for _, x := range []struct {
		version uint32
		report  Report
		repeat  bool // the Call may be made again
		ends    bool // the connection
		reads   int  // chunks of the next Call
		writes  int
	}{
		{Version1, Report{Code: CodeChunk}, false, false, 1, 1},
		{Version1, Report{Code: CodeVers, Refused: 1, Low: 1, High: 1}, false, false, 1, 1},
		{Version2, Report{Code: CodeBadXDR}, false, false, 1, 1},
		{Version2, Report{Code: CodeInvalCont}, false, false, 1, 1},
		{Version2, Report{Code: CodeSystem}, false, false, 1, 1},
		{Version2, Report{Code: CodeWriteResource, Index: 1, Needed: 12000}, false, false, 1, 1},
		{Version2, Report{Code: CodeReplyResource, Needed: 12000}, false, false, 1, 1},
		{Version2, Report{Code: CodeReadChunks, Max: 0}, true, false, 0, 1},
		{Version2, Report{Code: CodeReadChunks, Max: 3}, true, false, 1, 1},
		{Version2, Report{Code: CodeWriteChunks, Max: 0}, true, false, 1, 0},
		{Version2, Report{Code: CodeSegments, Max: 0}, true, false, 0, 0},
		{Version2, Report{Code: CodeSegments, Max: 1}, true, false, 0, 1},
		{Version2, Report{Code: CodeInvalHType}, false, true, 0, 0},
		{Version2, Report{Code: CodeVers, Refused: 2, Low: 1, High: 1}, false, true, 0, 0},
	} {
		name := x.report.Code.Name(x.version)
		s := open(t, x.version)
		s.credit = Credit2(8, 8)
		make1 := func(xid uint32) *Call {
			c := write(xid, 108, 108, pattern(9000, 1))
			c.Into = [][]byte{make([]byte, 9000)}
			return c
		}
		c := s.call(make1(7))
		s.receive(Header{XID: 7, Type: TypeError, Flags: s.reply(7).Flags, Report: x.report}, nil)
		var e *PeerError
		if s.done(); !errors.As(c.Err, &e) || e.Report != x.report || e.Repeatable() != x.repeat || e.Error() == "" {
			t.Errorf("%s: returned %v", name, c.Err)
		}
		if (s.closed != nil) != x.ends {
			t.Errorf("%s: the connection has ended: %v", name, s.closed)
		}
		if s.clean(0); x.ends {
			continue
		}
		s.call(make1(8))
		h, _ := s.message()
		for range 4 { // parts
			if x.version == Version2 {
				s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
				h, _ = s.message()
			}
		}
		if len(h.Reads) != x.reads || len(h.Writes) != x.writes {
			t.Errorf("%s: the next Call has %d Read chunks and %d Write chunks", name, len(h.Reads), len(h.Writes))
		}
	}
}

// TestUnknownError checks that an ERROR with a code that is none is dropped (RPC2-082).
func TestUnknownError(t *testing.T) {
	s := open(t, Version2)
	s.call(&Call{Head: rpcCall(7, 40)})
	h := Header{XID: 7, Version: 2, Type: TypeError, Credit: 1, Flags: FlagResponse, Report: Report{Code: CodeBadXDR}}
	b := h.Append(nil)
	b[len(b)-1] = 77
	s.raw(b)
	if len(s.returned) != 0 || s.closed != nil {
		t.Errorf("%d Calls have returned, %v", len(s.returned), s.closed)
	}
}

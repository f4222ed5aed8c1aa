package rpcrdma_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// segments makes a chunk: its segments have handles from first on.
func segments(first uint32, lengths ...uint32) (c codec.Chunk) {
	for i, n := range lengths {
		c = append(c, codec.Segment{Handle: first + uint32(i), Length: n, Offset: uint64(first+uint32(i)) << 20})
	}
	return c
}

// cut returns a chunk as a Reply returns it, with other lengths.
func cut(c codec.Chunk, lengths ...uint32) codec.Chunk {
	c = slices.Clone(c)
	for i, n := range lengths {
		c[i].Length = n
	}
	return c
}

// begins has a connection of version 1 set up, and its first Call answered, so that 64 Calls may wait.
func (s *script) begins() {
	s.connect(private, private)
	s.send(client, v1(client, 1), null(1))
	s.send(server, reply1(server, 1, 64), replyOf(1))
}

// readCall is a READ of n octets with a Write chunk, and readReply its Reply, which returns another chunk.
func (s *script) readCall(xid uint32, n int, chunk codec.Chunk) {
	h := v1(client, xid)
	h.Writes = []codec.Chunk{chunk}
	s.send(client, h, callOf(xid, nfs, 3, 6, readArgs(n)))
}

func (s *script) readReply(xid uint32, n, inline int, chunks ...codec.Chunk) {
	h := reply1(server, xid, 64)
	h.Writes = chunks
	s.send(server, h, replyOf(xid, readResults(n, inline)))
}

// v2 is a header of version 2.
func v2(xid uint32, granted uint16, flags codec.Flags) codec.Header {
	return codec.Header{XID: xid, Version: 2, Credit: codec.Credit2(64, granted), Type: codec.TypeMsg, Flags: flags}
}

func properties(xid uint32, granted uint16) codec.Header {
	h := v2(xid, granted, 0)
	h.Type = codec.TypeConnProp
	return h
}

// begins2 has a connection of version 2 settle.
func (s *script) begins2() {
	s.connect(private, private)
	s.send(client, properties(900, 64), nil)
	s.send(server, properties(901, 64), nil)
}

// TestFound checks that each kind of finding is found where it is, and nothing else (RPC1-002, 010 to 014, 021, 027, 040, 041, 050, 053,
// 060, RPC2-014, 021, 039, 043, 062, 064, 102, RPCN-02 to 04, NFSB-01, LX-03, 13, 14, 19, 30, 40).
func TestFound(t *testing.T) {
	hole := func(s *script, e *iwarp.Event) { s.record++; s.event(e) }
	for _, c := range []struct {
		name string
		run  func(s *script)
		want []string // prefixes
	}{
		{"nothing", func(s *script) { s.begins() }, nil},
		{"data placed and fetched", func(s *script) {
			s.begins()
			chunk := segments(5, 3000, 3000)
			s.readCall(2, 5000, chunk[:1])
			s.write(server, chunk[0], make([]byte, 3000))
			s.sendInvalidate(server, 5, func() codec.Header {
				h := reply1(server, 2, 64)
				h.Writes = []codec.Chunk{chunk[:1]}
				return h
			}(), replyOf(2, readResults(3000, 0)))
			h := v1(client, 3)
			h.Reads = []codec.ReadChunk{{Position: 84, Segments: segments(9, 2001)}}
			s.send(client, h, callOf(3, nfs, 3, 7, writeArgs(2001, 0)))
			s.fetch(server, h.Reads[0].Segments[0], make([]byte, 2001))
			s.send(server, reply1(server, 3, 64), replyOf(3))
			if s.last.Call.Fetched != 2001 || s.last.Call.Name() != "NFS 3 WRITE" {
				s.t.Errorf("%+v", s.last.Call)
			}
		}, nil},
		{"a header that ends early", func(s *script) {
			s.begins()
			h := v1(client, 2)
			s.frames(client, 3, sendHeader, h.Append(nil)[:20], nil)
		}, []string{"malformed 1 at 5/0 of 0: "}},
		{"XIDs differ", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), null(3))
		}, []string{"malformed 1 at 5/0 of 0: the XID of the header is 0x2, and that of the RPC message 0x3"}},
		{"no RPC message", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), []byte{0, 0, 0, 2})
		}, []string{"malformed 1 at 5/0 of 0: there is no RPC message"}},
		{"neither Call nor Reply", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), []byte{0, 0, 0, 2, 0, 0, 0, 9})
		}, []string{"malformed 1 at 5/0 of 0: the RPC message is neither a Call nor a Reply, but of type 9"}},
		{"two Calls before the first Reply", func(s *script) {
			s.connect(private, private)
			s.send(client, v1(client, 1), null(1))
			s.send(client, v1(client, 2), null(2))
		}, []string{"overrun 1 at 4/0 of 0: 2 Calls waited, granted 1"}},
		{"three Calls of two", func(s *script) {
			s.connect(private, private)
			s.send(client, v1(client, 1), null(1))
			s.send(server, reply1(server, 1, 2), replyOf(1))
			for xid := range uint32(3) {
				s.send(client, v1(client, 2+xid), null(2+xid))
			}
		}, []string{"overrun 1 at 7/0 of 0: 3 Calls waited, granted 2"}},
		{"a grant that shrinks may be under way", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), null(2))
			s.send(server, reply1(server, 2, 1), replyOf(2))
			s.send(client, v1(client, 3), null(3))
			s.send(client, v1(client, 4), null(4))
		}, nil},
		{"Replies that the capture lacks", func(s *script) {
			s.begins()
			hole(s, &iwarp.Event{Kind: iwarp.Missing, Way: server, N: 100})
			for xid := range uint32(70) {
				s.send(client, v1(client, 2+xid), null(2+xid))
			}
			s.gone()
		}, nil},
		{"messages of version 2 beyond the grant", func(s *script) {
			s.connect(private, private)
			s.send(client, properties(900, 64), nil)
			s.send(server, properties(901, 3), nil)
			for xid := range uint32(5) {
				s.send(client, v2(2+xid, 1, 0), null(2+xid))
			}
		}, []string{"overrun 1 at 9/0 of 0: 6 messages were sent, granted 3"}},
		{"an inline Reply of 2096 octets to a client that takes 1024", func(s *script) {
			s.connect(codec.Private{SendSize: 4096, ReceiveSize: 1024}.Append(nil), private)
			s.send(client, v1(client, 1), callOf(1, nfs, 3, 16))
			s.send(server, reply1(server, 1, 64), replyOf(1))
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 16))
			s.send(server, reply1(server, 2, 64), append(replyOf(2), make([]byte, 2096-28-24)...))
		}, []string{"too long 1 at 7/0 of 1: Reply of 2096 octets, threshold 1024"}},
		{"without private data 1024 octets are the most", func(s *script) {
			s.connect(nil, private)
			s.send(client, v1(client, 1), append(null(1), make([]byte, 1024-28-40)...))
			s.send(server, reply1(server, 1, 64), append(replyOf(1), make([]byte, 1028-28-24)...))
		}, []string{"too long 1 at 4/0 of 1: Reply of 1028 octets, threshold 1024"}},
		{"the first message of version 2 has 1024 octets at most", func(s *script) {
			s.connect(private, private)
			h := properties(900, 64)
			h.Properties = []codec.Property{{ID: codec.PropertyHostAuth, Data: append([]byte{0, 0, 4, 0}, make([]byte, 1024)...)}}
			s.send(client, h, nil)
			s.send(server, properties(901, 64), nil)
			s.send(client, v2(2, 64, 0), append(null(2), make([]byte, 3000)...))
		}, []string{"too long 1 at 3/0 of 0: properties of "}},
		{"several STags", func(s *script) {
			s.begins()
			h := v1(client, 2)
			h.HasReply, h.Reply = true, segments(5, 100, 200, 4)
			s.send(client, h, callOf(2, nfs, 3, 17))
		}, []string{"several STags 1 at 5/0 of 0: NFS 3 READDIRPLUS"}},
		{"several STags of a client that takes no invalidation", func(s *script) {
			s.connect(codec.Private{SendSize: 4096, ReceiveSize: 4096}.Append(nil), private)
			h := v1(client, 2)
			h.HasReply, h.Reply = true, segments(5, 100, 200)
			s.send(client, h, callOf(2, nfs, 3, 17))
		}, nil},
		{"a WRITE inline", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 7, writeArgs(1024, 1024)))
			s.send(server, reply1(server, 2, 64), replyOf(2))
			s.send(client, v1(client, 3), callOf(3, nfs, 3, 7, writeArgs(1020, 1020)))
		}, []string{"inline 1 at 5/0 of 0: NFS 3 WRITE"}},
		{"a READ inline", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 6, readArgs(2000)))
			s.readReply(2, 2000, 2000)
		}, []string{"inline 1 at 7/5 of 1: NFS 3 READ"}},
		{"a READ inline although there is a Write chunk", func(s *script) {
			s.begins()
			s.readCall(2, 100, segments(5, 100))
			s.readReply(2, 100, 100, segments(5, 0))
			h := v1(client, 3)
			h.Writes = []codec.Chunk{segments(5, 100)}
			s.send(client, h, callOf(3, nfs, 3, 6, readArgs(100)))
			s.readReply(3, 0, 0, cut(segments(5, 100), 0))
		}, []string{"unplaced 1 at 6/5 of 1: NFS 3 READ"}},
		{"octets that were not written", func(s *script) {
			s.begins()
			chunk := segments(5, 3000)
			s.readCall(2, 3000, chunk)
			s.write(server, chunk[0], make([]byte, 2000))
			s.readReply(2, 3000, 0, chunk)
		}, []string{"returned 1 at 8/5 of 1: NFS 3 READ: segment 1 returns 3000 octets, and 2000 were written"}},
		{"octets that the capture lacks", func(s *script) {
			s.begins()
			chunk := segments(5, 3000)
			s.readCall(2, 3000, chunk)
			s.write(server, chunk[0], make([]byte, 2000))
			hole(s, &iwarp.Event{Kind: iwarp.Missing, Way: server, N: 1000})
			s.readReply(2, 3000, 0, chunk)
		}, nil},
		{"more octets than there is room for", func(s *script) {
			s.begins()
			chunk := segments(5, 100)
			s.readCall(2, 100, chunk)
			s.write(server, chunk[0], make([]byte, 100))
			s.readReply(2, 200, 0, cut(chunk, 200))
		}, []string{"returned 1 at 7/5 of 1: NFS 3 READ: segment 1 returns 200 octets of 100"}},
		{"another segment", func(s *script) {
			s.begins()
			s.readCall(2, 100, segments(5, 100))
			s.readReply(2, 0, 0, segments(6, 0))
		}, []string{"returned 1 at 6/5 of 1: NFS 3 READ: segment 1 is STag 0x5 at 0x500000 in the Call, and STag 0x6 at 0x600000 in the Reply"}},
		{"a segment after one that is not full", func(s *script) {
			s.begins()
			chunk := segments(5, 100, 100)
			h := v1(client, 2)
			h.HasReply, h.Reply = true, chunk
			s.send(client, h, callOf(2, nfs, 3, 17))
			s.write(server, chunk[0], make([]byte, 60))
			s.write(server, chunk[1], make([]byte, 40))
			r := reply1(server, 2, 64)
			r.Type, r.HasReply, r.Reply = codec.TypeNoMsg, true, cut(chunk, 60, 40)
			s.send(server, r, nil)
		}, []string{"several STags", "returned 1 at 8/5 of 1: NFS 3 READDIRPLUS: segment 2 has octets, although the one before is not full"}},
		{"a chunk that is not returned", func(s *script) {
			s.begins()
			s.readCall(2, 100, segments(5, 100))
			s.readReply(2, 0, 0)
		}, []string{"returned 1 at 6/5 of 1: NFS 3 READ: the Call has 1 Write chunks, and the Reply 0"}},
		{"fewer data in the chunk than the results say", func(s *script) {
			s.begins()
			chunk := segments(5, 100)
			s.readCall(2, 100, chunk)
			s.write(server, chunk[0], make([]byte, 90))
			s.readReply(2, 100, 0, cut(chunk, 90))
		}, []string{"returned 1 at 7/5 of 1: NFS 3 READ: its results have 100 octets of data, and 90 in chunks"}},
		{"a Reply chunk of nothing", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), null(2))
			r := reply1(server, 2, 64)
			r.HasReply, r.Reply = true, segments(5, 100)
			s.send(server, r, replyOf(2))
		}, []string{"returned 1 at 6/5 of 1: NFS 3 NULL: the Reply has a Reply chunk, and the Call has none"}},
		{"an STag of another Call", func(s *script) {
			s.begins()
			s.readCall(2, 100, segments(5, 100))
			h := reply1(server, 2, 64)
			h.Writes = []codec.Chunk{cut(segments(5, 100), 0)}
			s.sendInvalidate(server, 6, h, replyOf(2, readResults(0, 0)))
		}, []string{"invalidation 1 at 6/5 of 1: STag 0x6, which its Call does not have"}},
		{"invalidation that the client does not take", func(s *script) {
			s.connect(codec.Private{SendSize: 4096, ReceiveSize: 4096}.Append(nil), private)
			s.readCall(2, 100, segments(5, 100))
			h := reply1(server, 2, 64)
			h.Writes = []codec.Chunk{cut(segments(5, 100), 0)}
			s.sendInvalidate(server, 5, h, replyOf(2, readResults(0, 0)))
		}, []string{"invalidation 1 at 4/3 of 1: STag 0x5, and its peer has not said that it takes that"}},
		{"invalidation that a Call of version 2 does not allow", func(s *script) {
			s.begins2()
			h := v2(2, 1, 0)
			h.Writes, h.InvHandle = []codec.Chunk{segments(5, 100)}, 5
			s.send(client, h, callOf(2, nfs, 3, 6, readArgs(100)))
			r := v2(2, 1, codec.FlagResponse)
			r.Writes = []codec.Chunk{cut(segments(5, 100), 0)}
			s.sendInvalidate(server, 7, r, replyOf(2, readResults(0, 0)))
		}, []string{"invalidation 1 at 6/5 of 1: STag 0x7, and the Call allows 0x5"}},
		{"back to version 1 on the same connection", func(s *script) {
			s.connect(private, private)
			s.send(client, properties(900, 64), nil)
			s.send(server, codec.Header{XID: 900, Version: 1, Credit: 64, Type: codec.TypeError, Report: codec.Report{Code: codec.CodeVers, Refused: 2, Low: 1, High: 1}}, nil)
			s.send(client, v1(client, 1), null(1))
			s.send(server, reply1(server, 1, 64), replyOf(1))
			s.gone()
		}, []string{"fall-back 1 at 5/3 of 0: the same connection", "ERR_VERS 1 at 4/0 of 1"}},
		{"back to version 1 on a new connection", func(s *script) {
			s.connect(private, private)
			s.send(client, properties(900, 64), nil)
			s.gone()
			s.begins()
		}, []string{"fall-back 1 at 6/3 of 0: a new connection"}},
		{"a Call again on a new connection", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 12))
			s.gone()
			s.connect(private, private)
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 12))
			s.send(server, reply1(server, 2, 64), replyOf(2))
			s.gone()
		}, []string{"again 1 at 8/5 of 0: NFS 3 REMOVE"}},
		{"another Call with that XID", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 12))
			s.gone()
			s.connect(private, private)
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 13))
		}, nil},
		{"the XID of one that waits", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), null(2))
			s.send(client, v1(client, 2), null(2))
			s.send(server, reply1(server, 2, 64), replyOf(2))
			s.gone()
		}, []string{"twice 1 at 6/5 of 0: NFS 3 NULL"}},
		{"no Reply at the end", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), callOf(2, nfs, 3, 21))
			s.send(client, v1(client, 3), null(3))
			s.gone()
		}, []string{"unanswered 2 at 5/0 of 0: NFS 3 COMMIT"}},
		{"no Reply in a capture that lacks something", func(s *script) {
			s.begins()
			s.send(client, v1(client, 2), null(2))
			hole(s, &iwarp.Event{Kind: iwarp.Missing, Way: server, N: 1})
			s.gone()
		}, nil},
		{"a Reply without a Call", func(s *script) {
			s.begins()
			s.send(server, reply1(server, 1, 64), replyOf(1))
			s.gone()
		}, []string{"unasked 1 at 5/0 of 1"}},
		{"a Reply without its Call in the capture", func(s *script) {
			s.begins()
			hole(s, &iwarp.Event{Kind: iwarp.Missing, Way: client, N: 1})
			s.send(server, reply1(server, 2, 64), replyOf(2))
			s.gone()
		}, nil},
		{"a Reply before its Call, which was read late", func(s *script) {
			s.begins()
			s.record++
			s.send(server, reply1(server, 2, 64), replyOf(2))
			s.record -= 2
			late := v1(client, 2)
			s.record++
			s.event(&iwarp.Event{Kind: iwarp.Frame, Way: client, Opcode: 3, Fits: true, Header: sendLast, Length: 68, Leading: 68, Payload: append(late.Append(nil), null(2)...), Segments: 1, Started: true, Message: 68, Late: "it waited"})
			s.gone()
		}, nil},
		{"only one direction is in the capture", func(s *script) {
			s.connect(private)
			s.send(client, v1(client, 2), null(2))
			s.gone()
		}, nil},
		{"only the other direction is in the capture", func(s *script) {
			s.connect()
			s.send(server, reply1(server, 2, 64), replyOf(2))
			s.gone()
		}, nil},
		{"a snap length within the header, the RPC message and its arguments", func(s *script) {
			s.begins()
			call := callOf(2, nfs, 3, 6, readArgs(100))
			for n := 1; n < 28+len(call); n++ {
				s.cut(client, n, v1(client, 2), call)
				s.cut(server, min(n, 28+24), reply1(server, 2, 64), replyOf(2))
				if k := s.last.Call; n >= 28+8 && (k == nil || k.Known != (n >= 28+24)) || n == 27 && k != nil {
					s.t.Errorf("%d octets: %v, %+v", n, s.last.Kind, k)
				}
			}
			s.gone()
		}, nil},
		{"ERR_CHUNK", func(s *script) {
			s.begins()
			s.readCall(2, 100, segments(5, 100))
			s.send(server, codec.Header{XID: 2, Version: 1, Credit: 64, Type: codec.TypeError, Report: codec.Report{Code: codec.CodeChunk}}, nil)
			s.gone()
		}, []string{"ERR_CHUNK 1 at 6/5 of 1"}},
		{"errors of version 2", func(s *script) {
			s.begins2()
			for i, code := range []codec.ErrorCode{2, 3, 4, 5, 6, 7, 8, 9, 10, 100} {
				xid := uint32(2 + i)
				s.send(client, v2(xid, 1, 0), null(xid))
				e := v2(xid, 1, codec.FlagResponse)
				e.Type, e.Report.Code = codec.TypeError, code
				s.send(server, e, nil)
			}
			s.gone()
		}, []string{"BAD_XDR 1 at 6/5 of 1", "BAD_PROPVAL", "INVAL_HTYPE", "INVAL_CONT", "READ_CHUNKS", "WRITE_CHUNKS", "SEGMENTS", "WRITE_RESOURCE", "REPLY_RESOURCE", "SYSTEM"}},
		{"the reverse direction", func(s *script) {
			s.begins()
			s.send(server, v1(server, 1), callOf(1, 0x40000000, 1, 1))
			s.send(client, reply1(client, 1, 16), replyOf(1))
			s.gone()
			if s.last.Call == nil || !s.last.Reverse || s.last.Call.Name() != "NFS callback 1 CB_COMPOUND" {
				s.t.Errorf("%+v", s.last)
			}
		}, []string{"reverse 1 at 5/0 of 1: NFS callback 1 CB_COMPOUND"}},
		{"a continued Call", func(s *script) {
			s.begins2()
			whole := append(callOf(2, nfs, 3, 9), make([]byte, 5000)...)
			s.send(client, v2(2, 1, codec.FlagMore), whole[:21])
			s.send(client, v2(2, 1, codec.FlagMore), whole[21:3000])
			s.send(client, v2(2, 1, 0), whole[3000:])
			s.send(server, v2(2, 3, codec.FlagResponse), replyOf(2))
			s.gone()
			if s.last.Call == nil || s.last.Call.Name() != "NFS 3 MKDIR" || s.last.Call.Inline != uint64(len(whole)) {
				s.t.Errorf("%+v", s.last.Call)
			}
		}, nil},
		{"a reverse Call between the parts of a Reply", func(s *script) {
			s.begins2()
			s.send(client, v2(2, 1, 0), callOf(2, nfs, 3, 16))
			reply, call := append(replyOf(2), make([]byte, 2000)...), append(callOf(9, 0x40000000, 1, 1), make([]byte, 2000)...)
			s.send(server, v2(2, 1, codec.FlagMore|codec.FlagResponse), reply[:900])
			s.send(server, v2(9, 1, codec.FlagMore), call[:900])
			s.send(server, v2(2, 1, codec.FlagResponse), reply[900:])
			s.send(server, v2(9, 1, 0), call[900:])
			s.send(client, v2(9, 1, codec.FlagResponse), replyOf(9))
			s.gone()
			if s.last.Call == nil || s.last.Call.Name() != "NFS callback 1 CB_COMPOUND" || s.last.Call.Inline != uint64(len(call)) {
				s.t.Errorf("%+v", s.last.Call)
			}
		}, []string{"reverse 1 at 9/0 of 1: NFS callback 1 CB_COMPOUND"}},
		{"parts that are interleaved", func(s *script) {
			s.begins2()
			s.send(client, v2(2, 1, codec.FlagMore), null(2)[:20])
			s.send(client, v2(3, 1, 0), null(3))
		}, []string{"malformed 1 at 6/0 of 0: the parts of another message are not complete"}},
		{"a Call at Position 0 and a Reply in a Reply chunk", func(s *script) {
			s.begins()
			call, reply := append(callOf(2, nfs, 3, 10), make([]byte, 4000)...), append(replyOf(2), make([]byte, 2000)...)
			h := v1(client, 2)
			h.Type = codec.TypeNoMsg
			h.Reads = []codec.ReadChunk{{Segments: segments(5, 30, uint32(len(call)-30))}}
			h.HasReply, h.Reply = true, segments(7, 10, 4000)
			s.send(client, h, nil)
			s.fetch(server, h.Reads[0].Segments[0], call[:30])
			s.fetch(server, h.Reads[0].Segments[1], call[30:])
			s.write(server, h.Reply[0], reply[:10])
			s.write(server, h.Reply[1], reply[10:])
			r := reply1(server, 2, 64)
			r.Type, r.HasReply, r.Reply = codec.TypeNoMsg, true, cut(h.Reply, 10, uint32(len(reply)-10))
			s.send(server, r, nil)
			if k := s.last.Call; k == nil || k.Name() != "NFS 3 SYMLINK" || !s.last.Status.Success() || k.Placed != uint64(len(reply)) || k.Fetched != uint64(len(call)) {
				s.t.Errorf("%+v %v", k, s.last.Status.String())
			}
		}, []string{"several STags"}},
		{"something else", func(s *script) {
			s.connect(nil, nil)
			for range 40 {
				s.frames(client, 3, sendHeader, bytes.Repeat([]byte{1}, 100), nil)
			}
		}, []string{"no RPC-over-RDMA"}},
		{"no private data, and the capture begins late", func(s *script) {
			s.connect()
			s.conn.Known = false
			s.record++
			s.event(&iwarp.Event{Kind: iwarp.Begins})
			s.send(server, reply1(server, 1, 64), replyOf(1))
			s.send(client, v1(client, 2), null(2))
			s.gone()
			if !s.seen.Known || s.seen.Client != client {
				s.t.Errorf("%+v", s.seen)
			}
		}, nil},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := newScript(t)
			c.run(s)
			got := s.found()
			ok := len(got) == len(c.want)
			for i := range min(len(got), len(c.want)) {
				ok = ok && strings.HasPrefix(got[i], c.want[i])
			}
			if !ok {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestStatus checks how the ways in which a server answers are read (ONC-002).
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		words []uint32
		want  string
	}{
		{[]uint32{0, 0, 0, 0}, "success"},
		{[]uint32{0, 0, 0, 1}, "PROG_UNAVAIL"},
		{[]uint32{0, 0, 0, 2, 3, 4}, "PROG_MISMATCH: versions 3 to 4"},
		{[]uint32{0, 0, 0, 3}, "PROC_UNAVAIL"},
		{[]uint32{0, 0, 0, 4}, "GARBAGE_ARGS"},
		{[]uint32{0, 0, 0, 5}, "SYSTEM_ERR"},
		{[]uint32{0, 0, 0, 6}, "accept state 6"},
		{[]uint32{1, 0, 2, 2}, "RPC_MISMATCH: versions 2 to 2"},
		{[]uint32{1, 1, 13}, "AUTH_ERROR 13"},
		{[]uint32{1, 7, 0}, "denied 7"},
		{[]uint32{0, 0}, "status not known"},
		{[]uint32{9}, "status not known"},
		{[]uint32{0, 0, 0, 0, 70}, "NFS3ERR_STALE"},
		{[]uint32{0, 0, 0, 0, 10008}, "NFS3ERR_JUKEBOX"},
		{[]uint32{0, 0, 0, 0, 10009}, "status 10009"},
	} {
		s := newScript(t)
		s.begins()
		s.send(client, v1(client, 2), callOf(2, nfs, 3, 1))
		b := replyOf(2)[:8]
		for _, w := range c.words {
			b = append(b, byte(w>>24), byte(w>>16), byte(w>>8), byte(w))
		}
		s.send(server, reply1(server, 2, 64), b)
		if got := s.last.Status.String(); got != c.want || s.last.Kind != rpcrdma.ReplyKind {
			t.Errorf("%v: %q, want %q", c.words, got, c.want)
		}
	}
}

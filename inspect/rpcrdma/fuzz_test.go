package rpcrdma_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// FuzzDecoder checks that whatever passes on connections is followed to an end: each Call has one answer at most, and what is counted adds up. The input is a
// program of messages on a few connections, with XIDs and STags that meet, of headers that are real, cut and changed.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 1, 0, 0, 2, 2, 5, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{8, 3, 1, 3, 4, 2, 9, 200, 7, 3, 1, 4, 6, 6, 6, 5, 0, 1, 5, 1, 1, 7, 7, 7})
	f.Fuzz(func(t *testing.T, program []byte) {
		s := newScript(t)
		at := 0
		next := func() byte {
			if at >= len(program) {
				return 0
			}
			at++
			return program[at-1]
		}
		answered := map[*rpcrdma.Call]bool{}
		s.begins()
		before := len(s.kinds)
		for at < len(program) && at < 4<<10 {
			do, x := next(), next()
			w, xid := tcp.Way(do>>7), uint32(x%8)
			chunk := codec.Chunk{{Handle: uint32(x >> 5), Length: uint32(next()) << (x % 5), Offset: uint64(x) << 6}}
			h := codec.Header{XID: xid, Version: 1 + uint32(do>>6&1), Credit: uint32(next()), Type: codec.TypeMsg}
			if h.Version == 2 {
				h.Flags = codec.Flags(x>>3) & 7
			}
			b := null(xid)
			switch do >> 3 & 7 {
			case 1:
				h.Writes = []codec.Chunk{chunk}
				b = callOf(xid, nfs, 3, 6, readArgs(int(x)))
			case 2:
				h.HasReply, h.Reply, h.Type = true, chunk, codec.TypeNoMsg
				b = nil
			case 3:
				h.Reads, h.Type = []codec.ReadChunk{{Segments: chunk}}, codec.TypeNoMsg
				b = nil
			case 4:
				b = replyOf(xid, readResults(int(x), int(x)&^3))
			case 5:
				b = replyOf(xid)
				h.Writes = []codec.Chunk{chunk}
			case 6:
				h.Type, b = codec.TypeError, nil
				if h.Report.Code = codec.ErrorCode(1 + x%10); h.Version == 1 {
					h.Report.Code = codec.ErrorCode(1 + x%2)
				}
			case 7:
				if b = nil; h.Version == 2 {
					h.Type = codec.TypeConnProp
				}
			}
			switch do % 8 {
			case 1:
				s.write(w, chunk[0], make([]byte, chunk[0].Length))
			case 2:
				s.fetch(w, chunk[0], b)
			case 3:
				s.event(&iwarp.Event{Kind: iwarp.Kind(2 + x%8), Way: w, N: 1})
			case 4:
				s.gone()
				s.connect(private, private)
			case 5:
				m := append(h.Append(nil), b...)
				m = m[:min(len(m), int(x))]
				if len(m) > 0 {
					m[int(next())%len(m)] ^= do
				}
				s.frames(w, 3, sendHeader, m, nil)
			default:
				s.sendInvalidate(w, chunk[0].Handle, h, b)
			}
			if len(s.kinds) == before {
				continue
			}
			before = len(s.kinds)
			m := &s.last
			if answer := m.Kind == rpcrdma.ReplyKind || m.Kind == rpcrdma.Error; answer && m.Call != nil {
				if answered[m.Call] {
					t.Fatalf("%v: %+v is answered twice", m.Kind, m.Call)
				}
				answered[m.Call] = true
			}
			if (m.Fault != nil) && m.Kind != rpcrdma.Unread || m.Call != nil && m.Call.Name() == "" || m.Status.String() == "" {
				t.Fatalf("%+v", m)
			}
		}
		c := s.seen
		s.gone()
		if c == nil {
			return
		}
		for i := range c.Sides {
			if s := &c.Sides[i]; s.Calls > s.Messages || s.InUse > s.Calls || c.Waiting(tcp.Way(i)) != 0 {
				t.Fatalf("%+v", s)
			}
		}
		for w, f := range c.Found {
			if (f.N > 0) != (f.Record > 0) {
				t.Fatalf("found %d: %+v", w, f)
			}
		}
	})
}

// FuzzCompound checks that whatever stands for the arguments of a COMPOUND or CB_COMPOUND, with a part of it in a chunk or not, and for its results, is read to an end: no operation is
// named that is not counted, and there are words for all of it.
func FuzzCompound(f *testing.F) {
	f.Add(false, uint16(0), compoundOf(2, 3, 53, make([]byte, 16), 1, 2, 3, 0, 22, "handle", 25, make([]byte, 24), 100)[40:])
	f.Add(false, uint16(76), compoundOf(2, 2, 38, make([]byte, 24), 2, 5001, 9, 1, 1)[40:])
	f.Add(true, uint16(0), []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, reverse bool, position uint16, b []byte) {
		s := newScript(t)
		s.begins()
		w, program, version := client, uint32(nfs), uint32(4)
		if reverse {
			w, program, version = server, 0x40000000, 1
		}
		h := v1(w, 2)
		if position > 0 {
			h.Reads = []codec.ReadChunk{{Position: uint32(position) &^ 3, Segments: segments(5, 5001)}}
		}
		s.send(w, h, append(callOf(2, program, version, 1), b...))
		m := s.last
		if m.Call == nil {
			return
		}
		if k := m.Call.Compound; k != nil && (len(k.Operations) > min(16, k.Count) || k.String() == "" || k.Count == 0) {
			t.Fatalf("%+v", k)
		}
		s.send(1-w, reply1(1-w, 2, 64), append(replyOf(2), b...))
		if m.Call.Name() == "" || s.last.Status.String() == "" {
			t.Fatalf("%+v", s.last)
		}
	})
}

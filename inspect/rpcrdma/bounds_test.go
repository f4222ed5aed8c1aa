package rpcrdma_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/inspect/iwarp"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// TestCallsAreBounded checks that Calls without an end, with as many segments as a header has, all of one STag, and Replies without Calls, cost neither
// memory nor time without bound, and that nothing false is found where Calls are not followed any more.
func TestCallsAreBounded(t *testing.T) {
	s := newScript(t)
	before, begin := heap(), time.Now()
	for conn := range 20 {
		s.begins()
		for i := range 2000 {
			xid := uint32(100 + i)
			h := v1(client, xid)
			if i%10 == 0 {
				h.HasReply, h.Reply = true, make(codec.Chunk, codec.MaxSegments)
				for i := range h.Reply {
					h.Reply[i] = codec.Segment{Handle: 7, Length: 4, Offset: uint64(xid)<<32 | uint64(4*i)}
				}
			}
			s.send(client, h, null(xid))
			s.send(server, reply1(server, 1<<31+xid, 64), replyOf(1<<31+xid))
		}
		last := s.seen
		if conn < 18 {
			continue
		}
		s.gone()
		if f := last.Found[12]; f.N > 0 {
			t.Errorf("Calls that are not followed, and Replies without a Call: %+v", f)
		}
	}
	if grown, took := heap()-before, time.Since(begin); grown > 64<<20 || took > time.Minute {
		t.Errorf("%d bytes after %v", grown, took)
	}
	runtime.KeepAlive(s)
}

// TestPairsAreBounded checks that clients without number, which leave Calls without number, are not all remembered.
func TestPairsAreBounded(t *testing.T) {
	s := newScript(t)
	again := func(host int) int {
		n := 0
		for round := range 2 {
			s.connect(private, private)
			s.conn.TCP.Ends[0] = netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("10.1.%d.%d", host/256, host%256)), 1000)
			for xid := range uint32(3) {
				s.send(client, v1(client, xid), null(xid))
			}
			n = s.seen.Found[9].N
			if s.event(&iwarp.Event{Kind: iwarp.Gone}); round == 0 && n > 0 {
				t.Errorf("%d Calls again that were not made before", n)
			}
		}
		return n
	}
	remembered := 0
	for host := range 600 {
		switch n := again(host); n {
		case 3:
			remembered++
		case 0:
		default:
			t.Fatalf("host %d: %d Calls again", host, n)
		}
	}
	if remembered != 256 {
		t.Errorf("%d pairs are remembered", remembered)
	}
}

// TestMovedIsBounded checks that whole Calls in chunks that are not answered take a bounded memory, however many and long they are, and that the beginning of each is known
// all the same.
func TestMovedIsBounded(t *testing.T) {
	s := newScript(t)
	s.connect(private, private)
	before := heap()
	const calls = 6000
	for i := range uint32(calls) {
		place := codec.Segment{Handle: i + 1, Length: 1 << 20, Offset: 0x1000}
		h := v1(client, i)
		h.Type, h.Reads = codec.TypeNoMsg, []codec.ReadChunk{{Segments: codec.Chunk{place}}}
		s.send(client, h, nil)
		s.fetch(server, place, append(callOf(i, nfs, 3, 3, dirName("group")), make([]byte, 8<<10)...))
	}
	if grown := heap() - before; grown > 50<<20 {
		t.Errorf("%d Calls take %d bytes", calls, grown)
	}
	s.send(server, reply1(server, calls-1, 64), replyOf(calls-1, numbers(2, 0)))
	if got := said(s.last.Arguments()); got != "dir 3f2a, name group" {
		t.Error(got)
	}
}

// heap returns how much of it is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

package rpcrdma

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// stackPool is a pool that allocates nothing once it has been used.
type stackPool struct{ free []*Buffer }

func (p *stackPool) Get(n int) *Buffer {
	if len(p.free) == 0 {
		return &Buffer{B: make([]byte, n, max(n, 1<<16))}
	}
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	b.B = b.B[:n]
	return b
}

func (p *stackPool) Put(b *Buffer) { p.free = append(p.free, b) }

// regionMemory is memory whose registering costs nothing.
type regionMemory struct{ region any }

func (r *regionMemory) Register(l *Lease, b []byte, write bool, base uint64) error {
	l.Region = r.region
	l.Segment = Segment{7, uint32(len(b)), base}
	return nil
}

func (r *regionMemory) Withdraw(*Lease) {}

// TestCallsAllocateNothing checks that a Call, and its Reply, allocate nothing in the machine: inline, with chunks, and in parts.
func TestCallsAllocateNothing(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		m := s.m
		pool := &stackPool{}
		m.pool, m.memory = pool, &regionMemory{region: new(int)}
		head, long := rpcCall(7, 100), rpcCall(7, 9000)
		data, into := make([]byte, 1<<15), [][]byte{make([]byte, 1<<15)}
		for name, c := range map[string]*Call{
			"inline":       {Head: head, Items: []xdr.Item{{At: 100, Data: data[:50]}}},
			"Read chunk":   {Head: head, Items: []xdr.Item{{At: 100, Data: data}}},
			"Write chunk":  {Head: head, Into: into, MaxReply: 100},
			"Reply chunk":  {Head: head, MaxReply: 50000},
			"long message": {Head: long},
		} {
			reply := s.reply(7)
			reply.Credit = 8
			if version == Version2 {
				reply.Credit = Credit2(8, 8)
			}
			if c.Into != nil {
				reply.Writes = []Chunk{{{7, 0, 7 << 32}}}
			}
			message := append(reply.Append(nil), rpcReply(7, 40)...)
			refresh := (&Header{Version: 2, Type: TypeNoMsg, Credit: Credit2(8, 8)}).Append(nil)
			returned, calls := 0, 0
			var a Action
			run := func() {
				for m.Next(64, &a) {
					switch a.Kind {
					case ActPost:
						m.Completed(s.now, a.Serial)
					case ActReturn:
						if returned++; a.Call.Err != nil {
							t.Fatal(a.Call.Err)
						}
						pool.Put(a.Call.Reply)
					}
				}
			}
			receive := func(message []byte) {
				b := pool.Get(4096)
				m.Received(s.now, b, copy(b.B, message), false, 0)
				run()
			}
			once := func() {
				calls++
				if err := m.Call(s.now, c); err != nil {
					t.Fatal(err)
				}
				run()
				if version == Version2 {
					receive(refresh)
				}
				receive(message)
				m.Tick(s.now)
			}
			for range 100 {
				once()
			}
			if n := testing.AllocsPerRun(200, once); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
			if returned != calls {
				t.Errorf("%s: %d of %d Calls have returned", name, returned, calls)
			}
		}
	})
}

// TestAnswersAllocateNothing checks that a Call of the peer, and its Reply, allocate nothing in the machine: inline, with chunks, and in parts.
func TestAnswersAllocateNothing(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		c := usual()
		c.Side, c.Lowest, c.Highest = Server, version, version
		s := &script{t: t, now: time.Unix(1000, 0), version: version}
		pool := &stackPool{}
		m := New(&c, &regionMemory{}, pool, s.now)
		credit := uint32(8)
		if version == Version2 {
			credit = Credit2(8, 8)
			hello := (&Header{XID: 1, Version: 2, Credit: credit, Type: TypeConnProp}).Append(nil)
			b := pool.Get(4096)
			m.Received(s.now, b, copy(b.B, hello), false, 0)
		}
		head := rpcCall(7, 100)
		binary.BigEndian.PutUint32(head[96:], 20000)
		reply := rpcReply(7, 100)
		item := []xdr.Item{{At: 100, Data: make([]byte, 20000)}}
		answered := 0
		done := func() { answered++ }
		chunk := func(n uint32) Chunk { return Chunk{{7, n, 0}, {8, n, 0}} }
		for name, x := range map[string]struct {
			h      Header
			inline []byte
			answer Answer
		}{
			"inline":      {Header{}, head, Answer{Head: reply}},
			"Read chunk":  {Header{Reads: []ReadChunk{{100, chunk(10000)}}}, head, Answer{Head: reply}},
			"Position 0":  {Header{Type: TypeNoMsg, Reads: []ReadChunk{{0, Chunk{{7, 100, 0}}}, {100, chunk(10000)}}}, nil, Answer{Head: reply}},
			"Write chunk": {Header{Writes: []Chunk{chunk(15000)}}, head, Answer{Head: reply, Items: item, Done: done}},
			"Reply chunk": {Header{HasReply: true, Reply: chunk(15000)}, head, Answer{Head: reply, Items: item, Done: done}},
		} {
			h := x.h
			h.XID, h.Version, h.Credit = 7, version, credit
			message := append(h.Append(nil), x.inline...)
			var a Action
			sent := 0
			run := func() {
				for m.Next(64, &a) {
					switch a.Kind {
					case ActPost:
						if a.Op == OpRead && len(a.Data) == 100 {
							copy(a.Data, head)
						}
						if a.Op == OpSend {
							sent++
						}
						m.Completed(s.now, a.Serial)
					case ActPlace:
						m.Place(s.now, a.In, nil)
					case ActDeliver:
						m.Reply(s.now, a.In, x.answer)
					case ActAnswered:
						if a.Done != nil {
							a.Done()
						}
					case ActClose:
						t.Fatal(a.Err)
					}
				}
			}
			run()
			sent = 0
			allocated := testing.AllocsPerRun(50, func() {
				b := pool.Get(4096)
				m.Received(s.now, b, copy(b.B, message), false, 0)
				run()
			})
			if allocated > 0 || sent < 51 {
				t.Errorf("%s: %v allocations, %d Sends", name, allocated, sent)
			}
		}
		if answered == 0 {
			t.Error("no answer is given back")
		}
	})
}

package rpcrdma

import (
	"testing"

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

package rpcrdma

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// A foreign peer is a raw end toward a machine: the test writes headers itself, with whatever layout of chunks there can be.
type foreign struct {
	t       testing.TB
	rng     *rand.Rand
	pair    *fakePair
	raw     *fakeEnd
	end     *fakeEnd // with the machine
	version uint32

	replies []foreignReply
	placing []*Incoming
	work    []*Incoming
	done    int   // answers given back
	closed  error // the reason of ActClose
	places  func(in *Incoming) [][]byte
	wants   map[uint32][]byte // whole messages, by XID
}

// foreignReply is what came back.
type foreignReply struct {
	h           Header
	payload     []byte
	invalidated bool
	stag        uint32
}

// newForeign connects a raw end to a machine. A server of version 2 has its properties heard and said.
func newForeign(t testing.TB, seed uint64, version uint32, change func(c *Config)) *foreign {
	t.Helper()
	t.Logf("seed %d", seed)
	f := &foreign{t: t, rng: rand.New(rand.NewPCG(seed, uint64(version))), version: version, wants: map[uint32][]byte{}}
	c := &Config{
		Side: Server, Lowest: Version1, Highest: Version2, Window: 16, Sends: 64, SendSize: 4096, ReceiveSize: 4096, ORD: 2,
		Local: Private{SendSize: 4096, ReceiveSize: 4096}, Peer: Private{SendSize: 4096, ReceiveSize: 4096, Invalidate: true},
		MaxCall: 1 << 20, MaxReply: 1 << 20, First: 10 * time.Second, PartTime: 10 * time.Second, GiveUp: time.Minute,
	}
	if change != nil {
		change(c)
	}
	raw := &Config{ReceiveSize: 4096, Sends: 64, ORD: 16}
	at := 1
	if c.Side == Client {
		at = 0
		f.pair = newFakePair(f.rng, c, raw, t.Fatalf)
	} else {
		f.pair = newFakePair(f.rng, raw, c, t.Fatalf)
	}
	f.pair.passing = true
	f.end, f.raw = f.pair.ends[at], f.pair.ends[1-at]
	f.end.program = f
	f.raw.raw = func(b []byte, invalidated bool, stag uint32) {
		r := foreignReply{invalidated: invalidated, stag: stag}
		d := NewDecoder(DefaultLimits())
		payload, err := d.Decode(bytes.Clone(b), &r.h)
		if err != nil {
			t.Fatalf("the machine sends what cannot be decoded: %v", err)
		}
		r.payload = payload
		f.replies = append(f.replies, r)
	}
	f.end.drive()
	if version == Version2 {
		f.send(&Header{XID: 7, Version: Version2, Credit: Credit2(60, 60), Type: TypeConnProp}, nil)
		f.run()
		f.take(TypeConnProp)
	}
	return f
}

func (f *foreign) act(e *fakeEnd, a *Action) {
	switch a.Kind {
	case ActPlace:
		f.placing = append(f.placing, a.In)
		if f.places != nil {
			e.m.Place(f.pair.now, a.In, f.places(a.In))
		}
	case ActDeliver:
		if a.In.TooLong > 0 {
			e.m.Fail(f.pair.now, a.In, Report{Code: CodeSystem})
			return
		}
		f.work = append(f.work, a.In)
		whole := insert(a.In.Message, a.In.Items, all)
		if want := f.wants[a.In.XID]; want != nil && !bytes.Equal(whole, want) {
			f.t.Errorf("Call %#x arrives as %d octets %s, want %d", a.In.XID, len(whole), differ(whole, want), len(want))
		}
	case ActAnswered:
		f.done++
		if a.Done != nil {
			a.Done()
		}
	case ActClose:
		f.closed = a.Err
	}
}

// send has the raw end send a message.
func (f *foreign) send(h *Header, payload []byte) {
	if h.Version == Version2 && h.Credit == 0 {
		h.Credit = Credit2(60, 2)
	}
	f.bytes(append(h.Append(nil), payload...))
}

func (f *foreign) bytes(b []byte) {
	f.raw.wire = append(f.raw.wire, fakePacket{op: OpSend, data: b})
}

// run lets all happen that takes no time.
func (f *foreign) run() {
	for f.pair.step() {
	}
	f.end.drive()
	for f.pair.step() {
	}
	if f.pair.ended != "" {
		f.t.Helper()
		f.t.Fatalf("the stream ended: %s", f.pair.ended)
	}
}

// take returns the next message that came, of a type. Refreshes are passed over.
func (f *foreign) take(t Type) foreignReply {
	f.t.Helper()
	for len(f.replies) > 0 {
		r := f.replies[0]
		f.replies = f.replies[1:]
		if r.h.IsRefresh() {
			continue
		}
		if r.h.Type != t {
			f.t.Fatalf("%+v comes, want a %v", r.h, t)
		}
		return r
	}
	f.t.Fatalf("nothing comes, want a %v", t)
	return foreignReply{}
}

// silent reports whether nothing came.
func (f *foreign) silent() bool {
	for _, r := range f.replies {
		if !r.h.IsRefresh() {
			return false
		}
	}
	return true
}

// header begins one of a Call.
func (f *foreign) header(xid uint32, t Type) *Header {
	return &Header{XID: xid, Version: f.version, Credit: map[uint32]uint32{Version1: 32, Version2: Credit2(60, 2)}[f.version], Type: t}
}

// lend makes a chunk of memory: cuts says how long its segments are, at least.
func (f *foreign) lend(b []byte, write bool, pieces int) (c Chunk) {
	for i := range pieces {
		n := len(b)
		if i < pieces-1 {
			n = f.rng.IntN(len(b) + 1)
		}
		var l Lease
		if err := f.raw.Register(&l, b[:n:n], write, f.rng.Uint64()>>1); err != nil {
			f.t.Fatal(err)
		}
		c = append(c, l.Segment)
		b = b[n:]
	}
	return c
}

// noise is an RPC message of n octets or more with items of these lengths.
func (f *foreign) noise(xid, kind uint32, n int, items ...int) rpcMessage {
	m := (&world{rng: f.rng}).draw(xid, kind, n, items)
	if kind == msgCall {
		f.wants[xid] = m.whole
	}
	return m
}

// reads makes the Read list of a message's items, each in so many pieces. Those that keep says are left inline.
func (f *foreign) reads(m rpcMessage, pieces, pad int, keep func(i int) bool) (list []ReadChunk) {
	for i := range m.items {
		if keep(i) {
			continue
		}
		data := m.items[i].Data
		if pad > 0 {
			data = appendPad(bytes.Clone(data), len(data))
		}
		list = append(list, ReadChunk{uint32(xdr.Position(m.items, i)), f.lend(data, false, pieces)})
	}
	return list
}

// none keeps no item.
func none(int) bool { return false }

// refusedWith checks that an ERROR came, and gives what it says. Version 1 has ERR_CHUNK for all codes.
func (f *foreign) refusedWith(xid uint32, want Report) {
	f.t.Helper()
	f.run()
	r := f.take(TypeError)
	if f.version == Version1 {
		want = Report{Code: CodeChunk}
	}
	if r.h.XID != xid || r.h.Report != want || r.h.Version != f.version || r.h.Credit == 0 {
		f.t.Fatalf("the ERROR is %+v, want %+v of %#x", r.h, want, xid)
	}
	if !f.silent() {
		f.t.Fatalf("%d messages follow the ERROR", len(f.replies))
	}
	if f.closed != nil {
		f.t.Fatalf("the connection ends: %v", f.closed)
	}
}

// reply answers the only Call in work.
func (f *foreign) reply(m rpcMessage) *Incoming {
	f.t.Helper()
	f.run()
	if len(f.work) != 1 {
		f.t.Fatalf("%d Calls are in work, want 1 (closed: %v; %d messages came)", len(f.work), f.closed, len(f.replies))
	}
	in := f.work[0]
	f.work = nil
	f.end.m.Reply(f.pair.now, in, Answer{Head: m.head, Items: m.items, Done: func() {}})
	f.end.drive()
	f.run()
	return in
}

// noReads checks that the machine has not read anything.
func (f *foreign) noReads() {
	f.t.Helper()
	if f.end.reads > 0 {
		f.t.Fatalf("%d Reads are posted", f.end.reads)
	}
}

// placeAll has items go to memory of the pool.
func placeAll(*Incoming) [][]byte { return nil }

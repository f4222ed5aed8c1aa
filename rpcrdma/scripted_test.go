package rpcrdma

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"
)

// fakeMemory is memory that the peer may use, by its tag. Access to what is not lent fails the test.
type fakeMemory struct {
	t      testing.TB
	lent   map[uint32]*fakeRegion
	next   uint32
	refuse error             // of the next Register but some
	before int               // how many there are before that one
	last   func(*fakeRegion) // what the peer does until memory is withdrawn
}

type fakeRegion struct {
	b      []byte
	write  bool
	base   uint64
	handle uint32
}

func (f *fakeMemory) Register(l *Lease, b []byte, write bool, base uint64) error {
	if f.before--; f.refuse != nil && f.before < 0 {
		err := f.refuse
		f.refuse = nil
		return err
	}
	f.next += 0x101
	r, _ := l.Region.(*fakeRegion)
	if r == nil {
		r = new(fakeRegion)
		l.Region = r
	}
	*r = fakeRegion{b, write, base + 0x1000, f.next}
	f.lent[r.handle] = r
	l.Segment = Segment{r.handle, uint32(len(b)), r.base}
	return nil
}

func (f *fakeMemory) Withdraw(l *Lease) {
	r := f.lent[l.Handle]
	if r == nil || r != l.Region {
		f.t.Errorf("memory %#x is withdrawn and was not lent", l.Handle)
	}
	if f.last != nil && r != nil {
		f.last(r)
	}
	delete(f.lent, l.Handle)
}

// at returns the memory of a segment, for the peer's access.
func (f *fakeMemory) at(s Segment, write bool) []byte {
	r := f.lent[s.Handle]
	if r == nil || r.write != write || s.Offset < r.base || s.Offset-r.base+uint64(s.Length) > uint64(len(r.b)) {
		f.t.Fatalf("the peer's access to %+v is to nothing that is lent", s)
	}
	return r.b[s.Offset-r.base:][:s.Length]
}

// fakePool is a pool that fills what it gets back, so that what is used afterwards shows.
type fakePool struct {
	t    testing.TB
	out  map[*Buffer]bool
	free []*Buffer
	none int // the next Gets fail
}

func (f *fakePool) Get(n int) *Buffer {
	if f.none > 0 {
		f.none--
		return nil
	}
	for i, b := range f.free {
		if cap(b.B) >= n {
			f.free = slices.Delete(f.free, i, i+1)
			b.B = b.B[:n]
			f.out[b] = true
			return b
		}
	}
	b := &Buffer{B: make([]byte, n)}
	f.out[b] = true
	return b
}

func (f *fakePool) Put(b *Buffer) {
	if !f.out[b] {
		f.t.Error("a buffer is given back that is not out")
	}
	delete(f.out, b)
	b.B = b.B[:cap(b.B)]
	for i := range b.B {
		b.B[i] = 0xdb
	}
	f.free = append(f.free, b)
}

// script is a machine whose peer the test is.
type script struct {
	t        testing.TB
	m        *Machine
	memory   *fakeMemory
	pool     *fakePool
	now      time.Time
	version  uint32
	room     int
	receives int // that are posted
	sent     [][]byte
	posts    []Action
	returned []*Call
	incoming []*Incoming // that are the program's
	closed   error
	credit   uint32 // of what the peer sends
}

// usual is the Config of a client.
func usual() Config {
	p := Private{4096, 4096, true}
	return Config{Side: Client, Lowest: 1, Highest: 1, Window: 8, Sends: 64, SendSize: 4096, ReceiveSize: 4096, Local: p, Peer: p,
		ORD: 4, MaxCall: 1 << 20, MaxReply: 1 << 20, First: 10 * time.Second, PartTime: 10 * time.Second, GiveUp: 30 * time.Second}
}

// begin makes a machine that has said what it says first.
func begin(t testing.TB, c Config) *script {
	s := &script{t: t, now: time.Unix(1000, 0), room: 64, receives: c.Posted(), credit: 8, version: c.Highest}
	s.memory = &fakeMemory{t: t, lent: make(map[uint32]*fakeRegion)}
	s.pool = &fakePool{t: t, out: make(map[*Buffer]bool)}
	s.m = New(&c, s.memory, s.pool, s.now)
	s.run()
	return s
}

// open makes a client of a version, with which Calls go.
func open(t testing.TB, version uint32) *script {
	c := usual()
	c.Highest = version
	s := begin(t, c)
	if version == Version2 {
		s.sent = nil
		s.credit = Credit2(8, 8)
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp}, nil)
		s.credit = Credit2(8, 1)
	}
	return s
}

// run carries out what the machine says. Works complete at once.
func (s *script) run() {
	var a Action
	for s.m.Next(s.room, &a) {
		switch a.Kind {
		case ActPost:
			s.posts = append(s.posts, a)
			if a.Op == OpSend {
				s.sent = append(s.sent, bytes.Clone(a.Data))
			}
			s.m.Completed(s.now, a.Serial)
		case ActReceive:
			s.receives += a.N
		case ActReturn:
			s.returned = append(s.returned, a.Call)
		case ActClose:
			s.closed = a.Err
		case ActPlace, ActDeliver:
			s.incoming = append(s.incoming, a.In)
		}
	}
}

// raw has the machine receive octets.
func (s *script) raw(message []byte, invalidated ...uint32) {
	s.t.Helper()
	if s.receives--; s.receives < 0 {
		s.t.Fatal("a message meets no receive")
	}
	b := s.pool.Get(s.m.cfg.ReceiveSize)
	n := copy(b.B, message)
	var stag uint32
	if len(invalidated) > 0 {
		stag = invalidated[0]
	}
	s.m.Received(s.now, b, n, len(invalidated) > 0, stag)
	s.run()
}

// receive has the machine receive a message.
func (s *script) receive(h Header, payload []byte, invalidated ...uint32) {
	s.t.Helper()
	if h.Version == 0 {
		h.Version = s.version
	}
	if h.Credit == 0 {
		h.Credit = s.credit
	}
	s.raw(append(h.Append(nil), payload...), invalidated...)
}

// message decodes the last message that the machine has sent.
func (s *script) message() (h Header, payload []byte) {
	s.t.Helper()
	if len(s.sent) == 0 {
		s.t.Fatal("nothing was sent")
	}
	payload, err := NewDecoder(DefaultLimits()).Decode(s.sent[len(s.sent)-1], &h)
	if err != nil {
		s.t.Fatalf("the machine has sent what cannot be used: %v", err)
	}
	return h, payload
}

// rpcCall returns a Call of n octets.
func rpcCall(xid uint32, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	binary.BigEndian.PutUint32(b, xid)
	binary.BigEndian.PutUint32(b[4:], msgCall)
	return b
}

// rpcReply returns a Reply of n octets.
func rpcReply(xid uint32, n int) []byte {
	b := rpcCall(xid, n)
	binary.BigEndian.PutUint32(b[4:], msgReply)
	return b
}

// reply is the header of a plain Reply.
func (s *script) reply(xid uint32) Header {
	h := Header{XID: xid, Version: s.version, Type: TypeMsg}
	if s.version == Version2 {
		h.Flags = FlagResponse
	}
	return h
}

// call makes a Call and has it sent as far as it goes.
func (s *script) call(c *Call) *Call {
	s.t.Helper()
	if err := s.m.Call(s.now, c); err != nil {
		s.t.Fatal(err)
	}
	s.run()
	return c
}

// done returns the Call that has returned since the last time.
func (s *script) done() *Call {
	s.t.Helper()
	if len(s.returned) != 1 {
		s.t.Fatalf("%d Calls have returned, want 1", len(s.returned))
	}
	c := s.returned[0]
	s.returned = nil
	return c
}

// clean checks that nothing is lent, and no buffer is out but those of Replies that the program has.
func (s *script) clean(replies int) {
	s.t.Helper()
	if len(s.memory.lent) != 0 || len(s.pool.out) != replies {
		s.t.Errorf("%d pieces of memory are lent, %d buffers out (%d with the program)", len(s.memory.lent), len(s.pool.out), replies)
	}
}

func bothVersions(t *testing.T, f func(t *testing.T, version uint32)) {
	for _, v := range []uint32{Version1, Version2} {
		t.Run(fmt.Sprintf("version %d", v), func(t *testing.T) { f(t, v) })
	}
}

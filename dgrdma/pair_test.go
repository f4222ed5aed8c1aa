package dgrdma

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var addrA, addrB = simnet.Addr(1), simnet.Addr(2)

func udpAddr(s string) transport.Addr { return transport.UDPAddr(netip.MustParseAddrPort(s)) }

func serviceAt(name string, base uint32) frame.Service {
	n, err := frame.ParseServiceName(name)
	if err != nil {
		panic(err)
	}
	return frame.Service{Name: n, Base: base}
}

// pair is two endpoints on a simulated network, connected to each other.
type pair struct {
	t        testing.TB
	net      *simnet.Network
	a, b     *Endpoint
	memA     *Region
	memB     *Region
	toA, toB *Conn

	mu     sync.Mutex
	events []Event
}

type pairConfig struct {
	a, b Config
	link simnet.Link
	size int
}

func newPair(t testing.TB, pc pairConfig) *pair {
	t.Helper()
	p := &pair{t: t, net: simnet.New(1)}
	p.net.Link(addrA, addrB, pc.link)
	p.net.Link(addrB, addrA, pc.link)
	if pc.size == 0 {
		pc.size = 1 << 20
	}
	p.memA, p.memB = p.region(pc.size), p.region(pc.size)
	pc.a.ID, pc.b.ID = 1, 2
	if pc.a.Memory == nil {
		pc.a.Memory = p.memA
	}
	if pc.b.Memory == nil {
		pc.b.Memory = p.memB
	}
	if pc.a.OnEvent == nil {
		pc.a.OnEvent = p.note
	}
	if pc.b.OnEvent == nil {
		pc.b.OnEvent = p.note
	}
	p.a = p.open(addrA, &pc.a)
	p.b = p.open(addrB, &pc.b)
	p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: uint64(pc.size)})
	p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA, Size: uint64(pc.size)})
	return p
}

func (p *pair) note(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
}

// count returns how many events of a kind there were, and with which reason.
func (p *pair) count(k EventKind, r Reason) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Kind == k && e.Reason == r {
			n++
		}
	}
	return n
}

func (p *pair) region(size int) *Region {
	r, err := NewRegion(size)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *pair) open(addr transport.Addr, cfg *Config) *Endpoint {
	p.t.Helper()
	_, measuring := p.t.(*testing.B)
	e, err := New(maybeRecorded(p.t, p.net.Attach(addr, simnet.Config{Poison: !measuring})), cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

func (p *pair) connect(e *Endpoint, peer Peer) *Conn {
	p.t.Helper()
	c, err := e.Connect(peer)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *pair) close() {
	p.a.Close()
	p.b.Close()
	p.net.Close()
}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(31*seed + 7*i + i>>8 + 1)
	}
	return b
}

func write(addr uint32, data []byte, flagAddr, flag uint32) *Transaction {
	return &Transaction{Segments: []Segment{{addr, data}}, Completion: Word(flagAddr, flag)}
}

// fakePeer is a scripted peer: with a session, once it has greeted, or without.
type fakePeer struct {
	known         int // how many services it says it knows
	t             testing.TB
	net           *simnet.Network
	conn          *simnet.Conn
	id, dst       frame.EndpointID
	to            transport.Addr
	local, theirs uint32 // epochs of its session; 0: none
	upTo          uint32 // what it acknowledges in each frame
	check         uint32 // of the WELCOME

	mu   sync.Mutex
	got  []frame.Frame
	raws [][]byte
}

func newStranger(t testing.TB, n *simnet.Network, addr transport.Addr, id, dst frame.EndpointID, to transport.Addr) *fakePeer {
	s := &fakePeer{t: t, net: n, conn: n.Attach(addr, simnet.Config{Headroom: -1}), id: id, to: to, dst: dst}
	go s.listen() // ends with the network
	return s
}

func (s *fakePeer) listen() {
	dst := make([]transport.Datagram, 16)
	for {
		n, err := s.conn.Recv(dst, transport.Forever)
		if err != nil {
			return
		}
		s.mu.Lock()
		for _, d := range dst[:n] {
			b := append([]byte(nil), d.Data...)
			s.raws = append(s.raws, b)
			if frame.IsSession(b) {
				s.got = append(s.got, s.plain(b)...)
				continue
			}
			f, err := frame.Parse(b)
			if err != nil {
				s.t.Error(err)
			}
			s.got = append(s.got, f)
		}
		s.mu.Unlock()
	}
}

// plain returns the frame of a session as frames of v1.07 that say the same: ids are counted from the epochs, and each run of
// acknowledged ids is one of a frame. What those cannot say is in raws.
func (s *fakePeer) plain(b []byte) (all []frame.Frame) {
	f, err := frame.ParseSession(b)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	h := frame.Header{Dst: f.Dst, Src: f.Src, Seq: frame.Seq(f.ID - s.theirs)}
	if n := f.Ack - s.local; s.local != 0 && n > 0 {
		h.AckCount = uint8(min(n, 255))
		h.AckStart = frame.Seq(n - uint32(h.AckCount) + 1)
	}
	out := make([]byte, len(b))
	var w frame.Writer
	w.Init(out)
	for c := f.Cursor(); c.Next(); {
		m := c.Msg
		m.More = false
		copy(w.Add(&m), c.Data)
		h.Flags = frame.FlagMessages
	}
	if f.Control == frame.ControlAck {
		h.Seq = 0
	}
	h.Put(out)
	add := func(b []byte) {
		f, err := frame.Parse(b)
		if err != nil {
			s.t.Error(err)
		}
		all = append(all, f)
	}
	add(out[:w.Len()])
	if a, ok := f.SessionAck(); ok {
		for i := range a.Ranges.Len() {
			r := a.Ranges.At(i)
			h.AckStart, h.AckCount = frame.Seq(r.First-s.local), uint8(min(r.Count, 255))
			b := make([]byte, frame.HeaderSize)
			h.Put(b)
			add(b)
		}
	}
	return all
}

func (s *fakePeer) raw(b []byte) {
	s.t.Helper()
	if _, err := s.conn.Send([]transport.Outgoing{{To: new(s.to), Buf: b}}); err != nil {
		s.t.Fatal(err)
	}
}

type msg struct {
	frame.Message
	data []byte
}

// encode lays out a frame of these messages. In a session its id is counted from the epoch.
func (s *fakePeer) encode(seq frame.Seq, msgs ...msg) []byte {
	b := make([]byte, 1490)
	head := frame.HeaderSize
	if s.theirs != 0 {
		head = frame.SessionHeaderSize
	}
	var w frame.Writer
	w.InitAfter(b, head)
	flags := uint8(0)
	for _, m := range msgs {
		flags = frame.FlagMessages
		m.Len = uint16(len(m.data))
		copy(w.Add(&m.Message), m.data)
	}
	if s.theirs != 0 {
		h := s.header(s.local + uint32(seq))
		h.Put(b)
	} else {
		h := frame.Header{Dst: s.dst, Src: s.id, Seq: seq, Flags: flags}
		h.Put(b)
	}
	return b[:w.Len()]
}

// header returns that of a frame of the session.
func (s *fakePeer) header(id uint32) frame.SessionHeader {
	return frame.SessionHeader{Dst: s.dst, Src: s.id, ID: id, Tag: session.Tag(session.Epoch(s.theirs), session.Epoch(s.local)), Ack: s.upTo}
}

func (s *fakePeer) send(seq frame.Seq, msgs ...msg) { s.t.Helper(); s.raw(s.encode(seq, msgs...)) }

// tagOfSession returns that of frames to an endpoint, in a session of those epochs.
func tagOfSession(receiver, sender uint32) uint32 {
	return session.Tag(session.Epoch(receiver), session.Epoch(sender))
}

// bell sends a frame without messages that is to be acknowledged.
func (s *fakePeer) bell(seq frame.Seq) {
	s.t.Helper()
	h := s.header(s.local + uint32(seq))
	h.Control = frame.ControlBell
	b := make([]byte, frame.SessionHeaderSize+1)
	h.Put(b)
	s.raw(b)
}

// confirmAgain sends the CONFIRM of the session again.
func (s *fakePeer) confirmAgain() {
	s.t.Helper()
	s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: s.local, Receiver: s.theirs, Check: s.check})
}

// acks acknowledges all frames up to that one, counted from the epoch, of which count are said.
func (s *fakePeer) acks(upTo frame.Seq) {
	s.t.Helper()
	s.upTo = s.theirs + uint32(upTo)
	b := make([]byte, 64)
	h := s.header(s.upTo)
	s.raw(b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, nil)])
}

// acksOnly acknowledges that many frames from one on, counted from the epoch, and none before it.
func (s *fakePeer) acksOnly(id frame.Seq, count int) {
	s.t.Helper()
	b := make([]byte, 64)
	h := s.header(s.theirs + uint32(id))
	h.Ack = s.theirs
	s.raw(b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, []frame.Range{{First: s.theirs + uint32(id), Count: count}})])
}

// has says of which session the scripted peer is from now on.
func (s *fakePeer) has(local, theirs, check uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.local, s.theirs, s.upTo, s.check = local, theirs, theirs, check
}

// asked returns the epoch under which the endpoint asks.
func (s *fakePeer) asked() (local uint32) {
	s.t.Helper()
	for _, f := range s.recv(time.Second) {
		if h, ok := handshakeIn(&f); ok && h.Kind == frame.HandshakeHello {
			local = h.Sender
		}
	}
	if local == 0 {
		s.t.Fatal("no HELLO came")
	}
	return local
}

// welcome answers a HELLO under that epoch, with a list of services.
func (s *fakePeer) welcome(epoch, to uint32, services ...frame.Service) {
	s.t.Helper()
	s.has(epoch, to, 0)
	b := make([]byte, frame.ListedSize)
	h := frame.Handshake{Kind: frame.HandshakeWelcome, Sender: epoch, Receiver: to}
	h.Put(b, s.dst, s.id)
	var list frame.Services
	for _, x := range services {
		list.Add(x)
	}
	list.Put(b[frame.HandshakeSize:])
	s.raw(b)
}

// recv returns the frames that came until d from now.
func (s *fakePeer) recv(d time.Duration) []frame.Frame {
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got, s.raws = nil, nil
	return got
}

func isHandshake(f *frame.Frame) bool {
	_, ok := handshakeIn(f)
	return ok
}

// cursorOf returns that of the messages of a frame, of a session or without, but for those of the handshake.
func cursorOf(b []byte) (frame.Cursor, error) {
	if frame.IsSession(b) {
		f, err := frame.ParseSession(b)
		return f.Cursor(), err
	}
	f, err := frame.Parse(b)
	if err != nil || isHandshake(&f) {
		return frame.Cursor{}, err
	}
	return f.Cursor(), nil
}

// messagesIn returns the messages of a frame, of a session or without, but for what is of the handshake and tells of services.
func messagesIn(t testing.TB, b []byte) (all []frame.Message) {
	t.Helper()
	c, err := cursorOf(b)
	if err != nil {
		t.Error(err)
	}
	for c.Next() {
		if c.Msg.Type != frame.TypeServices {
			all = append(all, c.Msg)
		}
	}
	return all
}

// servesMemory is the list of a peer that has a memory, and knows all services of the endpoint.
func servesMemory() (list frame.Services) {
	list.Add(serviceAt("memory", 0))
	list.Known = frame.MostServices
	return list
}

func handshakeIn(f *frame.Frame) (frame.Handshake, bool) {
	c := f.Cursor()
	c.Next()
	return frame.HandshakeOf(f, &c.Msg)
}

// shake sends a frame of the handshake.
func (s *fakePeer) shake(h frame.Handshake) {
	s.t.Helper()
	b := make([]byte, frame.ListedSize)
	h.Put(b, s.dst, s.id)
	list := servesMemory()
	if s.known > 0 {
		list.Known = s.known
	}
	list.Put(b[frame.HandshakeSize:])
	s.raw(b)
}

// greet begins a session under that epoch, and returns the endpoint's.
func (s *fakePeer) greet(epoch uint32) (theirs uint32) {
	s.t.Helper()
	s.local, s.theirs = 0, 0
	for range 5 {
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch})
		for _, f := range s.recv(time.Millisecond) {
			h, ok := handshakeIn(&f)
			if ok && h.Kind == frame.HandshakeWelcome && h.Receiver == epoch {
				s.has(epoch, h.Sender, h.Check)
				s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: epoch, Receiver: h.Sender, Check: h.Check})
				return h.Sender
			}
		}
	}
	s.t.Fatal("no WELCOME came back")
	return 0
}

// TestWriteOverLossyLink checks that each Write returns with its data and its completion word in
// memory, whatever share of the frames is lost.
func TestWriteOverLossyLink(t *testing.T) {
	// Where 40 % are lost, both ways, the last frame of a transaction is unacknowledged for 10 s in 1 of 3000.
	patient := Config{GiveUp: time.Minute}
	for _, loss := range []float64{0, 0.01, 0.1, 0.4} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{a: patient, link: simnet.Link{Latency: 100 * time.Microsecond, Loss: loss, Rate: 1e9, Queue: 300}})
				defer p.close()
				for i := range 20 {
					data := pattern(i, 300_000)
					if err := p.toB.Write(context.Background(), write(16, data, 0, uint32(i+1))); err != nil {
						t.Fatal(i, err)
					}
					if got := p.memB.Load32(0); got != uint32(i+1) {
						t.Fatalf("completion word %d, want %d", got, i+1)
					}
					if string(p.memB.Bytes()[16:16+len(data)]) != string(data) {
						t.Fatalf("transaction %d: memory differs", i)
					}
				}
				if s := p.b.Stats(); s.Completions != 20 {
					t.Fatalf("%d completions, want 20", s.Completions)
				}
			})
		})
	}
}

// TestBothDirectionsPiggyback checks that acknowledgements are piggybacked on data (DGRDMA-017).
func TestBothDirectionsPiggyback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: 50 * time.Microsecond, Loss: 0.02, Rate: 1e9, Queue: 300}})
		defer p.close()
		var wg sync.WaitGroup
		for _, c := range []*Conn{p.toA, p.toB} {
			wg.Go(func() {
				for i := range 50 {
					if err := c.Write(context.Background(), write(64, pattern(i, 100_000), 0, uint32(i+1))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for _, c := range []*Conn{p.toA, p.toB} {
			if s := c.Stats(); s.AcksCarried == 0 {
				t.Errorf("no acknowledgement rode on data: %+v", s.Counters)
			}
		}
		for _, m := range []*Region{p.memA, p.memB} {
			if got := m.Load32(0); got != 50 {
				t.Errorf("completion word %d, want 50", got)
			}
		}
	})
}

// TestDoorbellsPerFrame checks that several transactions share a frame (DGRDMA-007), and that a
// transaction without data is its completion (DGRDMA-006).
func TestDoorbellsPerFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Coalesce: 100 * time.Microsecond}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		before := p.toB.Stats().FramesSent
		var wg sync.WaitGroup
		const n = 100
		for i := range n {
			wg.Add(1)
			err := p.toB.Post(&Transaction{
				Completion: Word(uint32(4*i), uint32(i+1)),
				Done: func(_ *Transaction, err error) {
					if err != nil {
						t.Error(err)
					}
					wg.Done()
				},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		for i := range n {
			if got := binary.LittleEndian.Uint32(p.memB.Bytes()[4*i:]); got != uint32(i+1) {
				t.Fatalf("word %d is %d", i, got)
			}
		}
		if sent := p.toB.Stats().FramesSent - before; sent > 5 {
			t.Errorf("%d frames for %d doorbells", sent, n)
		}
	})
}

// TestLoneWriter checks that a program that waits for each of its transactions does not wait for
// the delay of acknowledgements, once it has shown that nothing will carry them; and that a side
// that answers carries them.
func TestLoneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: 50 * time.Microsecond}})
		defer p.close()
		one := func(c *Conn, i int) time.Duration {
			began := time.Now()
			if err := c.Write(context.Background(), write(64, pattern(i, 64), 0, uint32(i+1))); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		for i := range 50 {
			if took := one(p.toB, i); i > 0 && took != 100*time.Microsecond {
				t.Fatalf("write %d took %v", i, took)
			}
		}
		// Ping-pong: the answer carries the acknowledgement.
		before := p.toA.Stats().AcksAlone
		for i := range 50 {
			if err := p.toB.Post(write(64, pattern(i, 64), 0, uint32(100+i))); err != nil {
				t.Fatal(err)
			}
			if err := p.memB.WaitFor(context.Background(), 0, uint32(100+i)); err != nil {
				t.Fatal(err)
			}
			if err := p.toA.Post(write(64, pattern(i, 64), 0, uint32(100+i))); err != nil {
				t.Fatal(err)
			}
			if err := p.memA.WaitFor(context.Background(), 0, uint32(100+i)); err != nil {
				t.Fatal(err)
			}
		}
		if alone := p.toA.Stats().AcksAlone - before; alone > 2 {
			t.Errorf("%d acknowledgements travelled alone beside 50 answers", alone)
		}
	})
}

package endpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var addrA, addrB = simnet.Addr(1), simnet.Addr(2)

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

// stranger is a scripted peer: it speaks frames, nothing more.
type stranger struct {
	known   int // how many services it says it knows
	t       testing.TB
	net     *simnet.Network
	conn    *simnet.Conn
	id, dst frame.EndpointID
	to      transport.Addr
	theirs  uint32 // the endpoint's life, once greeted

	mu  sync.Mutex
	got []frame.Frame
}

func newStranger(t testing.TB, n *simnet.Network, addr transport.Addr, id, dst frame.EndpointID, to transport.Addr) *stranger {
	s := &stranger{t: t, net: n, conn: n.Attach(addr, simnet.Config{Headroom: -1}), id: id, to: to, dst: dst}
	go s.listen() // ends with the network
	return s
}

func (s *stranger) listen() {
	dst := make([]transport.Datagram, 16)
	for {
		n, err := s.conn.Recv(dst, transport.Forever)
		if err != nil {
			return
		}
		s.mu.Lock()
		for _, d := range dst[:n] {
			f, err := frame.Parse(append([]byte(nil), d.Data...))
			if err != nil {
				s.t.Error(err)
			}
			s.got = append(s.got, f)
		}
		s.mu.Unlock()
	}
}

func (s *stranger) raw(b []byte) {
	s.t.Helper()
	if _, err := s.conn.Send([]transport.Outgoing{{To: new(s.to), Buf: b}}); err != nil {
		s.t.Fatal(err)
	}
}

type msg struct {
	frame.Message
	data []byte
}

// encode lays out a frame of these messages.
func (s *stranger) encode(seq frame.Seq, msgs ...msg) []byte {
	b := make([]byte, 1490)
	h := frame.Header{Dst: s.dst, Src: s.id, Seq: seq}
	var w frame.Writer
	w.Init(b)
	for _, m := range msgs {
		h.Flags = frame.FlagMessages
		m.Len = uint16(len(m.data))
		copy(w.Add(&m.Message), m.data)
	}
	h.Put(b)
	return b[:w.Len()]
}

func (s *stranger) send(seq frame.Seq, msgs ...msg) { s.t.Helper(); s.raw(s.encode(seq, msgs...)) }

func stamp(life uint32, id, start ack.Wide) frame.Stamp {
	return frame.Stamp{Life: life, ID: uint32(id), Start: uint32(start)}
}

// alone sends a frame without messages, stamped, that acknowledges count ids.
func (s *stranger) alone(st frame.Stamp, count uint8) {
	s.t.Helper()
	b := make([]byte, frame.HeaderSize+frame.StampSize)
	h := frame.Header{Dst: s.dst, Src: s.id, Seq: frame.Seq(st.ID), AckStart: frame.Seq(st.Start), AckCount: count}
	h.Put(b)
	st.Put(b[frame.HeaderSize:])
	s.raw(b)
}

// recv returns the frames that came until d from now.
func (s *stranger) recv(d time.Duration) []frame.Frame {
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

func helloOf(f *frame.Frame) (frame.Hello, bool) {
	c := f.Cursor()
	c.Next()
	return c.Msg.Hello()
}

// greet introduces the stranger as a life and returns the endpoint's.
func (s *stranger) greet(life uint32) (theirs uint32) {
	s.t.Helper()
	hello := func(tells bool) {
		s.send(1, msg{Message: frame.Hello{Life: life, Peer: theirs, Tells: tells}.Message()})
	}
	for range 5 {
		hello(false)
		for _, f := range s.recv(time.Millisecond) {
			h, ok := helloOf(&f)
			if ok {
				theirs = h.Life
				s.theirs = theirs
				if h.Peer == life {
					hello(true)
					return theirs
				}
			}
		}
	}
	s.t.Fatal("no introduction came back")
	return 0
}

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

// TestBothDirectionsPiggyback: acknowledgements ride on data (DGRDMA-017).
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

// TestDoorbellsPerFrame: several transactions share a frame (DGRDMA-007), and a
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

// TestLoneWriter: who waits for each of its transactions does not wait for the
// delay of acknowledgements, once it has shown that nothing will carry them; and
// who answers carries them.
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

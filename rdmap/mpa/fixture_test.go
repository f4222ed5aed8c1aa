package mpa

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// message is one whole message, as a source gives and a sink gets it.
type message struct {
	first   ddp.Header
	payload []byte
}

func (m message) String() string {
	h := m.first
	if h.Tagged {
		return fmt.Sprintf("tagged %02x stag %08x to %x: %d", h.Control, h.STag, h.TO, len(m.payload))
	}
	return fmt.Sprintf("untagged %02x inv %08x qn %d msn %d mo %d: %d", h.Control, h.Invalidate, h.QN, h.MSN, h.MO, len(m.payload))
}

// gate is a guard; shut withdraws the memory.
type gate struct {
	mu   sync.Mutex
	shut bool
	in   int
}

func (g *gate) Enter(uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.in++
	return true
}

func (g *gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in--
}

// withdraw says false if somebody is in.
func (g *gate) withdraw() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = g.shut || g.in == 0
	return g.shut
}

// memorySink keeps what it gets. It checks that the carrier obeys the order of calls.
type memorySink struct {
	t     testing.TB
	guard ddp.Guard
	place func(h *ddp.Header, n int) error
	// split, if not nil, is how much of a segment goes to one place.
	split func() int

	inside  bool
	pending map[bool][]byte // payload of unfinished messages, by kind
	spans   []placement
	got     []message
	arrived atomic.Int64 // len(got)
}

// placement is memory that a segment got, with a margin that stays as it is.
type placement struct {
	tagged bool
	qn     uint32
	around []byte
}

const margin = 8

func newSink(t testing.TB) *memorySink { return &memorySink{t: t, pending: map[bool][]byte{}} }

// receiveAll receives until that fails.
func receiveAll(c *Conn, s ddp.Sink) (err error) {
	for err == nil {
		err = c.Receive(s)
	}
	return err
}

// receiving receives on another goroutine until that fails, into a sink that has a place for nothing.
func receiving(c *Conn, s *memorySink) <-chan error {
	s.place = func(*ddp.Header, int) error { return nil }
	failed := make(chan error, 1)
	go func() { failed <- receiveAll(c, s) }()
	return failed
}

// flushAll sends what is left of the batch until that fails.
func flushAll(c *Conn, src ddp.Source) (err error) {
	for err == nil {
		err = c.Flush(src)
	}
	return err
}

func (s *memorySink) Begin() {
	if s.inside {
		s.t.Error("Begin inside Begin")
	}
	s.inside = true
}

func (s *memorySink) End() {
	if !s.inside {
		s.t.Error("End without Begin")
	}
	s.inside = false
}

func (s *memorySink) Place(h *ddp.Header, n int) (ddp.Span, error) {
	if !s.inside {
		s.t.Error("Place outside of Begin and End")
	}
	if s.place != nil {
		if err := s.place(h, n); err != nil {
			return ddp.Span{}, err
		}
	}
	if s.split != nil {
		n = min(n, s.split())
	}
	around := bytes.Repeat([]byte{0xee}, n+2*margin)
	s.spans = append(s.spans, placement{h.Tagged, h.QN, around})
	return ddp.Span{Bytes: around[margin : margin+n : margin+n], Guard: s.guard}, nil
}

func (s *memorySink) Deliver(h *ddp.Header, n uint32) error {
	if !s.inside {
		s.t.Error("Deliver outside of Begin and End")
	}
	// What was placed is the payload of the segments of this kind since the last message.
	m := message{first: *h}
	keep := s.spans[:0]
	for _, p := range s.spans {
		if p.tagged != h.Tagged {
			keep = append(keep, p)
			continue
		}
		s.checkMargin(p)
		if !h.Tagged && p.qn != h.QN {
			if h.QN != ddp.AbortQueue {
				s.t.Errorf("%v delivered amid a message of queue %d", m, p.qn)
			}
			continue // of a message that was cut short
		}
		m.payload = append(m.payload, p.around[margin:len(p.around)-margin]...)
	}
	s.spans = keep
	if len(m.payload) != int(n) {
		s.t.Errorf("%v delivered as %d bytes", m, n)
	}
	s.got = append(s.got, m)
	s.arrived.Add(1)
	return nil
}

func (s *memorySink) checkMargin(p placement) {
	rim := append(append([]byte{}, p.around[:margin]...), p.around[len(p.around)-margin:]...)
	if !bytes.Equal(rim, bytes.Repeat([]byte{0xee}, 2*margin)) {
		s.t.Errorf("bytes around the place were changed: %x", rim)
	}
}

// listSource gives messages, in pieces that the test chooses.
type listSource struct {
	t      testing.TB
	list   []ddp.Message
	next   int
	sent   int
	inside bool
}

func (s *listSource) Begin() {
	if s.inside {
		s.t.Error("Begin inside Begin")
	}
	s.inside = true
}
func (s *listSource) End() { s.inside = false }
func (s *listSource) Sent(n int) {
	s.sent += n
	if !s.inside || n < 1 || s.sent > s.next {
		s.t.Errorf("Sent(%d), altogether %d of %d; inside %v", n, s.sent, s.next, s.inside)
	}
}
func (s *listSource) Next(m *ddp.Message) bool {
	if !s.inside {
		s.t.Error("Next outside of Begin and End")
	}
	if s.next == len(s.list) {
		return false
	}
	*m = s.list[s.next]
	s.next++
	return true
}

// outgoing is the message as a source gives it: the first inline octets are the stream's own.
func outgoing(m message, inline int, pieces ...int) ddp.Message {
	out := ddp.Message{Header: m.first, InlineSize: inline, Length: uint32(len(m.payload))}
	rest := m.payload[copy(out.Inline[:inline], m.payload):]
	for _, n := range pieces {
		n = min(n, len(rest))
		out.Data = append(out.Data, ddp.Span{Bytes: rest[:n]})
		rest = rest[n:]
	}
	if len(rest) > 0 {
		out.Data = append(out.Data, ddp.Span{Bytes: rest})
	}
	return out
}

func write(stag uint32, to uint64, payload []byte) message {
	return message{ddp.Header{Tagged: true, Last: true, Control: 0x40, STag: stag, TO: to}, payload}
}

func send(msn uint32, payload []byte) message {
	return message{ddp.Header{Last: true, Control: 0x43, MSN: msn}, payload}
}

// pattern is n octets of which none is like its neighbours.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(31*seed + 7*i + i>>8 + 1)
	}
	return b
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// encode is the bytes of messages as a framer makes them.
func encode(t testing.TB, f framer, list ...ddp.Message) []byte {
	t.Helper()
	src := &listSource{t: t, list: list}
	var wire []byte
	for {
		b := batches.Get().(*batch)
		src.Begin()
		dry, err := f.fill(b, src)
		src.End()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range b.vecs[:b.n] {
			wire = append(wire, octets(v)...)
		}
		if b.size == 0 && !dry {
			t.Fatal("a batch is empty, and there are messages")
		}
		b.release()
		if dry {
			return wire
		}
	}
}

// parseIn gives the bytes to a parser in pieces as next says them.
func parseIn(t testing.TB, p *parser, sink *memorySink, wire []byte, next func(left int) int) (rest int, err error) {
	var held []byte
	for len(wire) > 0 {
		n := min(next(len(wire)), len(wire))
		held = append(held, wire[:n]...)
		wire = wire[n:]
		sink.Begin()
		used, err := p.parse(held, sink)
		sink.End()
		held = held[used:]
		if err != nil {
			return len(held), err
		}
	}
	return len(held), nil
}

func whole(left int) int { return left }
func single(int) int     { return 1 }

// ethernet is the largest segment on a path of 1500 octets, before TCP's options.
const ethernet = 1460

// tcpPair is two ends of a connection on loopback, or on a path with that largest segment.
func tcpPair(t testing.TB, mss int) (*net.TCPConn, *net.TCPConn) {
	t.Helper()
	control := func(_, _ string, raw syscall.RawConn) (err error) {
		if mss == 0 {
			return nil
		}
		if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss) }); e != nil {
			return e
		}
		return err
	}
	l, err := (&net.ListenConfig{Control: control}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := (&net.Dialer{Control: control}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// open makes a connection of two ends: the first initiates.
func open(t testing.TB, a, b net.Conn, oa, ob *Options) (*Conn, *Conn) {
	t.Helper()
	type result struct {
		c   *Conn
		err error
	}
	accepted := make(chan result, 1)
	go func() {
		r, err := Await(t.Context(), b, time.Minute)
		if err != nil {
			accepted <- result{nil, err}
			return
		}
		c, err := r.Accept(t.Context(), ob)
		accepted <- result{c, err}
	}()
	ca, err := Initiate(t.Context(), a, oa)
	if err != nil {
		t.Fatal(err)
	}
	got := <-accepted
	if got.err != nil {
		t.Fatal(got.err)
	}
	t.Cleanup(func() { ca.Close(); got.c.Close() })
	return ca, got.c
}

// drain sends all that the source has.
func drain(c *Conn, src ddp.Source) error {
	for {
		p, err := c.Send(src)
		switch {
		case err != nil:
			return err
		case p == Idle:
			return nil
		case p == Blocked:
			if err := c.Flush(src); err != nil {
				return err
			}
		}
	}
}

func octets(v unix.Iovec) []byte { return unsafe.Slice(v.Base, int(v.Len)) }

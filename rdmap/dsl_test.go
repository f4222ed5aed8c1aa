package rdmap_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// done collects completions.
type done struct {
	list []rdmap.Completion
	at   func() // called at each
}

func (d *done) Complete(c *rdmap.Completion) {
	d.list = append(d.list, *c)
	if d.at != nil {
		d.at()
	}
}

// side is one end of a stream in a test.
type side struct {
	t *testing.T
	*rdmap.Stream
	name           string
	mem            memory
	sent, received done
	next           uint64

	// The carrier: messages of this side that the other has not taken.
	in    ddp.Inbound
	queue []*message
	wire  [][]byte // every message as it left: header of its first segment and what followed
}

// message is on its way, in segments.
type message struct {
	head    ddp.Header
	payload []byte
	placed  []bool // by segment
	left    int
}

// pair is two ends and a carrier in memory.
type pair struct {
	t         *testing.T
	a, b      *side
	framed    *framed // nil: the carrier is this file
	unordered bool
	mtu       int
	unsaid    map[*side]int
	rng       *rand.Rand
}

// world is how a pair is opened.
type world struct {
	cfg rdmap.Config
	carrier
	mtu  int
	seed uint64
}

// carrier is one of those that streams are tested over.
type carrier struct {
	unordered bool // it places in any order
	mpa       bool // it is package mpa, over a socket
	crc, long bool // of that
}

func (c carrier) String() string {
	switch {
	case c.mpa:
		return fmt.Sprintf("mpa,crc=%v,long=%v", c.crc, c.long)
	case c.unordered:
		return "unordered"
	}
	return "ordered"
}

var carriers = []carrier{{}, {unordered: true}, {mpa: true}, {mpa: true, crc: true}, {mpa: true, long: true}, {mpa: true, crc: true, long: true}}

func newPair(t *testing.T, w world) *pair {
	t.Helper()
	p := &pair{t: t, unordered: w.unordered, mtu: w.mtu, unsaid: make(map[*side]int), rng: rand.New(rand.NewPCG(w.seed, 1))}
	if p.mtu == 0 {
		p.mtu = 100
	}
	open := func(name string, initiator bool) *side {
		s := &side{t: t, name: name, mem: make(memory)}
		cfg := w.cfg
		cfg.Initiator, cfg.Unordered, cfg.Memory = initiator, w.unordered, s.mem
		cfg.Sent, cfg.Received = &s.sent, &s.received
		cfg.Sends, cfg.Receives = max(cfg.Sends, 16), max(cfg.Receives, 16)
		cfg.IRD, cfg.ORD = cmpOr(cfg.IRD, 4), cmpOr(cfg.ORD, 4)
		s.Stream = rdmap.New(cfg)
		return s
	}
	p.a, p.b = open("a", true), open("b", false)
	if w.mpa {
		p.framed = newFramed(p, w.carrier)
	}
	return p
}

// close lets go of what the carrier has.
func (p *pair) close() {
	if p.framed != nil {
		p.framed.close()
	}
}

// cmpOr is n, or what it is by default; below 0 it is 0.
func cmpOr(n, other int) int {
	if n == 0 {
		return other
	}
	return max(n, 0)
}

func (s *side) post(w rdmap.Work) uint64 {
	s.t.Helper()
	s.next++
	w.ID = s.next
	if err := s.Post(&w); err != nil {
		s.t.Fatalf("%s: post %v: %v", s.name, w.Op, err)
	}
	return w.ID
}

func (s *side) receive(b []byte) {
	s.t.Helper()
	if err := s.PostReceive(rdmap.Receive{ID: uint64(len(b)), Data: b}); err != nil {
		s.t.Fatalf("%s: post receive: %v", s.name, err)
	}
}

// take moves the next message of a side to the carrier.
func (p *pair) take(s *side) bool {
	if p.framed != nil {
		return p.framed.take(s)
	}
	var m ddp.Message
	if !s.Next(&m) {
		return false
	}
	b := append([]byte(nil), m.Inline[:m.InlineSize]...)
	for _, d := range m.Data {
		if !d.Enter() {
			p.t.Fatalf("%s: the carrier was given memory that is withdrawn", s.name)
		}
		b = append(b, d.Bytes...)
		d.Leave()
	}
	if len(b) != int(m.Length) {
		p.t.Fatalf("%s: a message of %d bytes says %d", s.name, len(b), m.Length)
	}
	segments := max((len(b)+p.mtu-1)/p.mtu, 1)
	s.queue = append(s.queue, &message{head: m.Header, payload: b, placed: make([]bool, segments), left: segments})
	s.leaves(&m.Header, b)
	p.unsaid[s]++
	if !p.unordered || p.rng.IntN(2) == 0 {
		p.say(s)
	}
	return true
}

// leaves notes what a side sends.
func (s *side) leaves(h *ddp.Header, b []byte) {
	var head [ddp.UntaggedHeader]byte
	last := *h
	last.Last = true
	s.wire = append(s.wire, append(head[:last.Put(head[:])], b...))
}

// say tells a side what was sent.
func (p *pair) say(s *side) {
	s.Sent(p.unsaid[s])
	p.unsaid[s] = 0
}

// segment returns the i-th segment of a message.
func (p *pair) segment(m *message, i int) (h ddp.Header, payload []byte) {
	from := i * p.mtu
	to := min(from+p.mtu, len(m.payload))
	h = m.head
	h.Last = i == len(m.placed)-1
	if h.Tagged {
		h.TO += uint64(from)
	} else {
		h.MO = uint32(from)
	}
	return h, m.payload[from:to]
}

// move brings one segment from one side to the other. It says false when there is none.
func (p *pair) move(from, to *side) (bool, error) {
	if p.framed != nil {
		return p.framed.move(to)
	}
	if len(from.queue) == 0 {
		return false, nil
	}
	m := from.queue[0]
	if p.unordered {
		m = from.queue[p.rng.IntN(len(from.queue))]
	}
	if m.left > 0 {
		i := len(m.placed) - m.left
		if p.unordered {
			for i = p.rng.IntN(len(m.placed)); m.placed[i]; i = p.rng.IntN(len(m.placed)) {
			}
		}
		h, payload := p.segment(m, i)
		if !p.unordered {
			if err := to.in.Follows(&h, len(payload)); err != nil {
				return true, err
			}
		}
		if err := to.put(h, payload); err != nil {
			return true, err
		}
		m.placed[i] = true
		m.left--
		if !p.unordered {
			if first, n := to.in.Placed(&h, len(payload)); first != nil {
				from.queue = from.queue[1:]
				return true, to.Deliver(first, n)
			}
		}
	}
	for len(from.queue) > 0 && from.queue[0].left == 0 && p.unordered {
		m := from.queue[0]
		from.queue = from.queue[1:]
		if err := to.Deliver(&m.head, uint32(len(m.payload))); err != nil {
			return true, err
		}
	}
	return true, nil
}

// put has a side place the payload of a segment.
func (s *side) put(h ddp.Header, payload []byte) error {
	for {
		span, err := s.Place(&h, len(payload))
		if err != nil {
			return err
		}
		n := len(span.Bytes)
		if n > len(payload) || n == 0 && len(payload) > 0 {
			s.t.Fatalf("%s: a place of %d bytes for %d", s.name, n, len(payload))
		}
		if n > 0 {
			if !span.Enter() {
				s.t.Fatalf("%s: a place that is withdrawn", s.name)
			}
			copy(span.Bytes, payload)
			span.Leave()
		}
		if payload = payload[n:]; len(payload) == 0 {
			return nil
		}
		if h.Tagged {
			h.TO += uint64(n)
		} else {
			h.MO += uint32(n)
		}
	}
}

// cut cuts a buffer into pieces, of which some may be empty.
func cut(rng *rand.Rand, b []byte) (first []byte, more [][]byte) {
	pieces := [][]byte{}
	for n := rng.IntN(5); n > 0; n-- {
		i := rng.IntN(len(b) + 1)
		pieces = append(pieces, b[:i:i])
		b = b[i:]
	}
	pieces = append(pieces, b)
	return pieces[0], pieces[1:]
}

// run moves messages until nothing is left to move, and returns the first error of each side.
func (p *pair) run() (errA, errB error) {
	p.t.Helper()
	for range 100_000 {
		moved := false
		for _, d := range [2][2]*side{{p.a, p.b}, {p.b, p.a}} {
			from, to := d[0], d[1]
			took := p.take(from)
			any, err := p.move(from, to)
			moved = moved || took || any
			if err != nil {
				from.queue = nil // the carrier stops
				if to == p.a {
					errA = errors.Join(errA, err)
				} else {
					errB = errors.Join(errB, err)
				}
			}
		}
		if !moved {
			if p.unsaid[p.a]+p.unsaid[p.b] == 0 {
				return errA, errB
			}
			p.say(p.a)
			p.say(p.b)
		}
	}
	p.t.Fatal("messages without end")
	return nil, nil
}

// settle runs a healthy pair.
func (p *pair) settle() {
	p.t.Helper()
	if errA, errB := p.run(); errA != nil || errB != nil {
		p.t.Fatalf("a: %v, b: %v", errA, errB)
	}
}

// wantSent checks that just these requests completed, in order, without errors, and forgets them.
func (s *side) wantSent(ids ...uint64) []rdmap.Completion {
	s.t.Helper()
	list := s.sent.list
	s.sent.list = nil
	ok := len(list) == len(ids)
	for i := range list {
		ok = ok && list[i].ID == ids[i] && list[i].Err == nil
	}
	if !ok {
		s.t.Fatalf("%s: completed %+v, want %v", s.name, list, ids)
	}
	return list
}

// wantReceived checks that one receive completed, and forgets it.
func (s *side) wantReceived(n int) rdmap.Completion {
	s.t.Helper()
	if len(s.received.list) != 1 {
		s.t.Fatalf("%s: received %+v, want one message", s.name, s.received.list)
	}
	c := s.received.list[0]
	s.received.list = nil
	if c.Err != nil || c.Op != rdmap.OpReceive || int(c.Length) != n {
		s.t.Fatalf("%s: received %+v, want %d bytes", s.name, c, n)
	}
	return c
}

func (s *side) expose(stag uint32, n int, rights ...rdmap.Access) []byte {
	b := make([]byte, n)
	s.mem[stag] = &area{bytes: b, rights: rights}
	return b
}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(31*seed + 7*i + i>>8 + 1)
	}
	return b
}

func (s *side) want(what string, got, want []byte) {
	s.t.Helper()
	if !bytes.Equal(got, want) {
		s.t.Fatalf("%s: %s is %x, want %x", s.name, what, got, want)
	}
}

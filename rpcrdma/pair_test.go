package rpcrdma

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"time"
)

// A fakePair is two queue pairs and the wire between them, in virtual time. Each does what one of package verbs does: works of a
// send queue leave and complete in order, so that an unanswered Read holds the completions of those after it; places of
// the queue come back with the completion of a signaled work alone; a message without a receive, or an access to memory
// that is not the peer's to use, ends the stream.
type fakePair struct {
	ends [2]*fakeEnd
	rng  *rand.Rand
	now  time.Time
	// ended is why the stream ended, "" as long as it has not.
	ended string
	// slow is the longest time that a Read waits for its answer.
	slow time.Duration
	// passing says that nothing but time keeps anything from happening.
	passing bool
	fail    func(format string, args ...any)
}

// fakeEnd is one of the queue pairs, with the program's memory and buffers.
type fakeEnd struct {
	pair    *fakePair
	peer    *fakeEnd
	name    string
	m       *Machine // nil: raw takes what comes
	raw     func(b []byte, invalidated bool, stag uint32)
	program program

	depth, ord int // places of the send queue; Reads that the wire takes at once
	posted     []*fakeWork
	first      uint64 // serial of posted[0]
	gone       int    // of posted, how many have left

	receives []*Buffer
	wire     []fakePacket // to the peer
	owed     []fakePacket // answers to Reads of the peer, in order
	arrived  []fakeArrival
	closing  bool
	lost     bool
	reads    int // that were posted
	tick     time.Time

	memory map[uint32]*pairRegion
	pool   pairPool
}

// program is what carries out the actions that are for programs.
type program interface {
	act(e *fakeEnd, a *Action)
}

type fakeWork struct {
	op         Op
	data       []byte
	to         Segment
	invalidate uint32
	signaled   bool
	done       bool
}

// fakePacket is what is on the wire: a Send, a Write, a Read, or the answer to one.
type fakePacket struct {
	op         Op
	data       []byte
	to         Segment
	invalidate uint32
	read       *fakeWork // of a Read and its answer
	answer     bool
	ready      time.Time
}

type fakeArrival struct {
	b           *Buffer
	n           int
	invalidated bool
	stag        uint32
}

// firstMoment is when all worlds begin.
var firstMoment = time.Unix(1_000_000, 0)

var steps = flag.Bool("steps", false, "print what the machines of the model say")

// describe says what is posted.
func describe(a *Action) string {
	if a.Op != OpSend {
		return fmt.Sprintf("%s %+v", [...]string{OpWrite: "Write", OpRead: "Read"}[a.Op], a.To)
	}
	var h Header
	payload, err := NewDecoder(DefaultLimits()).Decode(a.Data, &h)
	return fmt.Sprintf("Send, invalidates %#x, %d octets, %v, %+v", a.Invalidate, len(payload), err, h)
}

// newFakePair connects two machines. An end whose Config has no Window has none: its program is the test.
func newFakePair(rng *rand.Rand, client, server *Config, fail func(format string, args ...any)) *fakePair {
	p := &fakePair{rng: rng, now: firstMoment, fail: fail}
	for i, c := range []*Config{client, server} {
		e := &fakeEnd{pair: p, name: [2]string{"client", "server"}[i], depth: c.Sends, ord: c.ORD, memory: map[uint32]*pairRegion{}}
		e.pool = pairPool{out: map[*Buffer]string{}, rng: rng, fail: fail}
		p.ends[i] = e
	}
	p.ends[0].peer, p.ends[1].peer = p.ends[1], p.ends[0]
	for i, c := range []*Config{client, server} {
		e := p.ends[i]
		if c.Window == 0 {
			e.post(1000, c.ReceiveSize)
			continue
		}
		e.m = New(c, e, &e.pool, p.now)
		e.post(c.Posted(), c.ReceiveSize)
	}
	return p
}

// post posts receives. These are never scarce.
func (e *fakeEnd) post(n, size int) {
	for range n {
		b := &Buffer{B: make([]byte, size)}
		e.pool.out[b] = "receive"
		e.receives = append(e.receives, b)
	}
}

// drive does what the machine says.
func (e *fakeEnd) drive() {
	for e.m != nil {
		var a Action
		room := e.depth - len(e.posted)
		if !e.pair.passing && e.pair.rng.IntN(4) == 0 {
			room = min(room, e.pair.rng.IntN(3))
		}
		if e.closing || e.lost {
			room = 0
		}
		if !e.m.Next(room, &a) {
			return
		}
		if *steps && a.Kind != ActPost {
			fmt.Printf("%v %s: action %d of %p%p\n", e.pair.now.Sub(firstMoment), e.name, a.Kind, a.Call, a.In)
		}
		switch a.Kind {
		case ActPost:
			e.work(&a, room)
		case ActReceive:
			e.post(a.N, e.m.cfg.ReceiveSize)
			if most := e.m.cfg.Receives(); len(e.receives) > most {
				e.pair.fail("%s: %d receives are posted, at most %d were announced", e.name, len(e.receives), most)
			}
		case ActClose:
			e.closing = true
			if e.pair.ended == "" {
				e.program.act(e, &a)
			}
		default:
			e.program.act(e, &a)
		}
	}
}

// work posts a work.
func (e *fakeEnd) work(a *Action, room int) {
	if room <= 0 {
		e.pair.fail("%s: a work is posted without room", e.name)
	}
	if want := e.first + uint64(len(e.posted)); a.Serial != want {
		e.pair.fail("%s: work %d is posted, want %d", e.name, a.Serial, want)
	}
	if a.Op == OpRead {
		e.reads++
		n := 0
		for _, w := range e.posted {
			if w.op == OpRead && !w.done {
				n++
			}
		}
		if n >= e.ord {
			e.pair.fail("%s: more than %d Reads are posted", e.name, e.ord)
		}
	}
	if a.Op != OpSend && int(a.To.Length) != len(a.Data) {
		e.pair.fail("%s: a work for %d octets has %d", e.name, a.To.Length, len(a.Data))
	}
	if *steps {
		fmt.Printf("%v %s posts %d: %s\n", e.pair.now.Sub(firstMoment), e.name, a.Serial, describe(a))
	}
	e.posted = append(e.posted, &fakeWork{op: a.Op, data: a.Data, to: a.To, invalidate: a.Invalidate, signaled: a.Signaled})
}

// leave has the next work leave.
func (e *fakeEnd) leave() bool {
	if e.gone == len(e.posted) || e.lost {
		return false
	}
	w := e.posted[e.gone]
	e.gone++
	k := fakePacket{op: w.op, to: w.to, invalidate: w.invalidate}
	if w.op == OpRead {
		k.read = w
	} else {
		k.data = append([]byte(nil), w.data...)
		w.done = true
	}
	e.wire = append(e.wire, k)
	return true
}

// answer has the answer to a Read of the peer leave: the memory is read then.
func (e *fakeEnd) answer() bool {
	if len(e.owed) == 0 || e.owed[0].ready.After(e.pair.now) || e.lost {
		return false
	}
	k := e.owed[0]
	e.owed = e.owed[1:]
	b, wrong := e.span(k.to, false)
	if wrong != "" {
		e.pair.end("Read: " + wrong)
		return true
	}
	k.answer, k.data = true, append([]byte(nil), b...)
	e.wire = append(e.wire, k)
	return true
}

// deliver takes the next packet from the wire.
func (e *fakeEnd) deliver() bool {
	if len(e.peer.wire) == 0 || e.lost {
		return false
	}
	k := e.peer.wire[0]
	e.peer.wire = e.peer.wire[1:]
	switch {
	case k.answer:
		copy(k.read.data, k.data)
		k.read.done = true
	case k.op == OpRead:
		k.ready = e.pair.now
		if e.pair.slow > 0 {
			k.ready = k.ready.Add(time.Duration(e.pair.rng.Int64N(int64(e.pair.slow))))
		}
		e.owed = append(e.owed, k)
	case k.op == OpWrite:
		b, wrong := e.span(k.to, true)
		if wrong != "" {
			e.pair.end("Write: " + wrong)
			return true
		}
		copy(b, k.data)
	default:
		e.take(k)
	}
	return true
}

// take takes a message.
func (e *fakeEnd) take(k fakePacket) {
	if len(e.receives) == 0 {
		e.pair.end("Send: " + e.name + " has no receive")
		return
	}
	b := e.receives[0]
	if len(k.data) > len(b.B) {
		e.pair.end(fmt.Sprintf("Send: %d octets for a receive of %d", len(k.data), len(b.B)))
		return
	}
	copy(b.B, k.data)
	if k.invalidate != 0 {
		if e.memory[k.invalidate] == nil {
			e.pair.end(fmt.Sprintf("Send with Invalidate: handle %#x of %s is not registered", k.invalidate, e.name))
			return
		}
		delete(e.memory, k.invalidate)
	}
	e.receives = e.receives[1:]
	e.pool.out[b] = ""
	if e.m == nil {
		e.raw(b.B[:len(k.data)], k.invalidate != 0, k.invalidate)
	}
	e.arrived = append(e.arrived, fakeArrival{b, len(k.data), k.invalidate != 0, k.invalidate})
}

// hear tells the machine of the next message.
func (e *fakeEnd) hear() bool {
	if len(e.arrived) == 0 || e.lost {
		return false
	}
	a := e.arrived[0]
	e.arrived = e.arrived[1:]
	if e.m == nil {
		e.pool.Put(a.b)
		return true
	}
	e.m.Received(e.pair.now, a.b, a.n, a.invalidated, a.stag)
	return true
}

// complete reports the completions that are there, of which that of the last signaled work tells of all before it.
func (e *fakeEnd) complete() bool {
	last := -1
	for i, w := range e.posted[:e.gone] {
		if !w.done {
			break
		}
		if w.signaled {
			last = i
		}
	}
	if last < 0 || e.lost {
		return false
	}
	serial := e.first + uint64(last)
	e.posted = append([]*fakeWork(nil), e.posted[last+1:]...)
	e.gone -= last + 1
	e.first = serial + 1
	e.m.Completed(e.pair.now, serial)
	return true
}

// end ends the stream.
func (p *fakePair) end(why string) {
	if p.ended == "" {
		p.ended = why
	}
}

// lose tells an end that the stream has ended.
func (e *fakeEnd) lose() {
	if e.lost {
		return
	}
	e.wire, e.owed, e.peer.wire = nil, nil, nil
	for _, a := range e.arrived {
		e.m.Received(e.pair.now, a.b, a.n, a.invalidated, a.stag)
	}
	e.arrived, e.posted = nil, nil
	e.closing = true
	e.drive()
	e.m.Lost(nil)
	e.drive()
	e.lost = true
	for _, b := range e.receives {
		delete(e.pool.out, b)
	}
	if len(e.memory) > 0 {
		e.pair.fail("%s: %d regions are registered after the end", e.name, len(e.memory))
	}
}

// step does one thing, and reports whether there was one.
func (p *fakePair) step() bool {
	first := p.rng.IntN(10)
	for i := range 10 {
		at := (first + i) % 10
		e := p.ends[at/5]
		did := false
		switch at % 5 {
		case 0:
			did = e.leave()
		case 1:
			did = e.answer()
		case 2:
			did = e.deliver()
		case 3:
			did = e.hear()
		case 4:
			did = e.complete()
		}
		if did {
			if p.ended == "" {
				e.drive()
			}
			return true
		}
	}
	return false
}

// pass lets time go by until the next thing that happens by itself: an answer to a slow Read, or what a machine waits for. It
// reports false if there is none within a minute.
func (p *fakePair) pass() bool {
	p.passing = true
	defer func() { p.passing = false }()
	next := p.now.Add(time.Minute)
	found := false
	for _, e := range p.ends {
		if e.m != nil {
			e.tick = e.m.Tick(p.now)
			e.drive()
		}
		if !e.tick.IsZero() && e.tick.Before(next) {
			next, found = e.tick, true
		}
		if len(e.owed) > 0 && e.owed[0].ready.Before(next) {
			next, found = e.owed[0].ready, true
		}
	}
	for _, e := range p.ends {
		if e.gone < len(e.posted) {
			return true // first what can be done now
		}
	}
	if found && next.After(p.now) {
		p.now = next
	}
	return found
}

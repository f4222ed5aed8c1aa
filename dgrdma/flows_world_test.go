package dgrdma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// flowsWorld is two endpoints that write into each other's memory and services all the
// time, by several flows, with urgent transactions, fences, letters, contexts that end,
// resets, and one of the two starting again, over a network that loses, doubles and
// reorders.
type flowsWorld struct {
	t       *testing.T
	seed    uint64
	r       *rand.Rand
	net     *simnet.Network
	cfg     Config
	profile Profile
	link    simnet.Link
	sides   [2]*flowsSide

	writers sync.WaitGroup
	calm    bool // neither side restarts or resets

	mu     sync.Mutex
	all    []*parcel
	mails  []*parcelLetter
	failed int
}

// flowsSide is one of the two.
type flowsSide struct {
	w     *flowsWorld
	i     int // of it
	other *flowsSide
	e     *Endpoint
	conn  *Conn
	out   []*parcelFlow
	boxes []*parcelBox // what it has: its memory, and two services

	started uint64             // how often, again
	used    [len(boxNames)]int // bytes of each, in all lives
}

const (
	boxSize   = 4 << 20
	boxWords  = MailSize + 4096 // before the data
	mostFlows = 3
)

var boxNames = [...]string{MemoryService, "one", "two"}

func newFlowsWorld(t *testing.T, seed uint64, p Profile, calm bool) *flowsWorld {
	w := &flowsWorld{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), net: simnet.New(seed), profile: p, calm: calm}
	w.cfg = Config{
		Profile: &w.profile, NoHelp: w.r.IntN(2) == 0,
		MTU: []int{1490, 1490, 1490, 9000, 300, 160}[w.r.IntN(6)],
	}
	if w.r.IntN(3) == 0 {
		w.cfg.Window = 2 + w.r.IntN(30)
	}
	if w.r.IntN(3) == 0 {
		w.cfg.Coalesce = time.Duration(1+w.r.IntN(200)) * time.Microsecond
	}
	if w.r.IntN(3) == 0 {
		w.profile.OpenTransactions = min(w.profile.OpenTransactions, 1+w.r.IntN(10))
	}
	w.link = simnet.Link{Rate: 1e9, Latency: time.Duration(w.r.IntN(300)) * time.Microsecond}
	if w.r.IntN(3) > 0 {
		w.link.Loss, w.link.Duplicate, w.link.Reorder = 0.2*w.r.Float64(), 0.1*w.r.Float64(), 0.2*w.r.Float64()
		w.link.Loss *= w.r.Float64()
		w.link.ReorderBy = time.Duration(1+w.r.IntN(500)) * time.Microsecond
	}
	if w.r.IntN(4) == 0 {
		w.link.HoldBack, w.link.HoldFor = 0.05*w.r.Float64(), time.Duration(w.r.IntN(20))*time.Millisecond
	}
	if !calm && w.r.IntN(2) == 0 {
		w.cfg.GiveUp = 100 * time.Millisecond
	}
	w.cfg.Manual = w.r.IntN(5) == 0
	w.setLink(w.link)
	w.sides[0], w.sides[1] = &flowsSide{w: w, i: 0}, &flowsSide{w: w, i: 1}
	w.sides[0].other, w.sides[1].other = w.sides[1], w.sides[0]
	for _, s := range w.sides {
		s.open()
	}
	return w
}

func (w *flowsWorld) setLink(l simnet.Link) {
	w.net.Link(addrA, addrB, l)
	w.net.Link(addrB, addrA, l)
}

func (w *flowsWorld) errorf(format string, args ...any) {
	w.t.Helper()
	if w.failed++; w.failed > 4 {
		return
	}
	w.t.Errorf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// open begins a life of a side.
func (s *flowsSide) open() {
	addr := [...]transport.Addr{addrA, addrB}
	cfg := s.w.cfg
	cfg.ID = 1 + frame.EndpointID(s.i)
	s.boxes, s.out = nil, nil
	for i := range boxNames {
		s.boxes = append(s.boxes, &parcelBox{w: s.w, side: s, at: i, bytes: make([]byte, boxSize-boxWords)})
	}
	cfg.Memory = s.boxes[0]
	e, err := New(s.w.net.Attach(addr[s.i], simnet.Config{Poison: true}), &cfg)
	if err != nil {
		s.w.t.Fatal(err)
	}
	for _, b := range s.boxes[1:] {
		if b.base, err = e.Serve(b); err != nil {
			s.w.t.Fatal(err)
		}
	}
	if s.e = e; cfg.Manual {
		go drive(e)
	}
	if s.conn, err = e.Connect(Peer{ID: 2 - frame.EndpointID(s.i), Addr: addr[1-s.i], Size: boxSize}); err != nil {
		s.w.t.Fatal(err)
	}
	for i, b := range s.boxes {
		flows := 1
		if i > 0 {
			flows = 1 + s.w.r.IntN(mostFlows)
		}
		for range flows {
			f := &parcelFlow{side: s, to: i, base: b.base}
			if i > 0 {
				f.flow = s.conn.Channel(boxNames[i]).Flow()
			}
			s.out = append(s.out, f)
		}
	}
}

// drive is the goroutine of an endpoint that has none.
func drive(e *Endpoint) {
	for {
		if _, err := e.Progress(transport.Forever); err != nil {
			return
		}
	}
}

// reopen starts a side again.
func (s *flowsSide) reopen() {
	old := s.boxes
	s.e.Close()
	s.w.mu.Lock()
	for _, b := range old {
		b.gone = true
	}
	s.w.mu.Unlock()
	s.started++
	s.open()
}

// act does something at random.
func (w *flowsWorld) act() {
	s := w.sides[w.r.IntN(2)]
	f := s.out[w.r.IntN(len(s.out))]
	if s.conn.Err() != nil && w.r.IntN(3) == 0 {
		s.reset()
	}
	switch n := w.r.IntN(100); {
	case n < 55:
		for range 1 + w.r.IntN(6) {
			w.post(f, w.pack(f))
		}
	case n < 70:
		w.write(s)
	case n < 80 && w.profile.Session:
		w.mail(s)
	case n < 97 || w.calm:
	case n < 98:
		s.reset()
	case n == 98:
		w.sides[1].reopen()
	default:
		w.setLink(simnet.Link{Down: true})
		time.Sleep(time.Duration(w.r.IntN([]int{30, 300}[w.r.IntN(2)])) * time.Millisecond)
		w.setLink(w.link)
	}
}

func (s *flowsSide) reset() {
	if err := s.conn.Reset(0); err != nil {
		s.w.errorf("reset: %v", err)
	}
}

// post posts a parcel, to the present life.
func (w *flowsWorld) post(f *parcelFlow, p *parcel) {
	c := f.side.conn
	p.x.Done = p.done
	life := c.Life()
	p.life = f.side.started<<32 | uint64(life)
	w.enter(p)
	post := c.PostTo
	if f.flow != nil {
		post = f.flow.PostTo
	}
	if err := post(life, &p.x); err != nil {
		w.leave(p)
		if !errors.Is(err, ErrPeerRestarted) && !errors.Is(err, ErrNoService) && (w.calm || !errors.Is(err, ErrPeerDown)) {
			w.errorf("post: %v", err)
		}
	}
}

// write writes one with a context that may end.
func (w *flowsWorld) write(s *flowsSide) {
	f := s.out[0]
	p := w.pack(f)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(w.r.IntN(1000))*time.Microsecond)
	w.enter(p)
	c := s.conn
	w.writers.Go(func() {
		defer cancel()
		err := c.Write(ctx, &p.x)
		w.mu.Lock()
		defer w.mu.Unlock()
		if errors.Is(err, context.DeadlineExceeded) {
			if p.seen {
				w.errorf("%v was cancelled, and came", p)
			}
			p.cancelled = true
		}
		p.over(err)
	})
}

func (w *flowsWorld) enter(p *parcel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.id = uint32(len(w.all) + 1)
	p.x.Completion = Word(p.x.Completion.Addr(), p.id)
	p.flow.posted = append(p.flow.posted, p)
	w.all = append(w.all, p)
}

// leave takes back a parcel that was not posted.
func (w *flowsWorld) leave(p *parcel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.cancelled, p.answers = true, 1
}

func (w *flowsWorld) mail(s *flowsSide) {
	i := 1 + w.r.IntN(len(boxNames)-1)
	l := &parcelLetter{w: w, from: s, to: i}
	life := s.conn.Life()
	w.mu.Lock()
	w.mails = append(w.mails, l)
	n := len(w.mails)
	w.mu.Unlock()
	b := make([]byte, 4+w.r.IntN(MaxLetter-3))
	binary.LittleEndian.PutUint32(b, uint32(n))
	s.conn.Channel(boxNames[i]).Mail(Letter{Life: life, Bytes: b, Settled: l.settled})
}

func (p *parcel) String() string {
	return fmt.Sprintf("parcel %d of %d bytes (side %d, %s, life %#x, urgent %v, fence %v)",
		p.id, len(p.want), p.flow.side.i, boxNames[p.flow.to], p.life, p.x.Urgent, p.x.Fence)
}

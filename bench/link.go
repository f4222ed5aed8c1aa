package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// The ports of [ServeLinks]: messages are looked at where they arrive, a stream is
// copied.
const (
	MessagePort = "bench"
	StreamPort  = "bench-stream"
)

// LinkServer is the side that links send to.
type LinkServer struct {
	ep     *dgrdma.Endpoint
	giveUp time.Duration
	ran    func(LinkRun)
	wrong  atomic.Uint64 // messages that were not the next one
	ended  chan error    // of each client's last link

	mu       sync.Mutex
	links    int         // under way
	awaiting *time.Timer // ends a client whose next link does not come
}

// LinkRun is a link as the server saw it.
type LinkRun struct {
	Client          dgrdma.PeerName
	Buffers, Size   int
	Messages, Bytes uint64
	KernelDrops     uint64 // of the whole host, meanwhile
	Took            time.Duration
}

// ServeLinks opens the ports at a host and receives from whoever dials them, until the
// context ends. ran, if not nil, is told of each link whose client ended it.
func ServeLinks(ctx context.Context, h *link.Host, ran func(LinkRun)) (*LinkServer, error) {
	if ran == nil {
		ran = func(LinkRun) {}
	}
	s := &LinkServer{ep: h.Endpoint(), giveUp: h.Endpoint().GiveUp(), ran: ran, ended: make(chan error)}
	context.AfterFunc(ctx, s.stopAwaiting)
	for _, name := range []string{MessagePort, StreamPort} {
		opt := &link.Options{}
		if name == MessagePort {
			opt.Handle = s.check
		}
		port, err := h.Listen(name, opt)
		if err != nil {
			return nil, err
		}
		go func() {
			for {
				l, err := port.Accept(ctx)
				if err != nil {
					return
				}
				s.came()
				go s.receive(ctx, l)
			}
		}()
	}
	if err := s.serveDrops(ctx, h); err != nil {
		return nil, err
	}
	return s, nil
}

// Ended tells how each client's links ended, one after the other.
func (s *LinkServer) Ended() <-chan error { return s.ended }

func (s *LinkServer) check(_ *link.Link, m link.Message) {
	if len(m.Bytes) >= 8 && binary.LittleEndian.Uint64(m.Bytes) != m.Number {
		s.wrong.Add(1)
	}
}

func (s *LinkServer) receive(ctx context.Context, l *link.Link) {
	var err error
	before := kernelDrops(s.ep)
	if l.Port() == StreamPort {
		_, err = io.Copy(io.Discard, l.In)
	} else if _, err = l.In.Recv(ctx); err == io.EOF {
		err = nil
	}
	if err == nil {
		r := linkRunOf(l.Stats())
		r.KernelDrops = kernelDrops(s.ep) - before
		s.ran(r)
	}
	err = cmp.Or(err, l.Close())
	if n := s.wrong.Swap(0); n > 0 {
		err = errors.Join(fmt.Errorf("messages that were not those that were sent: %d", n), err)
	}
	if s.went(err == nil && bytes.Equal(l.Private(), moreRuns), func() { s.over(ctx, ErrSilent) }) {
		s.over(ctx, err)
	}
}

func linkRunOf(s link.LinkStats) LinkRun {
	r := LinkRun{Client: s.Peer, Buffers: s.In.Buffers, Size: s.In.Size, Messages: s.In.Messages, Bytes: s.In.Bytes, Took: s.Age}
	if s.In.EndOfFile {
		r.Messages-- // which counts as one
	}
	return r
}

func (s *LinkServer) over(ctx context.Context, err error) {
	select {
	case s.ended <- err:
	case <-ctx.Done():
	}
}

// came notes that the next link came.
func (s *LinkServer) came() {
	s.stopAwaiting()
	s.mu.Lock()
	s.links++
	s.mu.Unlock()
}

func (s *LinkServer) stopAwaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaiting != nil {
		s.awaiting.Stop()
	}
}

// went notes that a link ended, and reports whether that was the client's last one. If
// another one follows, and does not come, late is called.
func (s *LinkServer) went(follows bool, late func()) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links--; follows && s.links == 0 {
		s.awaiting = time.AfterFunc(s.giveUp, late)
	}
	return !follows
}

// moreRuns is what a client sends along with a link behind which another one follows.
var moreRuns = []byte{1}

// LinkPlan is what a load on a link does.
type LinkPlan struct {
	Stream        bool // io.Copy makes messages, in place of one for each buffer
	Buffers, Size int
	Rate          uint64 // bytes per second at most; 0: no limit
	MoreRuns      bool   // another link follows soon
}

// DialLink dials a server of links and prepares a load on the link. Draining the load
// closes the link. How long buffers are away goes to times, if it is not nil: from when
// one was filled until it can be filled again, after the consumer gave it back.
func DialLink(ctx context.Context, h *link.Host, peerURL string, p LinkPlan, times *Histogram) (*link.Link, *Load, error) {
	port := MessagePort
	if p.Stream {
		port = StreamPort
	}
	opt := &link.Options{Buffers: p.Buffers, Size: p.Size}
	if p.MoreRuns {
		opt.Private = moreRuns
	}
	l, err := h.Dial(ctx, peerURL, port, opt)
	if err != nil {
		return nil, nil, err
	}
	if p.Rate > 0 {
		times = nil // buffers wait for us
	}
	buffers, size := l.Out.Buffers()
	away := newAbsence(times, buffers, size)
	if !p.Stream {
		return l, NewLoad(oneSlot(p.Size).paced(p.Rate), &messages{ctx: ctx, link: l, size: p.Size, away: away}, nil), nil
	}
	c := &copied{link: l, away: away}
	c.load = NewLoad(oneSlot(size).paced(p.Rate), c, nil)
	return l, c.load, nil
}

// oneSlot is a plan for a poster that blocks while it has no room, so that one slot is enough.
func oneSlot(size int) Plan { return Plan{Size: uint32(size), Depth: 1, Peers: 1, Active: 1} }

// paced is a plan with a rate.
func (p Plan) paced(rate uint64) Plan {
	p.Rate = rate
	return p
}

// absence times how long buffers are away, which come and go in turn.
type absence struct {
	times  *Histogram
	every  int // one of so many buffers is timed
	began  time.Time
	filled []time.Duration // each buffer: since began; 0: not yet
	at     int             // the buffer whose turn it is
}

func newAbsence(times *Histogram, buffers, size int) *absence {
	return &absence{times: times, every: int(timedOf(size)), began: time.Now(), filled: make([]time.Duration, buffers)}
}

func (a *absence) timed() bool { return a.times != nil && a.at%a.every == 0 }

// over notes that the next buffer is there.
func (a *absence) over() {
	if a.timed() && a.filled[a.at] != 0 {
		a.times.Add(time.Since(a.began) - a.filled[a.at])
	}
}

// begins notes that the buffer goes.
func (a *absence) begins() {
	if a.timed() {
		a.filled[a.at] = time.Since(a.began)
	}
	a.at = (a.at + 1) % len(a.filled)
}

// messages posts operations as messages. It fills nothing but the number: buffers hold
// what they held.
type messages struct {
	ctx  context.Context
	link *link.Link
	size int
	n    uint64
	away *absence
}

func (p *messages) Post(*Op) (complete bool, err error) {
	b, err := p.link.Out.Acquire(p.ctx)
	switch {
	case p.ctx.Err() != nil:
		return false, ErrInterrupted
	case err != nil:
		return false, err
	}
	p.away.over()
	if p.size >= 8 {
		binary.LittleEndian.PutUint64(b.Bytes, p.n)
	}
	p.n++
	p.away.begins()
	return true, p.link.Out.Commit(b, 0, p.size)
}

func (p *messages) Wait(ctx context.Context) error { return p.link.CloseContext(ctx) }

// copied posts the first operation, and all that follow it until the load is over, as
// what io.Copy reads: of each read one.
type copied struct {
	link   *link.Link
	load   *Load
	op     *Op
	read   bool          // op was, and is complete with the next read
	memory [1 << 18]byte // copied from, as a file in the cache is
	away   *absence
}

func (p *copied) Post(op *Op) (complete bool, err error) {
	p.op, p.read = op, false
	_, err = io.Copy(p.link.Out, p)
	return true, err
}

// Read reads into the next buffer.
func (p *copied) Read(b []byte) (int, error) {
	if p.read {
		if !p.load.goesOn() {
			return 0, io.EOF
		}
		p.load.count(p.op)
		p.load.begin(p.op)
	}
	p.away.over()
	p.read = true
	n := 0
	for n < len(b) {
		n += copy(b[n:], p.memory[:])
	}
	p.away.begins()
	return n, nil
}

func (p *copied) Wait(ctx context.Context) error { return p.link.CloseContext(ctx) }

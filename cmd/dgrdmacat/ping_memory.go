package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Where pings and answers go. Nothing less than 4 GiB of memory is there, so an
// endpoint of another kind refuses what is not meant for it, and nothing of it
// is overwritten (attack A18, SECURITY.md). Each connection has its own.
const (
	// pingService keeps pings out of other memory: see dgrdma.Config.
	pingService = "ping"
	pingAt      = 1<<32 - 4096
	pingWord    = pingAt     // number of the ping or answer
	pingBye     = pingAt + 4 // the client is through
	pingSize    = pingAt + 8 // how many bytes pings will have; answered with how many they may
	pingData    = pingAt + 64
	pingBytes   = 64
	// Pings of another size end at pingAt.

	// pingMemory is how large pings a server takes without --size. Arbitrary.
	pingMemory = 1 << 20
	// mostPing is how large --size may be. Arbitrary: it leaves others' memory alone.
	mostPing = 1 << 30
	// leastPing is so large that the number of a ping fits into a message.
	leastPing = 4
)

// pings is the memory of one side: pings or answers as they complete. Nobody looks at
// their bytes, so those of all peers go to the same place, and come from one.
type pings struct {
	of   func(*pingPeer) dgrdma.Memory // asked for each peer before anything of it comes
	sink []byte                        // written by who receives
	zero []byte                        // never written
}

// newPings makes the memory of a side for pings of up to so many bytes.
func newPings(most uint64, of func(*pingPeer) dgrdma.Memory) *pings {
	most = max(most, pingBytes)
	return &pings{of: of, sink: make([]byte, most), zero: make([]byte, most)}
}

// Size is for the endpoint's string: how large a ping may be.
func (p *pings) Size() uint64 { return uint64(len(p.sink)) }

// For implements [dgrdma.PerConn].
func (p *pings) For(c *dgrdma.Conn) dgrdma.Memory { return p.of(newPingPeer(c, p)) }

var errNoPing = fmt.Errorf("only pings are taken here: %w", dgrdma.ErrBounds)

// Admit is for who belongs to no connection.
func (p *pings) Admit(dgrdma.EndpointID, *dgrdma.Message) ([]byte, error) { return nil, errNoPing }
func (p *pings) Complete(dgrdma.EndpointID, *dgrdma.Message)              {}

// pingPeer is the other side: what it writes is told to arrived, on the
// goroutine that receives, and what follows from that is posted from there. To
// wake another one for it takes longer than everything else.
type pingPeer struct {
	conn    *dgrdma.Conn
	here    *pings
	arrived func(number uint32)
	bye     func()
	asked   func(size uint32)                 // the peer said how large pings will be, or may
	left    func(number uint32, at time.Time) // a ping or answer was posted
	failed  func(error)
	latest  atomic.Uint32 // number of what arrived last
	agreed  atomic.Uint32 // size of pings that end at pingAt; 0: none may
	size    atomic.Uint32 // of what is written: that of what arrived last

	mu     sync.Mutex
	t      *dgrdma.Transaction
	posted bool   // and not done yet
	owed   uint32 // to be written when it is

	saying atomic.Bool // say is under way
	said   dgrdma.Transaction
}

func newPingPeer(c *dgrdma.Conn, here *pings) *pingPeer {
	nothing := func() {}
	p := &pingPeer{
		conn: c, here: here, bye: nothing, arrived: func(uint32) {}, failed: func(error) {}, left: func(uint32, time.Time) {},
	}
	p.asked = p.agree
	p.size.Store(pingBytes)
	return p
}

// Admit implements [dgrdma.Memory].
func (p *pingPeer) Admit(_ dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	at, n := uint64(m.Addr), uint64(m.Len)
	if m.Completes() && m.CompletionAddr != pingWord && m.CompletionAddr != pingBye && m.CompletionAddr != pingSize {
		return nil, errNoPing
	}
	if n == 0 {
		return nil, nil
	}
	size, begin := uint64(pingBytes), uint64(pingData)
	if at < pingAt {
		size = uint64(p.agreed.Load())
		begin = pingAt - size
	}
	if at < begin || at+n > begin+size {
		return nil, errNoPing
	}
	p.size.Store(uint32(size))
	return p.here.sink[at-begin:][:n:n], nil
}

// agree answers how large pings may be: as large as the peer wants, or else as they fit.
func (p *pingPeer) agree(size uint32) {
	size = min(size, uint32(p.here.Size()))
	p.agreed.Store(size)
	p.say(size)
}

// say tells the peer a size. Who asks again before that is answered is not answered again.
func (p *pingPeer) say(size uint32) {
	if !p.saying.CompareAndSwap(false, true) {
		return
	}
	p.said = dgrdma.Transaction{Completion: dgrdma.Word(pingSize, size), Done: p.hasSaid}
	if err := p.conn.Post(&p.said); err != nil {
		p.hasSaid(nil, err)
	}
}

func (p *pingPeer) hasSaid(_ *dgrdma.Transaction, err error) {
	p.saying.Store(false)
	if err != nil {
		p.failed(err)
	}
}

// Complete implements [dgrdma.Memory].
func (p *pingPeer) Complete(_ dgrdma.EndpointID, m *dgrdma.Message) {
	switch m.CompletionAddr {
	case pingBye:
		p.bye()
		return
	case pingSize:
		p.asked(m.CompletionValue)
		return
	}
	p.latest.Store(m.CompletionValue)
	p.arrived(m.CompletionValue)
}

// write sends a ping or an answer. What was written before is mostly
// acknowledged by the very frame that made us call, but not until the end of
// its batch. To wait for that costs nothing, and then the frame leaves from
// this goroutine, which with another transaction under way would be the
// business of the sending one.
func (p *pingPeer) write(number uint32) {
	p.mu.Lock()
	if p.posted {
		p.owed = number
		p.mu.Unlock()
		return
	}
	p.post(number)
}

// writeAnyway is write that does not wait for what was written before.
func (p *pingPeer) writeAnyway(number uint32) {
	p.mu.Lock()
	if p.posted {
		p.t = nil
	}
	p.post(number)
}

// post is called with mu, which it gives back first: Post may call done.
func (p *pingPeer) post(number uint32) {
	if p.t == nil {
		p.t = &dgrdma.Transaction{
			Segments: make([]dgrdma.Segment, 1), Completion: dgrdma.Word(pingWord, 0), Done: p.done,
		}
	}
	t := p.t
	t.Segments[0] = p.segment()
	p.posted, p.owed = true, 0
	t.Completion = dgrdma.Word(t.Completion.Addr(), number)
	p.mu.Unlock()
	p.left(number, time.Now())
	if err := p.conn.Post(t); err != nil {
		p.done(t, err)
	}
}

// segment is where a ping or an answer goes.
func (p *pingPeer) segment() dgrdma.Segment {
	size := p.size.Load()
	at := uint32(pingData)
	if size != pingBytes {
		at = pingAt - size
	}
	return dgrdma.Segment{Addr: at, Bytes: p.here.zero[:size]}
}

func (p *pingPeer) done(t *dgrdma.Transaction, err error) {
	p.mu.Lock()
	if t == p.t {
		p.posted = false
	}
	if err != nil {
		p.owed = 0
	}
	if p.owed != 0 && !p.posted {
		p.post(p.owed)
		return
	}
	p.mu.Unlock()
	if err != nil {
		p.failed(err)
	}
}

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
	pingData    = pingAt + 64
	pingBytes   = 64
	// pingMemory is the size in the endpoint's string. Arbitrary: there has to
	// be one.
	pingMemory = 4096
)

// pings is the memory of one side: no bytes at all, but pings or answers as they
// complete.
type pings struct {
	of func(*pingPeer) dgrdma.Memory // asked for each peer before anything of it comes
}

// Size is for the endpoint's string.
func (p *pings) Size() uint64 { return pingMemory }

// For implements [dgrdma.PerConn].
func (p *pings) For(c *dgrdma.Conn) dgrdma.Memory { return p.of(newPingPeer(c)) }

var errNoPing = fmt.Errorf("only pings are taken here: %w", dgrdma.ErrBounds)

// Admit is for who belongs to no connection.
func (p *pings) Admit(dgrdma.EndpointID, *dgrdma.Message) ([]byte, error) { return nil, errNoPing }
func (p *pings) Complete(dgrdma.EndpointID, *dgrdma.Message)              {}

// pingPeer is the other side: what it writes is told to arrived, on the
// goroutine that receives, and what follows from that is posted from there. To
// wake another one for it takes longer than everything else.
type pingPeer struct {
	conn    *dgrdma.Conn
	arrived func(number uint32)
	bye     func()
	left    func(number uint32, at time.Time) // a ping or answer was posted
	failed  func(error)
	data    [pingBytes]byte
	latest  atomic.Uint32 // number of what arrived last

	mu     sync.Mutex
	t      *dgrdma.Transaction
	posted bool   // and not done yet
	owed   uint32 // to be written when it is
}

func newPingPeer(c *dgrdma.Conn) *pingPeer {
	nothing := func() {}
	return &pingPeer{
		conn: c, bye: nothing, arrived: func(uint32) {}, failed: func(error) {}, left: func(uint32, time.Time) {},
	}
}

// Admit implements [dgrdma.Memory].
func (p *pingPeer) Admit(_ dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	at, n := uint64(m.Addr), uint64(m.Len)
	if m.Completes() && m.CompletionAddr != pingWord && m.CompletionAddr != pingBye {
		return nil, errNoPing
	}
	if n == 0 {
		return nil, nil
	}
	if at < pingData || at+n > pingData+pingBytes {
		return nil, errNoPing
	}
	return p.data[at-pingData:][:n:n], nil
}

// Complete implements [dgrdma.Memory].
func (p *pingPeer) Complete(_ dgrdma.EndpointID, m *dgrdma.Message) {
	if m.CompletionAddr == pingBye {
		p.bye()
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
			Segments:   []dgrdma.Segment{{Addr: pingData, Bytes: make([]byte, pingBytes)}},
			Completion: dgrdma.Word(pingWord, 0), Done: p.done,
		}
	}
	t := p.t
	p.posted, p.owed = true, 0
	t.Completion = dgrdma.Word(t.Completion.Addr(), number)
	p.mu.Unlock()
	p.left(number, time.Now())
	if err := p.conn.Post(t); err != nil {
		p.done(t, err)
	}
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

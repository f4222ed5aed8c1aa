package link

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
	"github.com/dgrdma/dgrdma/link/budget"
)

// peer is what the host knows of a connection.
type peer struct {
	host         *Host
	conn         *dgrdma.Conn
	channel      *dgrdma.Channel
	grants       space.Table[*Link]
	wordAsData   [4]byte      // where words that come as data go; of the receive goroutine
	sendsLetters atomic.Bool  // letters came from it: it is a link host
	dials        atomic.Int32 // Dials that wait for it; counted with mu
	dialFailed   atomic.Bool  // a Dial ended that it had not answered
	budget       budget.Peer  // for messages to it

	mu         sync.Mutex
	abandoned  bool                    // the connection is closed, or about to be: see abandonIfNoAnswer
	replies    int                     // letters that wait, of a kind that may be left out
	links      map[uint32]*Link        // by this host's number
	dialed     map[uint64]*Link        // by the peer's attempt: those that it dialed
	pending    map[uint64]*pendingDial // by the peer's attempt: those that wait to be accepted
	quarantine quarantine              // the memory of ended links
	ended      map[uint32]*endedLink   // by this host's number

	endedByAttempt map[uint64]*endedLink // those that the peer dialed

	heartbeat struct {
		transaction dgrdma.Transaction
		busy        bool
	}
}

func (p *peer) String() string { return p.conn.Name().String() }

// add enters a link under its number.
func (p *peer) add(l *Link) {
	p.mu.Lock()
	p.links[l.number] = l
	if l.remoteNumber != 0 {
		p.dialed[l.attempt] = l
	}
	p.mu.Unlock()
	p.host.registry.add(l)
}

func (p *peer) link(number uint32) *Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links[number]
}

func (p *peer) all() []*Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.links))
}

// peerOf returns the host's peer for a connection; nil: the connection is another endpoint's.
func (h *Host) peerOf(c *dgrdma.Conn) *peer {
	if ch := c.Channel(ServiceName); ch != nil {
		if p := ch.Handler().(*peer); p.host == h {
			return p
		}
	}
	return nil
}

package link

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
)

// peer is what the host has of a connection.
type peer struct {
	host       *Host
	conn       *dgrdma.Conn
	channel    *dgrdma.Channel
	grants     space.Table[*Link]
	wordAsData [4]byte      // where words go that come as data; of who receives
	writes     atomic.Bool  // letters came from it: it is one of us
	dialing    atomic.Int32 // Dials that wait for it; counted with mu
	unanswered atomic.Bool  // a Dial ended that it had not answered
	spare      spare        // memory of messages to it
	sending    atomic.Int64 // bytes of such: see budget

	mu      sync.Mutex
	left    bool                  // the connection is closed, or about to be: see leaveIfSilent
	replies int                   // letters that wait, of a kind that may be left out
	links   map[uint32]*Link      // by our number
	dialed  map[uint64]*Link      // by the peer's attempt: those that it dialed
	offers  map[uint64]*offer     // by the peer's attempt: those that wait to be accepted
	apart   apart                 // the memory of ended links
	ended   map[uint32]*endedLink // by our number

	endedByAttempt map[uint64]*endedLink // those that the peer dialed

	pulse struct {
		t    dgrdma.Transaction
		busy bool
	}
}

func (p *peer) String() string { return p.conn.Name().String() }

// add makes a link known by its number.
func (p *peer) add(l *Link) {
	p.mu.Lock()
	p.links[l.number] = l
	if l.theirs != 0 {
		p.dialed[l.attempt] = l
	}
	p.mu.Unlock()
	p.host.roll.enter(l)
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

// everyLife stands for no life that links could be of.
const everyLife = 0

// fail ends all links but those of one life: nothing can come from the others
// any more. What was asked for in lives that are over is dropped.
func (p *peer) fail(err error, but uint32) {
	for _, l := range p.all() {
		if l.life != but {
			l.fail(err)
			l.orphan()
		}
	}
	p.forgetEnded(but)
	p.drop()
}

func (p *peer) beat() {
	if !p.conn.Profile().Session {
		return // other kinds may take it amiss
	}
	if p.unanswered.Load() {
		p.leaveIfSilent()
	}
	p.mu.Lock()
	idle := len(p.links)+len(p.ended)+len(p.offers) == 0 || p.pulse.busy
	p.pulse.busy = p.pulse.busy || !idle
	p.mu.Unlock()
	if idle {
		return
	}
	p.pulse.t = dgrdma.Transaction{Done: p.beaten}
	if err := p.channel.Flow().Post(&p.pulse.t); err != nil {
		p.beaten(nil, err)
	}
}

func (p *peer) beaten(_ *dgrdma.Transaction, err error) {
	p.mu.Lock()
	p.pulse.busy = false
	p.mu.Unlock()
	// Not every end of a life is an event: the transport may have failed, or the program
	// have called Reset.
	if err == nil {
		err = dgrdma.ErrReset
	}
	p.fail(err, p.conn.Life())
}

// Event implements [dgrdma.Handler]: it hears of peers that are gone.
func (p *peer) Event(ev dgrdma.Event) {
	switch {
	case ev.Kind == dgrdma.PeerDown && p.conn.Err() == nil: // somebody heard before us, and began anew
		p.fail(ev.Err, p.conn.Life())
	case ev.Kind == dgrdma.PeerDown:
		if p.host.own {
			// Whatever of its writes is still on the way must not arrive.
			p.conn.Close()
		}
		p.fail(ev.Err, everyLife)
	case ev.Kind == dgrdma.PeerRestarted: // or only seems to be: then no links are of a life before
		p.fail(&dgrdma.PeerError{ID: ev.Peer.ID, Addr: ev.Peer.Addr, Op: "link", Err: dgrdma.ErrPeerRestarted}, p.conn.Life())
	}
}

// sayGoodbye tells the peer of the end of all links by which nothing is under way, which
// stay as they are: what was delivered can be received.
func (p *peer) sayGoodbye() {
	for _, l := range p.all() {
		l.fail(ErrClosed)
		l.mu.Lock()
		tell := !l.said && !l.orphaned && !l.plain && l.pending.Load() == 0
		l.said = l.said || tell
		l.mu.Unlock()
		if tell {
			l.tell(hostClosed)
		}
	}
}

// hostClosed is what peers are told as the reason.
const hostClosed = "the host was closed"

// dismiss ends all links early, of which the peer is told.
func (p *peer) dismiss() {
	for _, l := range p.all() {
		l.leave(hostClosed)
	}
}

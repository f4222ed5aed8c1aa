package link

import (
	"context"
	"fmt"
	"sync"
)

// Listener accepts the links that others dial to a port.
type Listener struct {
	host *Host
	port string
	opt  Options

	offers  queue
	down    chan struct{}
	once    sync.Once
	refusal string // for everyone who dials, if not empty; guarded by the host's mu
}

const (
	// backlog is how many links may wait to be accepted at a port: of one peer no more
	// than there are places left for others. Arbitrary, like that of a socket.
	backlog = 2048
	// mostLinks is how many links a peer may dial to all ports, and how many letters may
	// wait for it when it dials another one. Arbitrary; the host's memory bounds the
	// links of all peers.
	mostLinks = 4096
)

// Listen offers a port. Options say what links to it are like.
func (h *Host) Listen(port string, opt *Options) (*Listener, error) {
	o, err := opt.or(Receive, port)
	if err != nil {
		return nil, err
	}
	l := &Listener{host: h, port: port, opt: o, down: make(chan struct{})}
	l.offers.init()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, ErrClosed
	case h.ports[port] != nil:
		return nil, fmt.Errorf("link: port %q is listened on already", port)
	}
	h.ports[port] = l
	if !h.welcomes {
		h.welcomes = true
		h.ep.Welcome(true)
	}
	return l, nil
}

// Port returns the name of the port.
func (n *Listener) Port() string {
	return n.port
}

// Close ends the port. Links that were accepted stay.
func (n *Listener) Close() error {
	n.once.Do(func() {
		n.host.mu.Lock()
		delete(n.host.ports, n.port)
		n.host.mu.Unlock()
		close(n.down)
		n.refuseAll("the port was closed")
	})
	return nil
}

// Refuse lets everyone who waits or dials from now on be refused for that reason,
// of which at most 256 bytes; an empty one ends that. Links that were accepted
// stay.
func (n *Listener) Refuse(why string) {
	n.host.mu.Lock()
	n.refusal = bounded(why)
	n.host.mu.Unlock()
	if why != "" {
		n.refuseAll(why)
	}
}

func (n *Listener) refuseAll(why string) {
	for o := n.offers.take(); o != nil; o = n.offers.take() {
		if o.claim() {
			o.p.refuse(o.life, &o.l, why)
		}
	}
}

// Accept waits for the next link; whoever gave up its Dial meanwhile is passed over. With
// a context that is done it takes none, also if one waits: the error is the context's
// cause, or ErrClosed. If the endpoint has failed the error says why.
func (n *Listener) Accept(ctx context.Context) (*Link, error) {
	defer n.offers.pass()
	for {
		seen := false
		n.host.drive(ctx, func() bool { seen = n.offers.len() > 0; return seen }, n.down)
		select {
		case <-n.down:
			return nil, ErrClosed
		default:
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if o := n.offers.take(); o != nil {
			why, agreed := n.vet(o)
			if !o.claim() || o.stale() {
				continue
			}
			if agreed {
				l, err := n.accept(o)
				if err == nil {
					return l, nil
				}
				why = err.Error()
			}
			o.p.refuse(o.life, &o.l, why)
			continue
		}
		if seen {
			continue // somebody else had it, who may not drive any more
		}
		select {
		case <-n.offers.more:
		case <-n.down:
			return nil, ErrClosed
		case <-n.host.ep.Done():
			return nil, fmt.Errorf("link: accept at port %q: %w", n.port, n.host.ep.Err())
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// vet asks about who dials, who waits meanwhile and may give up, and returns why not. A Vet
// that does not return leaves nobody without an answer.
func (n *Listener) vet(o *offer) (why string, agreed bool) {
	if n.opt.Vet == nil || o.stale() {
		return "", true
	}
	answered := false
	defer func() {
		if !answered && o.claim() {
			o.p.refuse(o.life, &o.l, "the listener failed when it was asked whether to accept")
		}
	}()
	err := n.opt.Vet(o.p.conn.Name(), o.l.private)
	if err != nil {
		why = err.Error() // the program's too
	}
	answered = true
	return why, err == nil
}

// accept makes the link and says so.
func (n *Listener) accept(o *offer) (*Link, error) {
	a := &o.l
	switch {
	case o.p.knows(a.attempt):
		return nil, fmt.Errorf("the attempt has a link already")
	case o.p.accepted() >= mostLinks:
		n.host.full.links.Add(1)
		return nil, fmt.Errorf("%d links of this peer's are open here", mostLinks)
	case n.host.endings.full(o.p):
		n.host.full.ended.Add(1)
		return nil, fmt.Errorf("too many ended links whose end you have not answered")
	case o.p.channel.Waiting() >= mostLinks:
		n.host.full.links.Add(1)
		return nil, fmt.Errorf("%d letters to this peer wait here", mostLinks)
	}
	l := newLink(o.p, o.life, n.port, a.attempt)
	l.theirs, l.heard, l.private = a.from, true, a.private
	yes := letter{kind: letterAccept, directions: a.directions, to: a.from, attempt: a.attempt, private: n.opt.Private}
	var in, out *half
	if a.directions&toListener != 0 {
		yes.out = n.opt.settle(a.out)
		in = &yes.out
		in.arrange()
		// Where the listener left the shape open, one dialer does not get it all.
		if open := n.opt.Buffers == 0 || n.opt.Size == 0; open && in.memory() > n.host.size/2 {
			return nil, fmt.Errorf("%d buffers of %d bytes take %d, more than half of the %d bytes of memory here: "+
				"dial with smaller Options.Buffers or Size, or listen with both set or in a host with more memory", in.Buffers, in.Size, in.memory(), n.host.size)
		}
	}
	if a.directions&toDialer != 0 {
		if !a.back.valid() {
			return nil, fmt.Errorf("the buffers offered cannot be written to")
		}
		out = &yes.back
	}
	if err := l.allocate(in, out, 1, &n.opt); err != nil {
		return nil, err
	}
	if l.In != nil {
		l.In.credits.begin(returnsCounted, a.out.Credit, 0)
	}
	if l.Out != nil {
		l.Out.begin(counting(&a.back))
	}
	o.p.add(l)
	yes.from = l.number
	o.p.send(l.life, yes) // which ends the link if that life is over
	return l, nil
}

// refuse answers a letter that asks for a link.
func (p *peer) refuse(life uint32, a *letter, why string) { p.refuseFor(0, life, a, why) }

// refuseFor is refuse with a code for the dialer's program.
func (p *peer) refuseFor(code refusal, life uint32, a *letter, why string) {
	p.send(life, letter{kind: letterRefuse, to: a.from, attempt: a.attempt, refusal: code, text: bounded(why)})
}

// read acts on a letter. It runs on the goroutine that receives.
func (p *peer) read(l letter, err error) {
	life := p.conn.Life() // what is applied is of the present one
	if err != nil {
		switch x := p.link(l.to); {
		case l.kind == letterOpen:
			p.refuse(life, &l, err.Error())
		case l.kind == letterRefuse && x != nil && x.attempt == l.attempt:
			x.say(err)
		}
		return // noise: whoever waits for an answer has a deadline
	}
	switch l.kind {
	case letterOpen:
		p.offered(life, &l)
	case letterAccept, letterRefuse:
		x := p.link(l.to)
		if x != nil && x.attempt == l.attempt && (x.answered(&l) || l.kind == letterRefuse) {
			return
		}
		if l.kind == letterRefuse {
			p.confirmed(l.to, l.attempt)
			return
		}
		// Nobody waits any more; the other side does not know whom its link is with.
		p.send(life, letter{kind: letterClose, to: l.from, attempt: l.attempt})
	case letterClose:
		x := p.link(l.to)
		if l.to == 0 {
			x = p.byAttempt(l.attempt)
		}
		switch {
		case x != nil && x.attempt == l.attempt:
			x.peerLeft(l.text, l.hadAll)
		case p.confirmed(l.to, l.attempt):
		case l.to == 0: // who knows no number of ours gave up before there was one
			p.withdraw(l.attempt)
		}
	}
}

// offered gives a letter to whom it is for.
func (p *peer) offered(life uint32, l *letter) {
	// Until the offer is in, the port cannot be closed.
	h := p.host
	h.mu.Lock()
	defer h.mu.Unlock()
	port := h.ports[l.name]
	switch {
	case l.from == 0: // nobody can be answered
	case port == nil:
		p.refuseFor(noPort, life, l, fmt.Sprintf("no port %q here: check its name, and that this host listens on it by now", l.name))
	case l.directions == 0 || l.directions&^port.opt.takes() != 0:
		p.refuse(life, l, fmt.Sprintf("port %q is not for that direction: check Options.Directions at both ends", l.name))
	case port.refusal != "":
		p.refuse(life, l, port.refusal)
	case p.waiting() >= backlog-port.offers.len():
		h.full.backlog.Add(1)
		p.refuse(life, l, fmt.Sprintf("too many wait at port %q", l.name))
	default:
		o := &offer{p: p, life: life, l: *l, port: port}
		if !o.wait() {
			p.refuse(life, l, "the attempt waits already")
		} else if o.stale() { // and its end may have been told before it waited
			o.end()
		}
	}
}

// takes returns which directions may be dialed to a listener.
func (o *Options) takes() (d direction) {
	if o.Directions&Receive != 0 {
		d |= toListener
	}
	if o.Directions&Send != 0 {
		d |= toDialer
	}
	return d
}

// byAttempt returns a link that the peer dialed, of which it does not know our number.
func (p *peer) byAttempt(attempt uint64) *Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dialed[attempt]
}

// knows reports whether an attempt of the peer's has made a link, which may be over.
func (p *peer) knows(attempt uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dialed[attempt] != nil || p.endedByAttempt[attempt] != nil
}

// accepted returns how many links of the peer's there are, of which it has not said that
// they are over.
func (p *peer) accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.dialed) + len(p.endedByAttempt)
}

// undelivered is told of a letter that did not arrive: the peer's life is over.
func (p *peer) undelivered(l *letter, err error) {
	if x := p.link(l.from); x != nil {
		x.fail(err)
		x.orphan()
	} else {
		p.confirmed(l.from, l.attempt)
	}
}

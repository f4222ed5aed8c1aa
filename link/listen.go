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

	pending pendingQueue
	down    chan struct{}
	once    sync.Once
	refusal string // the reason for which all dialers are refused, if not empty; guarded by the host's mu
}

// Listen opens a port. Options say what links to it are like.
func (h *Host) Listen(port string, opt *Options) (*Listener, error) {
	o, err := opt.withDefaults(Receive, port)
	if err != nil {
		return nil, err
	}
	l := &Listener{host: h, port: port, opt: o, down: make(chan struct{})}
	l.pending.init()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, ErrClosed
	case h.ports[port] != nil:
		return nil, fmt.Errorf("link: port %q is listened on already", port)
	}
	h.ports[port] = l
	if !h.acceptsAny {
		h.acceptsAny = true
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

// Refuse has all links that wait, and all dialed from now on, refused for that reason, of which at
// most 256 bytes. An empty reason ends that. Links that were accepted stay.
func (n *Listener) Refuse(why string) {
	n.host.mu.Lock()
	n.refusal = bounded(why)
	n.host.mu.Unlock()
	if why != "" {
		n.refuseAll(why)
	}
}

func (n *Listener) refuseAll(why string) {
	for o := n.pending.take(); o != nil; o = n.pending.take() {
		if o.take() {
			o.p.refuse(o.life, &o.letter, why)
		}
	}
}

// Accept waits for the next link. A dialer that gave up is passed over. With a context that is done
// Accept takes no link, also if one waits: the error is the context's cause, or ErrClosed. If the
// endpoint has failed the error says why.
func (n *Listener) Accept(ctx context.Context) (*Link, error) {
	defer n.pending.signalRest()
	for {
		seen := false
		n.host.poll(ctx, func() bool { seen = n.pending.len() > 0; return seen }, n.down)
		select {
		case <-n.down:
			return nil, ErrClosed
		default:
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if o := n.pending.take(); o != nil {
			why, agreed := n.filter(o)
			if !o.take() || o.isStale() {
				continue
			}
			if agreed {
				l, err := n.accept(o)
				if err == nil {
					return l, nil
				}
				why = err.Error()
			}
			o.p.refuse(o.life, &o.letter, why)
			continue
		}
		if seen {
			continue // another goroutine took it, which need not poll any more
		}
		select {
		case <-n.pending.more:
		case <-n.down:
			return nil, ErrClosed
		case <-n.host.ep.Done():
			return nil, fmt.Errorf("link: accept at port %q: %w", n.port, n.host.ep.Err())
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// filter calls Options.Filter for a dialer, which waits and may give up in that time, and returns the
// reason of a refusal.
func (n *Listener) filter(o *pendingDial) (why string, agreed bool) {
	if n.opt.Filter == nil || o.isStale() {
		return "", true
	}
	if err := n.opt.Filter(o.p.conn.Name(), o.letter.private); err != nil {
		return err.Error(), false
	}
	return "", true
}

// accept makes the link and tells the dialer.
func (n *Listener) accept(o *pendingDial) (*Link, error) {
	a := &o.letter
	switch {
	case o.p.hasAttempt(a.attempt):
		return nil, fmt.Errorf("the attempt has a link already")
	case o.p.countAccepted() >= mostLinks:
		n.host.counters.links.Add(1)
		return nil, fmt.Errorf("%d links of this peer's are open here", mostLinks)
	case n.host.endedLinks.full(o.p.hostName()):
		n.host.counters.ended.Add(1)
		return nil, fmt.Errorf("this host waits for the answers to the ends of too many links of this peer's host")
	case o.p.channel.Waiting() >= mostLinks:
		n.host.counters.links.Add(1)
		return nil, fmt.Errorf("%d letters to this peer wait here", mostLinks)
	}
	l := newLink(o.p, o.life, n.port, a.attempt)
	l.remoteNumber, l.answered, l.private = a.from, true, a.private
	yes := letter{kind: letterAccept, directions: a.directions, to: a.from, attempt: a.attempt, private: n.opt.Private}
	var in, out *half
	if a.directions&toListener != 0 {
		yes.out = n.opt.chooseShape(a.out)
		in = &yes.out
		in.setPitches()
		// Where the listener left the shape open, one dialer does not get all memory.
		if open := n.opt.Buffers == 0 || n.opt.Size == 0; open && in.memory() > n.host.size/2 {
			return nil, fmt.Errorf("%d buffers of %d bytes take %d, more than half of the %d bytes of memory here: "+
				"dial with smaller Options.Buffers or Size, or listen with both set or in a host with more memory", in.Buffers, in.Size, in.memory(), n.host.size)
		}
	}
	if a.directions&toDialer != 0 {
		if !a.back.isValid() {
			return nil, fmt.Errorf("the buffers offered cannot be written to")
		}
		out = &yes.back
	}
	if err := l.allocate(in, out, 1, &n.opt); err != nil {
		return nil, err
	}
	if l.In != nil {
		l.In.growth.allowed = n.opt.Grow || n.opt.Buffers == 0 && a.out.Buffers == 0
		l.In.credits.setAddress(returnsCounted, a.out.Credit, 0)
	}
	if l.Out != nil {
		l.Out.setLayout(remoteLayout(&a.back))
	}
	o.p.add(l)
	yes.from = l.number
	o.p.send(l.life, yes) // which ends the link if that life is over
	return l, nil
}

// takeOpen gives a letter that asks for a link to its port.
func (p *peer) takeOpen(life uint32, l *letter) {
	// The port cannot be closed until the pending dial is in.
	h := p.host
	h.mu.Lock()
	defer h.mu.Unlock()
	port := h.ports[l.name]
	switch {
	case l.from == 0: // an answer would reach no link
	case port == nil:
		p.refuseFor(noPort, life, l, fmt.Sprintf("no port %q here: check its name, and that this host listens on it by now", l.name))
	case l.directions == 0 || l.directions&^port.opt.directions() != 0:
		p.refuse(life, l, fmt.Sprintf("port %q is not for that direction: check Options.Directions at both ends", l.name))
	case port.refusal != "":
		p.refuse(life, l, port.refusal)
	case p.countPending() >= backlog-port.pending.len():
		h.counters.backlog.Add(1)
		p.refuse(life, l, fmt.Sprintf("too many links wait at port %q: try again later", l.name))
	default:
		o := &pendingDial{p: p, life: life, letter: *l, queue: &port.pending}
		if !o.enqueue() {
			p.refuse(life, l, "the attempt waits already")
		} else if o.isStale() { // its end may have been told before it was in the queue
			o.cancel()
		}
	}
}

// directions returns which directions may be dialed to a listener.
func (o *Options) directions() (d direction) {
	if o.Directions&Receive != 0 {
		d |= toListener
	}
	if o.Directions&Send != 0 {
		d |= toDialer
	}
	return d
}

// byAttempt returns a link that the peer dialed, for a letter without this side's number.
func (p *peer) byAttempt(attempt uint64) *Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dialed[attempt]
}

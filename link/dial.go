package link

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Dial makes a link to a port of the host with that URL, and waits for the Accept of its listener. The
// name of a host in the URL is looked up within the context. A URL that ends after its UDP port,
// udp:10.0.0.2:7100, is enough: see [dgrdma.Endpoint.LookupPeer]. A context without a deadline is
// given the time after which a silent peer counts as dead. With a context that is done Dial sends
// nothing: the error is the context's cause.
//
// A peer that does not answer in time, for whatever reason, is [ErrNoAnswer]: also dgrdma.ErrPeerDown
// if nothing was heard of the peer for so long, and context.DeadlineExceeded if the context's own
// deadline came. A host that says that it takes no session with this one is dgrdma.ErrRefused within a
// few round trips, with the reason. It does so where nothing is listened on: open the listener before
// others dial, or dial again. Only where it has no room for another peer Dial waits. What a Dial that
// failed asked for is cancelled: once the peer has heard that, no Accept takes it.
func (h *Host) Dial(ctx context.Context, peerURL, port string, opt *Options) (*Link, error) {
	o, err := opt.withDefaults(Send, port)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := h.checkOpen(); err != nil {
		return nil, err
	}
	if _, has := ctx.Deadline(); !has {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, h.ep.GiveUp(), ErrNoAnswer)
		defer cancel()
	}
	p, err := h.peerAt(ctx, peerURL)
	for err == nil && !p.beginDial() {
		p, err = h.peerAt(ctx, peerURL)
	}
	if err != nil {
		return nil, err
	}
	defer p.endDial()
	return p.dial(ctx, port, &o)
}

// peerAt finds or makes the connection to a host.
func (h *Host) peerAt(ctx context.Context, peerURL string) (*peer, error) {
	c, err := h.connect(ctx, peerURL)
	if err != nil {
		return nil, err
	}
	if !c.Profile().Session {
		return nil, fmt.Errorf("link: dial %s: a peer of kind %s knows no handshake: connect it by Offer or Attach", peerURL, c.Profile().Name)
	}
	return h.peerOf(c), nil
}

// beginDial counts a Dial. Not ok: the connection was abandoned, and another one is to be made.
func (p *peer) beginDial() (ok bool) {
	p.mu.Lock()
	left := p.abandoned
	if !left {
		p.dials.Add(1)
	}
	p.mu.Unlock()
	if left {
		p.conn.Close() // as abandonIfNoAnswer does
	}
	return !left
}

// endDial takes a Dial off the count.
func (p *peer) endDial() {
	p.mu.Lock()
	p.dials.Add(-1)
	p.mu.Unlock()
	if p.dialFailed.Load() && !p.hasReceived() {
		p.abandonIfNoAnswer() // otherwise the heartbeat does
	}
}

// connect finds or makes a connection.
func (h *Host) connect(ctx context.Context, peerURL string) (*dgrdma.Conn, error) {
	want, err := h.ep.LookupPeer(ctx, peerURL)
	if errors.Is(err, dgrdma.ErrPeerDown) && !errors.Is(err, ErrNoAnswer) {
		err = fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	if err != nil {
		return nil, err
	}
	for {
		// Before one is made: there may be no room for another.
		for _, c := range h.ep.Conns() {
			if name := c.Name(); name.ID == want.ID && name.Addr.WithLocal(netip.Addr{}) == want.Addr {
				if c.Err() == nil {
					return c, nil
				}
				// The peer was given up. A reset begins a new life: others may need the connection on a shared
				// endpoint, unless this machine lost the address that it was made from.
				if !h.ownsEndpoint && c.Reset(0) == nil {
					return c, nil
				}
				c.Close()
			}
		}
		c, err := h.ep.Connect(want)
		if !errors.Is(err, dgrdma.ErrPeerExists) {
			return c, err
		}
	}
}

// dial asks for a link until it is answered.
func (p *peer) dial(ctx context.Context, port string, o *Options) (*Link, error) {
	for {
		l, err := p.request(ctx, port, o)
		if errors.Is(err, dgrdma.ErrPeerRestarted) && ctx.Err() == nil {
			continue // the request was for the life before, of whose end this side had not heard
		}
		return l, err
	}
}

func (p *peer) request(ctx context.Context, port string, o *Options) (*Link, error) {
	var b [8]byte
	rand.Read(b[:])
	l := newLink(p, p.conn.Life(), port, binary.LittleEndian.Uint64(b[:]))
	open := letter{kind: letterOpen, attempt: l.attempt, name: port, private: o.Private}
	var in, out *half
	if o.Directions&Receive != 0 {
		open.directions |= toDialer
		open.back = o.chooseShape(half{})
		in = &open.back
	}
	if o.Directions&Send != 0 {
		open.directions |= toListener
		open.out = half{Buffers: uint32(o.Buffers), Size: uint32(o.Size)}
		out = &open.out
	}
	if err := l.allocate(in, out, 1, o); err != nil {
		return nil, err
	}
	if l.In != nil {
		l.In.growth.allowed = o.Grow || o.Buffers == 0
	}
	open.from = l.number
	p.add(l)
	p.post(addressed{letter: open, life: l.life, done: func(err error) { l.requestArrived.Store(err == nil) }})
	err := l.awaitAnswer(ctx)
	if err != nil {
		err = l.wrap("dial", l.explainNoAnswer(err))
		l.fail(err)
		l.setClosed() // which cancels it at the peer
		p.dialFailed.Store(true)
		return nil, err
	}
	return l, nil
}

// takeAnswer takes the listener's answer, on the receive goroutine: messages may follow at once. It
// reports whether the link is still wanted.
func (l *Link) takeAnswer(a *letter) bool {
	l.mu.Lock()
	first := !l.answered && !l.peerClosed
	if first {
		l.answered, l.remoteNumber = true, a.from
		l.peerClosed = a.kind == letterRefuse // a listener that refuses knows nothing of the link
	}
	// A link that ends once Dial has returned knows the listener's number, and tells the listener itself.
	wanted := !l.closed.Load()
	l.mu.Unlock()
	if first {
		l.deliverAnswer(l.applyAnswer(a))
	}
	l.advance()
	l.recheckEnded()
	return wanted
}

// deliverAnswer gives Dial its result.
func (l *Link) deliverAnswer(err error) {
	select {
	case l.answer <- err:
	default: // an honest peer sends one answer only
	}
}

// awaitAnswer waits for the listener's answer, which wins over an end of the link that came after it.
func (l *Link) awaitAnswer(ctx context.Context) error {
	l.host.poll(ctx, func() bool { return len(l.answer) > 0 }, l.down)
	var over error
	select {
	case err := <-l.answer:
		return err
	case <-l.down:
		over = l.Err()
	case <-ctx.Done():
		over = context.Cause(ctx)
	}
	select {
	case err := <-l.answer:
		return err
	default:
		return over
	}
}

// explainNoAnswer adds to the error of a wait for an answer what is known of the peer.
func (l *Link) explainNoAnswer(err error) error {
	var other *dgrdma.ServiceError
	if errors.As(err, &other) {
		return other
	}
	if keyless := l.peer.conn.NoKey(); keyless != nil {
		return keyless // whether the peer was given up for that, or a deadline as long as that came first
	}
	if refusal := l.peer.conn.Refusal(); refusal != nil {
		return refusal // the same
	}
	if errors.Is(err, dgrdma.ErrPeerClosed) {
		return err // it needs no explanation
	}
	if !errors.Is(err, ErrNoAnswer) && !errors.Is(err, dgrdma.ErrPeerDown) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		err = e.Err
	}
	down := errors.Is(err, dgrdma.ErrPeerDown)
	why := "frames of it came, but no answer: check that a link host runs there"
	switch {
	case !l.peer.hasReceived():
		why = "nothing was heard of it: check that a link host runs there, and its URL"
		if err == ErrNoAnswer {
			err = dgrdma.ErrPeerDown // a deadline as long as that may hide it
		}
	case l.requestArrived.Load() && !down:
		why = "it has the request: Dial waits for Accept there"
	}
	if err == ErrNoAnswer {
		return fmt.Errorf("%w: %s", err, why)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoAnswer, why, err)
}

// applyAnswer sets up the halves as the listener's answer says.
func (l *Link) applyAnswer(a *letter) error {
	if a.kind == letterRefuse {
		return &refusedError{a.refusal, printable(a.text)}
	}
	if a.from == 0 {
		return fmt.Errorf("it gives the link no number: %w", ErrProtocol)
	}
	l.private = a.private
	if l.Out != nil {
		if !a.out.isValid() {
			return fmt.Errorf("it describes no buffers that could be written to: %w", ErrProtocol)
		}
		l.Out.setLayout(remoteLayout(&a.out))
	}
	if l.In != nil {
		l.In.credits.setAddress(returnsCounted, a.back.Credit, 0)
	}
	return nil
}

// remoteLayout returns where a link host wants messages.
func remoteLayout(h *half) outLayout {
	return outLayout{
		buffers: uint64(h.Buffers), size: int(h.Size), data: h.Data, pitch: h.Pitch,
		flags: h.Flags, flagPitch: h.FlagPitch, returns: returnsCounted,
	}
}

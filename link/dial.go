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

// Dial makes a link to a port of the host with that URL, and waits for the Accept of
// its listener. The name of a host in the URL is looked up within the context, and a URL that
// ends behind its UDP port, udp:10.0.0.2:7100, is enough: see [dgrdma.Endpoint.LookupPeer]. Without
// a deadline the context is given the time after which a silent peer counts as dead. Who does not answer in time, for whatever reason, is
// [ErrNoAnswer]: also dgrdma.ErrPeerDown if nothing was heard of the peer for so long,
// and context.DeadlineExceeded if the context's own deadline came. What a Dial asked for
// that failed is withdrawn: once the peer has heard that, nobody accepts it any more. With a context that is done it
// sends nothing: the error is the context's cause.
func (h *Host) Dial(ctx context.Context, peerURL, port string, opt *Options) (*Link, error) {
	o, err := opt.or(Send, port)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	if _, has := ctx.Deadline(); !has {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, h.ep.GiveUp(), ErrNoAnswer)
		defer cancel()
	}
	p, err := h.peerAt(ctx, peerURL)
	for err == nil && !p.enter() {
		p, err = h.peerAt(ctx, peerURL)
	}
	if err != nil {
		return nil, err
	}
	defer p.exit()
	return p.dial(ctx, port, &o)
}

// peerAt finds or makes the connection to a host.
func (h *Host) peerAt(ctx context.Context, peerURL string) (*peer, error) {
	c, err := h.connect(ctx, peerURL)
	if err != nil {
		return nil, err
	}
	if !c.Profile().Session {
		return nil, fmt.Errorf("link: dial %s: a peer of kind %s knows no handshake; connect it by Offer or Attach", peerURL, c.Profile().Name)
	}
	return h.peerOf(c), nil
}

// enter counts a Dial. Not ok: the connection was left, and another one is to be made.
func (p *peer) enter() (ok bool) {
	p.mu.Lock()
	left := p.left
	if !left {
		p.dialing.Add(1)
	}
	p.mu.Unlock()
	if left {
		p.conn.Close() // as who left it does
	}
	return !left
}

// exit counts it no more.
func (p *peer) exit() {
	p.mu.Lock()
	p.dialing.Add(-1)
	p.mu.Unlock()
	if p.unanswered.Load() && !p.heard() {
		p.leaveIfSilent() // else the heartbeat does
	}
}

// heard reports whether anything came from the peer.
func (p *peer) heard() bool { return p.conn.Stats().FramesReceived > 0 }

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
		// Before it is made anew: there may be no room for another.
		for _, c := range h.ep.Conns() {
			if name := c.Name(); name.ID == want.ID && name.Addr.WithLocal(netip.Addr{}) == want.Addr {
				if c.Err() == nil {
					return c, nil
				}
				// It was given up; begin anew. Others may need it on a shared endpoint, unless
				// this machine lost the address that it was made from.
				if !h.own && c.Reset(0) == nil {
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
		l, err := p.ask(ctx, port, o)
		if errors.Is(err, dgrdma.ErrPeerRestarted) && ctx.Err() == nil {
			continue // what we said was for the life before, of whose end we had not heard
		}
		return l, err
	}
}

func (p *peer) ask(ctx context.Context, port string, o *Options) (*Link, error) {
	var b [8]byte
	rand.Read(b[:])
	l := newLink(p, p.conn.Life(), port, binary.LittleEndian.Uint64(b[:]))
	open := letter{kind: letterOpen, attempt: l.attempt, name: port, private: o.Private}
	var in, out *half
	if o.Directions&Receive != 0 {
		open.directions |= toDialer
		open.back = o.settle(half{})
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
	open.from = l.number
	p.add(l)
	p.post(addressed{letter: open, life: l.life, settled: func(err error) { l.asked.Store(err == nil) }})
	err := l.await(ctx)
	if err != nil {
		err = l.wrap("dial", l.unanswered(err))
		l.fail(err)
		l.end() // which withdraws it
		p.unanswered.Store(true)
		return nil, err
	}
	return l, nil
}

// answered takes what the listener says, on the goroutine that receives: messages
// may follow at once. It reports whether the link is still wanted.
func (l *Link) answered(a *letter) bool {
	l.mu.Lock()
	first := !l.heard && !l.peerClosed
	if first {
		l.heard, l.theirs = true, a.from
		l.peerClosed = a.kind == letterRefuse // it knows nothing of the link
	}
	// Who ends the link once Dial has returned knows the listener's number, and says why.
	wanted := !l.ending.Load()
	l.mu.Unlock()
	if first {
		l.say(l.settleDial(a))
	}
	l.advance()
	l.recheck()
	return wanted
}

// say tells the dialer how it went.
func (l *Link) say(err error) {
	select {
	case l.answer <- err:
	default: // there is but one from an honest peer
	}
}

// await waits for what the listener says, which wins over the end of the link behind it.
func (l *Link) await(ctx context.Context) error {
	l.host.drive(ctx, func() bool { return len(l.answer) > 0 }, l.down)
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

// unanswered says of an end of the wait for an answer what is known of the peer.
func (l *Link) unanswered(err error) error {
	var other *dgrdma.ServiceError
	if errors.As(err, &other) {
		return other
	}
	if keyless := l.peer.conn.NoKey(); keyless != nil {
		return keyless // whether the peer was given up for that, or a deadline as long as that came first
	}
	if errors.Is(err, dgrdma.ErrPeerClosed) {
		return err // which says all
	}
	if !errors.Is(err, ErrNoAnswer) && !errors.Is(err, dgrdma.ErrPeerDown) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		err = e.Err
	}
	down := errors.Is(err, dgrdma.ErrPeerDown)
	why := "it was heard, but takes no request; is it a link host, and still there?"
	switch {
	case !l.peer.heard():
		why = "nothing was heard of it; is a link host there, and is this its URL?"
		if err == ErrNoAnswer {
			err = dgrdma.ErrPeerDown // which a deadline as long as that may hide
		}
	case l.asked.Load() && !down:
		why = "it has the request, and Dial waits for Accept there"
	}
	if err == ErrNoAnswer {
		return fmt.Errorf("%w: %s", err, why)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoAnswer, why, err)
}

// settleDial acts on the answer.
func (l *Link) settleDial(a *letter) error {
	if a.kind == letterRefuse {
		return &refusedError{a.refusal, printable(a.text)}
	}
	if a.from == 0 {
		return fmt.Errorf("it gives the link no number: %w", ErrProtocol)
	}
	l.private = a.private
	if l.Out != nil {
		if !a.out.valid() {
			return fmt.Errorf("it describes no buffers that could be written to: %w", ErrProtocol)
		}
		l.Out.begin(counting(&a.out))
	}
	if l.In != nil {
		l.In.credits.begin(returnsCounted, a.back.Credit, 0)
	}
	return nil
}

// counting is how hosts want each other's messages.
func counting(h *half) outWire {
	return outWire{
		buffers: uint64(h.Buffers), size: int(h.Size), data: h.Data, pitch: h.Pitch,
		flags: h.Flags, flagPitch: h.FlagPitch, returns: returnsCounted,
	}
}

// leaveIfSilent ends the connection with a peer that never wrote a letter, when nobody
// waits for one: it may be of another kind, and would keep the memory that it was told of
// for ever. A link host where nobody accepts may be silent, too: whoever was heard is first
// told that nothing is asked of it any more, which that answers. On a shared endpoint
// others may need the connection.
func (p *peer) leaveIfSilent() {
	if !p.host.own || p.writes.Load() {
		return
	}
	heard := p.heard()
	p.mu.Lock()
	leave := p.dialing.Load() == 0
	for _, l := range p.links {
		leave = leave && l.ending.Load() && (!heard || l.hasTold())
	}
	for _, e := range p.ended {
		leave = leave && (!heard || isClosed(e.told))
	}
	p.left = p.left || leave
	p.mu.Unlock()
	if leave {
		p.conn.Close()
		p.fail(ErrNoAnswer, everyLife)
	}
}

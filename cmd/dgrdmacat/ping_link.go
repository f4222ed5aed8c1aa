package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// Ping over a link: messages there and back, each answered where it arrives. They begin
// with their number.
const (
	pingPort = "ping"
	// pingLinkBuffers is how many buffers there are for small pings, and
	// leastLinkBuffers for any: a message each way, and the end behind it.
	pingLinkBuffers  = 64
	leastLinkBuffers = 2
	// pingLinkMemory is enough for the largest messages, of several clients at once.
	pingLinkMemory = 32 << 20
)

// pingLinkOptions are those of a link for pings of a size: 0 leaves that to the other side.
func pingLinkOptions(size int, handle func(*link.Link, link.Message)) *link.Options {
	o := &link.Options{Directions: link.Both, Handle: handle}
	if size > 0 {
		o.Buffers, o.Size = max(pingLinkBuffers*pingBytes/size, leastLinkBuffers), size
	}
	return o
}

func pingLinkServe(ctx context.Context, o *pingOptions, stderr io.Writer) error {
	local, err := parseServed("--serve", o.serve)
	if err != nil {
		return err
	}
	h, err := openHost(stderr, local, pingLinkMemory, dgrdma.Config{Manual: o.busyPoll, BusyPoll: o.busyPoll})
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.host(h)
	port, err := h.Listen(pingPort, pingLinkOptions(0, new(outbox).answer))
	if err != nil {
		return err
	}
	if err := o.urlFile.write(h.URL()); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "answering on %s\n%s%s may dial port %q\n", h.URL(), reach(h.Endpoint()), anybody(local), pingPort)
	log := newPeerLog(stderr)
	defer log.close()
	accepting, stop := context.WithCancel(ctx)
	defer stop()
	var links sync.WaitGroup
	defer links.Wait()
	var first sync.Once
	var served error
	for {
		l, err := port.Accept(accepting)
		switch {
		case err != nil && ctx.Err() != nil && !o.once:
			return nil
		case err != nil && ctx.Err() == nil && accepting.Err() != nil:
			attendFor(farewell, o.pollOf(h.Endpoint()), nil) // for the last acknowledgements
			return served
		case err != nil:
			return err
		}
		links.Go(func() {
			err := endOf(accepting, l, o.busyPoll)
			s := l.Stats()
			n := s.In.Messages
			if s.In.EndOfFile {
				n-- // which counts as one
			}
			bounded, cancel := context.WithTimeout(ctx, 10*farewell)
			l.CloseContext(bounded)
			cancel()
			switch {
			case accepting.Err() != nil:
				err = nil
			case o.once:
				first.Do(func() { served = err; stop() })
				err = nil
			}
			if of := (*link.Error)(nil); errors.As(err, &of) {
				err = of.Err // the peer is said already
			}
			sayPinged(log, s.Peer, n, uint32(s.In.Bytes/max(n, 1)), err)
		})
	}
}

// endOf waits for the end of a link. With manual the goroutine that accepts drives the
// endpoint, and this one must not.
func endOf(ctx context.Context, l *link.Link, manual bool) error {
	if !manual {
		if _, err := l.In.Recv(ctx); err != io.EOF {
			return err
		}
		return nil
	}
	select {
	case <-l.Done():
	case <-l.Peer().Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s := l.Stats().In; s != nil && s.EndOfFile {
		return nil
	}
	return cmp.Or(l.Err(), l.Peer().Err())
}

// answer sends a message back. A client that does not take them as fast as it sends, or to which
// the wire does not carry them as fast, misses some.
func (o *outbox) answer(l *link.Link, m link.Message) {
	if m.EOF {
		return
	}
	o.send(l, m.Opcode, len(m.Bytes), func(b []byte) int { return copy(b, m.Bytes) })
}

func pingLinkTo(ctx context.Context, o *pingOptions, stdout, stderr io.Writer) error {
	local, peer, err := parseEnds(ctx, stderr, o.to, o.local)
	if err != nil {
		return o.notFound(peer, err, stdout)
	}
	h, err := openHost(stderr, local, pingLinkMemory, dgrdma.Config{Manual: o.busyPoll, BusyPoll: o.busyPoll})
	if err != nil {
		return err
	}
	defer h.Close()
	o.metrics.host(h)
	stopSaying := sayUnheard(stderr, h.Endpoint(), local, peer)
	defer stopSaying()
	c := newPingClient(o, wireName(peer), stdout, stderr)
	size := int(o.size.value)
	l, err := h.Dial(ctx, peer.String(), pingPort, pingLinkOptions(size, func(_ *link.Link, m link.Message) {
		if len(m.Bytes) == size {
			c.arrived(binary.LittleEndian.Uint32(m.Bytes))
		}
	}))
	if errors.Is(err, link.ErrRefused) && !errors.Is(err, link.ErrNoPort) && size > pingBytes {
		err = fmt.Errorf("%w; does it serve too many at once? --size %v takes %d bytes of its memory", err, &o.size, leastLinkBuffers*size)
	}
	if err != nil {
		return c.report(ctx, orTold(err, stopSaying(), peer), stdout)
	}
	if _, most := l.Out.Buffers(); most < size {
		l.Abort(ctx, "")
		return c.report(ctx, badUsage("--size %v: the server's buffers are for messages of at most %d bytes; it is an older one", &o.size, most), stdout)
	}
	blank := make([]byte, size)
	var out outbox
	c.send = func(number uint32) {
		c.left(number, time.Now())
		// What finds no room is lost, as the pings before it are.
		out.send(l, 0, size, func(b []byte) int {
			n := copy(b, blank)
			binary.LittleEndian.PutUint32(b, number)
			return n
		})
	}
	c.resend = c.send
	c.giveUp, c.dead = h.Endpoint().GiveUp(), l.Err
	c.heard = func() uint64 { return l.Peer().Stats().FramesReceived }
	poll := o.pollOf(h.Endpoint())
	err = c.run(ctx, poll)
	closing, cancel := context.WithTimeout(context.Background(), 10*farewell)
	defer cancel()
	l.CloseContext(closing)        // whether the server heard of it changes nothing of what was measured
	attendFor(farewell, poll, nil) // for the last acknowledgements
	return c.report(ctx, err, stdout)
}

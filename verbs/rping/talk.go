package rping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// Options are how a connection is opened, and what is done with its pings.
type Options struct {
	// Verbs has NoCRC, Strict, Revision, PeerToPeer, Ready and Timeout; the rest is rping's.
	Verbs verbs.Options
	// Wait is how long each answer of the peer may take; 0: as long as the context has it.
	Wait time.Duration
	// Unverified does not compare data.
	Unverified bool
	// Most is the largest ping that a server takes; 0: MaxSize.
	Most int
}

// inboxes is how many messages may come before the first is looked at. The peer never has more than one on its way: the other receive
// is there while one is looked at.
const inboxes = 2

// talk is what both sides of a connection have.
type talk struct {
	q     *verbs.QueuePair
	wait  time.Duration
	boxes [inboxes][verbs.KeySize]byte
	n     int // pings that are done
}

// options are those of the queue pair.
func (t *talk) options(o *Options, domain *verbs.Domain) *verbs.Options {
	v := o.Verbs
	v.Domain, v.Private, v.IRD, v.ORD = domain, nil, 1, 1
	for i := range t.boxes {
		v.Posted = append(v.Posted, t.receive(uint64(i)))
	}
	return &v
}

func (t *talk) receive(i uint64) verbs.Receive { return verbs.Receive{ID: i, Data: t.boxes[i][:]} }

// hear waits for a message of the peer. One that came is heard though the peer has closed the connection behind it: that is
// for who waits for the next one.
func (t *talk) hear(ctx context.Context) (verbs.Key, error) {
	var done [1]verbs.Completion
	if _, err := t.q.Received().Wait(ctx, done[:]); err != nil {
		return verbs.Key{}, err
	}
	c := &done[0]
	switch {
	case c.Err != nil:
		return verbs.Key{}, c.Err
	case c.Length != verbs.KeySize:
		return verbs.Key{}, fmt.Errorf("%w: it has %d bytes, not %d", ErrMessage, c.Length, verbs.KeySize)
	}
	key, err := verbs.ParseKey(t.boxes[c.ID][:])
	_ = t.q.PostReceive(t.receive(c.ID)) // fails where the queue pair has ended
	return key, err
}

// within returns the context of one answer.
func (t *talk) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.wait <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, t.wait, fmt.Errorf("%w of %v within %v", ErrSilent, t.q.RemoteAddr(), t.wait))
}

// because is an error of a call, or why its context ended.
func because(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// wrong says at which ping something went wrong, and what was under way.
func (t *talk) wrong(doing string, err error) error {
	return fmt.Errorf("ping %d: %s: %w", t.n, doing, err)
}

// Done is how many pings went there and back.
func (t *talk) Done() int { return t.n }

// QueuePair is the connection, for what there is to say of it.
func (t *talk) QueuePair() *verbs.QueuePair { return t.q }

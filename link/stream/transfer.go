package stream

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/link"
)

// In each direction go messages of data, then one that says how many bytes they had. The other side
// answers that all of them are where they belong. A side that fails ends the link with the reason.

const (
	// linger is how long a side that is done waits for the other one to know.
	linger = 2 * time.Second
	// grace is the same where the peer may be gone, or nothing depends on it.
	grace = 50 * time.Millisecond
)

// run returns when the stream is whole, or with the reason why it never will be. A goroutine that the
// system keeps in a read or a write may stay there.
func (s *Stream) run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	var ways sync.WaitGroup
	ways.Go(func() {
		err := s.send(inner)
		ended <- err
		// There is no receipt before all is sent. To wait for one peer in two places costs time.
		if s.into == nil && err == nil {
			ended <- s.receive(inner)
		}
	})
	if s.into != nil {
		ways.Go(func() { ended <- s.receive(inner) })
	}
	err := s.await(ctx, ended)
	if err == nil {
		s.finish(ctx)
		return nil
	}
	cancel()
	s.Abort(err)
	gone := make(chan struct{})
	go func() {
		ways.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(grace):
	}
	return err
}

// await waits for both directions to end well, or for one to fail.
func (s *Stream) await(ctx context.Context, ended chan error) (err error) {
	down := s.link.Done()
	var stuck <-chan time.Time
	var moved int64
	for left := 2; left > 0 && err == nil; {
		select {
		case err = <-ended:
			left--
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-down:
			if s.into == nil && left == 2 {
				return s.link.Err() // not all is sent, and the peer takes no more
			}
			// What came before is still written, unless the sink takes no more.
			down, moved, stuck = nil, s.received.Load(), time.After(linger)
		case <-stuck:
			now := s.received.Load()
			if now == moved && !s.committing.Load() {
				return s.link.Err()
			}
			moved, stuck = now, time.After(linger)
		}
	}
	return err
}

// finish has both sides know that all was well, and that the other one knows.
func (s *Stream) finish(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	var unconfirmed error
	if s.into == nil {
		s.link.Out.CloseContext(bounded)
	} else {
		// The peer waits for this side's receipt. It counts as dead in time.
		unconfirmed = s.link.Out.CloseContext(ctx)
	}
	s.ending.Lock()
	s.outcome = Result{SentSum: s.outSum, ReceivedSum: s.inSum, Confirmed: unconfirmed == nil}
	s.ending.Unlock()
	if unconfirmed == nil {
		s.link.In.Recv(bounded) // its end of file
	}
	// The side that dialed ends first, so that the listener's memory is free for others.
	told, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if !s.dialed {
		select {
		case <-s.link.Done():
		case <-told.Done():
		}
		cancel()
	}
	s.link.Abort(told, "")
}

// newHash returns the hash of a direction, or nil.
func (s *Stream) newHash() hash.Hash {
	if !s.checksum {
		return nil
	}
	return sha256.New()
}

// send sends all of the source, and then how much that was.
func (s *Stream) send(ctx context.Context) error {
	if s.from == nil {
		return nil
	}
	sum := s.newHash()
	for {
		if s.missing(1) > 0 {
			if err := s.from.Wait(ctx); err != nil {
				return err
			}
		}
		more, err := s.sendOne(ctx, sum)
		if err != nil || !more {
			return err
		}
	}
}

// announces reports whether this side has said how much it sends. A listener has not.
func (s *Stream) announces() bool { return s.dialed && s.size >= 0 }

// missing returns how many bytes that were announced are still to be sent, and no more than most.
func (s *Stream) missing(most int) int {
	if !s.announces() {
		return most
	}
	return int(min(int64(most), s.size-s.sent.Load()))
}

// sendOne fills a buffer with what is there.
func (s *Stream) sendOne(ctx context.Context, sum hash.Hash) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.link.Out.Acquire(ctx)
	if err != nil {
		return false, err
	}
	room, n := b.Bytes[:s.missing(len(b.Bytes))], 0
	if len(room) == 0 {
		err = io.EOF // what was added since is not sent
	}
	for n == 0 && err == nil {
		n, err = s.from.Read(room)
	}
	for n > 0 && n < len(room) && err == nil && s.from.More() {
		var k int
		k, err = s.from.Read(room[n:])
		n += k
	}
	switch {
	case n > 0:
		if sum != nil {
			sum.Write(b.Bytes[:n])
		}
		s.sent.Add(int64(n))
		return true, s.link.Out.Commit(b, opData, n) // an error is returned again by the next call
	case err == io.EOF && s.announces() && s.missing(1) > 0:
		return false, &LocalError{s.from.String() + " became shorter while it was sent", &shortError{s.sent.Load(), s.size}}
	case err == io.EOF:
		end := tally(s.sent.Load(), sum)
		if sum != nil {
			s.outSum = sum.Sum(nil)
		}
		return false, s.link.Out.Commit(b, opEnd, copy(b.Bytes, end))
	}
	return false, &LocalError{"cannot read " + s.from.String(), err}
}

// receive takes what comes until nothing more is missing.
func (s *Stream) receive(ctx context.Context) error {
	sum := s.newHash()
	open, unanswered := s.into != nil, s.from != nil
	if !open && !unanswered {
		return nil
	}
	for m, err := range s.link.In.Messages(ctx) { // the memory is not other links' while a sink reads it
		switch {
		case err != nil:
		case m.Opcode == opData && open:
			err = s.write(m.Bytes, sum)
		case m.Opcode == opEnd && open:
			open = false
			err = s.arrived(ctx, m.Bytes, sum)
		case m.Opcode == opReceipt && unanswered:
			unanswered = false
			err = s.receipt(m.Bytes)
		default:
			err = fmt.Errorf("a message of kind %d came that is not expected: %w", m.Opcode, link.ErrProtocol)
		}
		if err != nil || !open && !unanswered {
			return err
		}
	}
	return ErrIncomplete
}

func (s *Stream) write(b []byte, sum hash.Hash) error {
	if sum != nil {
		sum.Write(b)
	}
	n, err := s.into.Write(b)
	s.received.Add(int64(n))
	if err != nil {
		return &LocalError{"cannot write " + s.into.String(), err}
	}
	return nil
}

// arrived compares what came with what the peer says it sent, commits it, and answers.
func (s *Stream) arrived(ctx context.Context, remote []byte, sum hash.Hash) error {
	s.committing.Store(true)
	local := tally(s.received.Load(), sum)
	if err := compare(local, remote); err != nil {
		return err
	}
	if got := s.received.Load(); !s.dialed && got < s.size {
		return fmt.Errorf("%w: %d bytes here, %d were announced", ErrMismatch, got, s.size)
	}
	if err := s.into.Commit(); err != nil {
		return &LocalError{"cannot keep " + s.into.String(), err}
	}
	if sum != nil {
		s.inSum = sum.Sum(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.link.Out.Send(ctx, opReceipt, local); err != nil && s.from != nil {
		return err
	}
	return nil // what came is whole, whether or not the sender hears of it
}

// receipt compares what the peer received with what was sent. It is the answer to the end of that, so
// that nothing changes any more.
func (s *Stream) receipt(remote []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return compare(append(tally(s.sent.Load(), nil), s.outSum...), remote)
}

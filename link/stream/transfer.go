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

// Each way go messages of data, then one that says how much it was, and the other side
// answers that all of it is where it belongs. Who fails ends the link with the reason.

const (
	// linger is how long a side that is through waits for the other one to know.
	linger = 2 * time.Second
	// grace is the same where nobody may be there any more, or nothing depends on it.
	grace = 50 * time.Millisecond
)

// run returns when the stream is whole, or with the reason why it never will be.
// A goroutine that the system holds up in a read or a write may stay behind.
func (s *Stream) run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	var ways sync.WaitGroup
	ways.Go(func() {
		err := s.send(inner)
		ended <- err
		// There is no receipt before all is sent; and to wait for one peer in two
		// places costs time.
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
				return s.link.Err() // all is not sent, and nobody takes it
			}
			// What came before is still written, unless nobody takes it.
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

// finish sees to it that the peer knows that all was well, and that it knows that
// we do.
func (s *Stream) finish(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	var unconfirmed error
	if s.into == nil {
		s.link.Out.CloseContext(bounded)
	} else {
		// The peer waits for our receipt. It counts as dead in time.
		unconfirmed = s.link.Out.CloseContext(ctx)
	}
	s.ending.Lock()
	s.outcome = Result{SentSum: s.outSum, ReceivedSum: s.inSum, Confirmed: unconfirmed == nil}
	s.ending.Unlock()
	if unconfirmed == nil {
		s.link.In.Recv(bounded) // its end of file
	}
	// Who dialed leaves first, so that the listener's memory is free for others.
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

// newHash returns what sums up a direction, or nil.
func (s *Stream) newHash() hash.Hash {
	if !s.checksum {
		return nil
	}
	return sha256.New()
}

// send sends all of the source, and that it was all.
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

// announces reports whether this side has said how much it sends: who listens has not.
func (s *Stream) announces() bool { return s.dialed && s.size >= 0 }

// missing returns how many bytes of what was announced are still to be sent, and no more
// than most.
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
		err = io.EOF // whatever was added since
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
		return true, s.link.Out.Commit(b, opData, n) // an error comes again
	case err == io.EOF && s.announces() && s.missing(1) > 0:
		return false, &LocalError{s.from.String() + " changed while it was sent", &shortError{s.sent.Load(), s.size}}
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
	for m, err := range s.link.In.Messages(ctx) { // which keeps the memory from other links while a sink reads it
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
			err = fmt.Errorf("a message of kind %d came that has no place here: %w", m.Opcode, link.ErrProtocol)
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

// arrived compares what came with what the peer says it sent, commits it, and
// answers.
func (s *Stream) arrived(ctx context.Context, theirs []byte, sum hash.Hash) error {
	s.committing.Store(true)
	ours := tally(s.received.Load(), sum)
	if err := compare(ours, theirs); err != nil {
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
	if err := s.link.Out.Send(ctx, opReceipt, ours); err != nil && s.from != nil {
		return err
	}
	return nil // what came is whole, whether or not the sender hears of it
}

// receipt compares what the peer received with what was sent. It is the answer to
// the end of it, so that nothing changes any more.
func (s *Stream) receipt(theirs []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return compare(append(tally(s.sent.Load(), nil), s.outSum...), theirs)
}

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/link"
)

// send and listen move a stream over a link, one way or both. Each way go messages
// of data, then one that says how much it was, and the other side answers that all
// of it is where it belongs. Who fails ends the link with the reason.
const (
	catPort    = "stream"
	catBuffers = 32
	catSize    = 1 << 20                                 // a tenth less processor time than 64 buffers of a quarter
	catMemory  = catBuffers*(catSize+1024) + linkReserve // of each link that receives a stream
)

// The opcodes of the messages.
const (
	opData    = iota
	opEnd     // no more data; a tally
	opReceipt // a tally of what was received
)

// parting is how long a side that is through waits for the other one to know.
const parting = 2 * time.Second

// transfer is what one side does with a link.
type transfer struct {
	link     *link.Link
	dialed   bool // by this side
	checksum bool
	from     *input // nil: nothing is sent
	into     sink   // nil: nothing is received
	out, in  *meter

	mu          sync.Mutex  // held while a buffer is filled
	outSum      []byte      // SHA-256 of what was sent, when it is whole
	inSum       []byte      // and of what was received
	keeping     atomic.Bool // what was received is whole, and is being put where it belongs
	unconfirmed error       // why the peer may not know that all was well
}

// run returns when the stream is whole, or with the reason why it never will be.
// A goroutine that the system holds up in a read or a write may stay behind.
func (s *transfer) run(ctx context.Context) error {
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
		s.part(ctx)
		return nil
	}
	cancel()
	s.abort(err)
	gone := make(chan struct{})
	go func() {
		ways.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(farewell):
	}
	return err
}

// await waits for both directions to end well, or for one to fail.
func (s *transfer) await(ctx context.Context, ended chan error) (err error) {
	down := s.link.Done()
	var stuck <-chan time.Time
	var moved int64
	for left := 2; left > 0 && err == nil; {
		select {
		case err = <-ended:
			left--
		case <-ctx.Done():
			return errInterrupted
		case <-down:
			if s.into == nil && left == 2 {
				return s.link.Err() // all is not sent, and nobody takes it
			}
			// What came before is still written, unless nobody takes it.
			down, moved, stuck = nil, s.in.moved.Load(), time.After(parting)
		case <-stuck:
			now := s.in.moved.Load()
			if now == moved && !s.keeping.Load() {
				return s.link.Err()
			}
			moved, stuck = now, time.After(parting)
		}
	}
	return err
}

// abort tells the peer why nothing more comes.
func (s *transfer) abort(err error) {
	wait := parting
	if goneAlready(err) {
		wait = farewell
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	s.link.Abort(ctx, reasonForPeer(err))
}

// part sees to it that the peer knows that all was well, and that it knows that
// we do.
func (s *transfer) part(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, parting)
	defer cancel()
	if s.into == nil {
		s.link.Out.CloseContext(bounded)
	} else {
		// The peer waits for our receipt. It counts as dead in time.
		s.unconfirmed = s.link.Out.CloseContext(ctx)
	}
	if s.unconfirmed == nil {
		s.link.In.Recv(bounded) // its end of file
	}
	// Who dialed leaves first, so that the listener's memory is free for others.
	told, cancel := context.WithTimeout(ctx, farewell)
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
func (s *transfer) newHash() hash.Hash {
	if !s.checksum {
		return nil
	}
	return sha256.New()
}

// send sends all of the source, and that it was all.
func (s *transfer) send(ctx context.Context) error {
	if s.from == nil {
		return nil
	}
	defer context.AfterFunc(ctx, s.from.interrupt)()
	sum := s.newHash()
	for {
		if err := s.from.wait(); err != nil {
			return err
		}
		more, err := s.sendOne(ctx, sum)
		if err != nil || !more {
			return err
		}
	}
}

// sendOne fills a buffer with what is there.
func (s *transfer) sendOne(ctx context.Context, sum hash.Hash) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.link.Out.Acquire(ctx)
	if err != nil {
		return false, err
	}
	n := 0
	for n == 0 && err == nil {
		n, err = s.from.Read(b.Bytes)
	}
	for n > 0 && n < len(b.Bytes) && err == nil && s.from.more() {
		var k int
		k, err = s.from.Read(b.Bytes[n:])
		n += k
	}
	switch {
	case n > 0:
		if sum != nil {
			sum.Write(b.Bytes[:n])
		}
		s.out.moved.Add(int64(n))
		return true, s.link.Out.Commit(b, opData, n) // an error comes again
	case err == io.EOF:
		end := tally(s.out, sum)
		if sum != nil {
			s.outSum = sum.Sum(nil)
		}
		return false, s.link.Out.Commit(b, opEnd, copy(b.Bytes, end))
	}
	return false, &localError{"cannot read " + s.from.name, err}
}

// receive takes what comes until nothing more is missing.
func (s *transfer) receive(ctx context.Context) error {
	sum := s.newHash()
	open, unanswered := s.into != nil, s.from != nil
	for open || unanswered {
		m, err := s.link.In.Recv(ctx)
		if err == io.EOF {
			return errEndedEarly
		}
		if err != nil {
			return err
		}
		switch {
		case m.Opcode == opData && open:
			if err = s.write(m.Bytes, sum); err == nil {
				err = s.link.In.Release(m)
			}
		case m.Opcode == opEnd && open:
			open = false
			err = s.arrived(ctx, bytes.Clone(m.Bytes), sum)
			s.link.In.Release(m)
		case m.Opcode == opReceipt && unanswered:
			unanswered = false
			err = s.receipt(m.Bytes)
			s.link.In.Release(m)
		default:
			err = fmt.Errorf("a message of kind %d came that has no place here: %w", m.Opcode, link.ErrProtocol)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *transfer) write(b []byte, sum hash.Hash) error {
	if sum != nil {
		sum.Write(b)
	}
	n, err := s.into.Write(b)
	s.in.moved.Add(int64(n))
	if err != nil {
		return &localError{"cannot write " + s.into.what(), err}
	}
	return nil
}

// arrived compares what came with what the peer says it sent, keeps it, and
// answers.
func (s *transfer) arrived(ctx context.Context, theirs []byte, sum hash.Hash) error {
	s.keeping.Store(true)
	ours := tally(s.in, sum)
	if !bytes.Equal(ours, theirs) {
		return &localError{"what arrived is not what was sent", fmt.Errorf("%s here, %s there", tallyText(ours), tallyText(theirs))}
	}
	if err := s.into.keep(); err != nil {
		return &localError{"cannot keep " + s.into.what(), err}
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
func (s *transfer) receipt(theirs []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := append(tally(s.out, nil), s.outSum...)
	if !bytes.Equal(ours, theirs) {
		return &localError{"what arrived is not what was sent", fmt.Errorf("%s here, %s there", tallyText(ours), tallyText(theirs))}
	}
	return nil
}

package rpc

import (
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/xdr"
)

// outgoing is an encoded message that a connection sends: inline bytes, and items that belong into
// them.
type outgoing struct {
	inline []byte
	items  []xdr.Item
	// sent is called when the connection needs inline and items no more, without locks. It may be nil.
	sent  func()
	state sendState // guarded by sender.mu
}

// sendState says what became of a message. Others may change its memory in all states but queued and
// writing.
type sendState int

const (
	unsent  sendState = iota
	queued            // the sender has it
	writing           // a write of it is in progress that needs its memory
	written           // or copied to be written
	dropped           // the connection ended before it was written
)

const (
	// copiedUpTo is how long what is copied to its neighbours is at most, before it is written. What is longer is
	// written from where it lies. It is arbitrary: a few pages.
	copiedUpTo = 4 << 10
	// batchMessages and batchLength are how much one write takes: an item is in use until all of it is written.
	batchMessages = 64
	batchLength   = 1 << 20
	// keptCopies is how long the buffer for copies is that is kept for the next write.
	keptCopies = 64 << 10
)

// sender writes messages to a stream, as records of one fragment. Messages that are queued while a
// write is in progress are written together.
type sender struct {
	to net.Conn
	// writes counts writes that ended, and those that began: it is odd while one is in progress.
	writes atomic.Uint64

	mu     sync.Mutex
	queue  []*outgoing
	batch  []*outgoing // of the write in progress
	active bool        // a goroutine is in flush
	change sync.Cond   // a write has ended
	err    error       // why nothing more is written
	stuck  stuck

	// Of the goroutine in flush.
	copies []byte
	copied int // octets of the copies that are in pieces
	pieces net.Buffers
	vector net.Buffers // what WriteTo consumes
}

func (s *sender) init(to net.Conn) {
	s.to = to
	s.change.L = &s.mu
}

// put queues a message. flush has to be called afterwards. It reports false if the connection has ended.
func (s *sender) put(m *outgoing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		m.state = dropped
		return false
	}
	m.state = queued
	s.queue = append(s.queue, m)
	return true
}

// flush writes what is queued, unless another goroutine is at it. What cannot be written any more is
// dropped.
func (s *sender) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active {
		return
	}
	s.active = true
	for len(s.queue) > 0 {
		as := dropped
		if s.err == nil {
			as = written
			s.take()
			s.mu.Unlock()
			err := s.write()
			s.mu.Lock()
			if s.err == nil {
				s.err = err
			}
		} else {
			s.batch = append(s.batch[:0], s.queue...)
			clear(s.queue)
			s.queue = s.queue[:0]
		}
		for i, m := range s.batch {
			if m.sent == nil {
				s.batch[i] = nil // its owner may use it for another message as soon as the state says so
			}
			m.state = as
		}
		s.change.Broadcast()
		s.mu.Unlock()
		for i, m := range s.batch {
			if m != nil {
				s.batch[i] = nil
				m.sent()
			}
		}
		s.mu.Lock()
		s.batch = s.batch[:0]
	}
	s.active = false
	s.change.Broadcast()
}

// take takes the next messages from the queue, for one write. Those stay in the batch that the write needs, or that are
// told of it.
func (s *sender) take() {
	s.copies, s.pieces, s.copied = s.copies[:0], s.pieces[:0], 0
	n, length := 0, 0
	for n < len(s.queue) && n < batchMessages && length < batchLength {
		m := s.queue[n]
		pieces := len(s.pieces)
		length += messageLength(m)
		s.append(m)
		if m.sent == nil && len(s.pieces) == pieces {
			m.state = written
		} else {
			m.state = writing
			s.batch = append(s.batch, m)
		}
		n++
	}
	rest := copy(s.queue, s.queue[n:])
	clear(s.queue[rest:])
	s.queue = s.queue[:rest]
}

func messageLength(m *outgoing) int {
	n := len(m.inline)
	for _, item := range m.items {
		n += xdr.Padded(len(item.Data))
	}
	return n
}

// append appends a message to what is written next.
func (s *sender) append(m *outgoing) {
	s.copies = binary.BigEndian.AppendUint32(s.copies, markLast|uint32(messageLength(m)))
	done := 0
	for _, item := range m.items {
		s.add(m.inline[done:item.At])
		s.add(item.Data)
		s.copies = append(s.copies, zeros[:xdr.Padded(len(item.Data))-len(item.Data)]...)
		done = item.At
	}
	s.add(m.inline[done:])
}

// add appends a part of a message: as a copy, or as a piece of its own.
func (s *sender) add(b []byte) {
	if len(b) <= copiedUpTo {
		s.copies = append(s.copies, b...)
		return
	}
	s.cut()
	s.pieces = append(s.pieces, b)
}

// cut makes the copies so far a piece.
func (s *sender) cut() {
	if s.copied < len(s.copies) {
		s.pieces = append(s.pieces, s.copies[s.copied:])
		s.copied = len(s.copies)
	}
}

// write writes what was taken.
func (s *sender) write() (err error) {
	s.writes.Add(1)
	defer s.writes.Add(1)
	if len(s.pieces) == 0 {
		_, err = s.to.Write(s.copies)
	} else {
		s.cut()
		s.vector = s.pieces
		_, err = s.vector.WriteTo(s.to)
		clear(s.pieces)
	}
	if cap(s.copies) > keptCopies {
		s.copies = nil
	}
	if err != nil {
		abort(s.to) // which the goroutine that reads notices
	}
	return err
}

var zeros [4]byte

// withdraw takes a message back: when it returns, the connection does not need the message's memory. It waits for
// a write of items in progress, and closes the connection if the peer takes nothing of it. It reports whether the inline bytes are
// free as well.
func (s *sender) withdraw(m *outgoing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.state == queued {
		s.queue = slices.DeleteFunc(s.queue, func(other *outgoing) bool { return other == m })
		m.state = unsent
	}
	if m.state == writing && len(m.items) > 0 {
		s.watch()
		for m.state == writing {
			s.change.Wait()
		}
		s.unwatch()
	}
	return m.state != writing
}

// end has all messages dropped from now on, and waits until no goroutine writes: the connection has to be
// closed for that.
func (s *sender) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	for s.active {
		s.change.Wait()
	}
	s.mu.Unlock()
	s.flush()
}

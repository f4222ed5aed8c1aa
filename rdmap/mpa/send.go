package mpa

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Progress is how far Send came.
type Progress int

const (
	// Idle: the source has no more messages, and all that it had are with the socket.
	Idle Progress = iota
	// Busy: a batch is with the socket, and the source may have more.
	Busy
	// Blocked: the socket takes no more; Flush waits until it does.
	Blocked
)

// sender is the sending side of a Conn.
type sender struct {
	framer    framer
	out       *batch // nil: nothing is under way
	writeOnce func(uintptr) bool
	writeAll  func(uintptr) bool
	gaveUp    bool  // a message, so that counting those sent would count a wrong one
	writeErr  error // why nothing can be sent any more
}

// errAborted says that memory of a frame was lost of which the peer may have a part.
var errAborted = fmt.Errorf("part of it may be with the peer, so the connection is aborted (%w)", ddp.Lost)

// Send takes messages of the source, as many as make a batch, and writes them as far as the socket takes
// them without waiting (but see Blocks). What it does not take is written by the next Send or Flush.
// After [ErrWithdrawn] or a [ddp.LostError] the message whose memory that was is given up, and neither it nor those after it are
// ever told to be sent; unless the connection is aborted, the source may have another that says so to the peer.
// After other errors nothing can be sent.
func (c *Conn) Send(src ddp.Source) (Progress, error) {
	if c.writeErr != nil {
		return Idle, c.writeErr
	}
	if c.out != nil {
		if err := c.write(src, c.writeOnce); err != nil {
			return Idle, err
		}
		if c.out != nil {
			return Blocked, nil
		}
	}
	c.out = batches.Get().(*batch)
	c.out.mute = c.gaveUp
	src.Begin()
	dry, err := c.framer.fill(c.out, src)
	src.End()
	if !c.tcp {
		c.tally.given.Add(uint64(c.out.size))
	}
	switch {
	case errors.Is(err, errLength):
		c.writeErr = err
	case err != nil:
		c.gaveUp = true
	}
	if lost := c.write(src, c.writeOnce); lost != nil {
		return Idle, lost
	}
	switch {
	case err != nil:
		return Busy, err
	case c.out != nil:
		return Blocked, nil
	case dry:
		return Idle, nil
	}
	return Busy, nil
}

// Flush waits until all that Send took of the source is with the socket.
func (c *Conn) Flush(src ddp.Source) error {
	if c.writeErr != nil || c.out == nil {
		return c.writeErr
	}
	return c.write(src, c.writeAll)
}

// write gives the socket what it takes of the batch, says which messages are sent, and lets go of the
// batch if that was all.
func (c *Conn) write(src ddp.Source, how func(uintptr) bool) error {
	b := c.out
	if b.pending() {
		var err error
		if c.raw == nil {
			var n int
			n, err = c.nc.Write(b.slab[b.wrote:b.used])
			c.tally.taken.Add(uint64(n))
			b.wrote = b.size
		} else {
			err = c.raw.Write(how)
		}
		if c.writeErr == nil && err != nil {
			c.writeErr = lost("sending", err)
		}
	}
	if c.writeErr == nil {
		if n := b.sent(); n > 0 {
			src.Begin()
			src.Sent(n)
			src.End()
		}
	}
	if c.writeErr != nil || !b.pending() {
		b.release()
		c.out = nil
	}
	if c.writeErr != nil {
		c.framer.drop()
	}
	if errors.Is(c.writeErr, errAborted) {
		c.Abort() // not while the descriptor is in use: closing waits for that
	}
	return c.writeErr
}

// writeRaw writes as much as the socket takes. It is not to be called again.
func (c *Conn) writeRaw(fd uintptr) bool {
	c.flushRaw(fd)
	return true
}

// flushRaw writes as much as the socket takes. It says false if that is not all, and it shall be called
// again when the socket takes more.
func (c *Conn) flushRaw(fd uintptr) bool {
	b := c.out
	for b.pending() {
		n, e := c.some(fd)
		switch e {
		case 0:
			b.advance(n)
			if !c.tcp {
				c.tally.taken.Add(uint64(n))
			}
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		case unix.EFAULT: // while it was sent: framer.gather has seen the memory
			c.writeErr = fmt.Errorf("%w; %w", c.lostPiece(), errAborted)
			return true
		default:
			if c.writeErr == nil {
				c.writeErr = lost("sending", os.NewSyscallError("write", e))
			}
			return true
		}
	}
	c.measure(fd)
	return true
}

// some writes once.
func (c *Conn) some(fd uintptr) (int, unix.Errno) {
	if c.agreed.CRC && !c.agreed.Long && c.tcp {
		return c.someRecords(fd)
	}
	b := c.out
	vecs, guards, epochs := b.vecs[b.first:b.n], b.guards[b.first:b.n], b.epochs[b.first:b.n]
	for i := range guards {
		if guards[i] != nil && !guards[i].Enter(epochs[i]) {
			leave(guards[:i])
			c.writeErr = fmt.Errorf("%w; %w", ErrWithdrawn, errAborted)
			return 0, unix.ECONNABORTED
		}
	}
	n, e := writev(fd, vecs, b.size-b.wrote)
	leave(guards)
	return n, e
}

// lostPiece finds the piece of the batch that the system cannot get at.
func (c *Conn) lostPiece() *ddp.LostError {
	b := c.out
	e := new(ddp.LostError)
	piece, before := b.piece(b.first), uint32(b.wrote)
	for i, at := b.first, uint32(b.wrote); i < b.n; i++ {
		s := b.piece(i)
		if n, lost := s.Lost(); lost {
			piece, before, e.At = s, at, n
			break
		}
		at += uint32(len(s.Bytes))
	}
	e.Span = piece
	for _, end := range b.ends[:b.ended] {
		if end > before {
			e.Behind++
		}
	}
	if !c.framer.active && !c.gaveUp { // else a message that does not end in the batch was asked for last
		e.Behind--
	}
	return e
}

func leave(guards []ddp.Guard) {
	for _, g := range guards {
		if g != nil {
			g.Leave()
		}
	}
}

// someRecords writes frames so that none is cut by the end of a TCP segment: a record is as many as fit in
// one. With CRC siw (S2) takes a frame for damaged whose pad and CRC are cut, because it copies each
// piece of them to the start of its buffer. MSG_EOR keeps Linux from appending the next record to a
// segment, as siw's own sender does.
func (c *Conn) someRecords(fd uintptr) (int, unix.Errno) {
	b := c.out
	b.records.n = 0
	most := c.framer.segment + LengthSize + CRCSize
	for at := b.record; b.records.n < maxRecords && at < b.used; {
		end := b.frameEnd(at)
		for end < b.used && b.frameEnd(end)-at <= most {
			end = b.frameEnd(end)
		}
		b.records.add(b.slab[max(at, b.wrote):end])
		at = end
	}
	n, e := b.records.send(fd)
	if e != 0 {
		return 0, e
	}
	for b.record < b.used && b.frameEnd(b.record) <= b.wrote+n {
		b.record = b.frameEnd(b.record)
	}
	return n, 0
}

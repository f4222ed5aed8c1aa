package mpa

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/patience"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

const (
	// inputSize holds two of the longest frames; more takes longer (see slabSize).
	inputSize = 128 << 10
	// minDirect is the payload from which on a call that reads it into its place costs less than a
	// copy.
	minDirect = 8 << 10
	// ahead is how much is read where a header is expected with a long payload: the header, and what may follow of short
	// frames, but little of that payload.
	ahead = 512
	// expectant is how many reads after a long payload another is expected.
	expectant = 4
)

type input [inputSize]byte

var inputs = sync.Pool{New: func() any { return new(input) }}

// receiver is the receiving side of a Conn.
type receiver struct {
	parser   parser
	in       *input // nil: nothing is buffered
	r, w     int    // what of it is not parsed yet
	readOnce func(uintptr) bool
	vecs     [2]unix.Iovec
	got      int // what readOnce has read
	direct   int // for how many reads more long payload is expected
	burst    int // what came since the connection last had nothing between two frames, if it is no more than the buffer holds
	readErr  error
	looks    bool // before it sleeps
	patience patience.Patience
	roused   atomic.Bool // by Interrupt
	wake     [64]byte    // where a connection that blocks waits for what comes first
}

// Receive waits until something arrives, and gives the sink what that completes. [io.EOF]: the
// peer has ended its direction. A [ddp.Fault] is for Terminate to tell the peer. After an error nothing
// more is given to the sink, and the same error comes again.
func (c *Conn) Receive(sink ddp.Sink) error {
	if c.parser.stopped != nil {
		return c.parser.stopped
	}
	if err := c.read(); err != nil {
		if err == ErrInterrupted {
			return err
		}
		c.parser.stopped = err
		c.giveBack()
		return err
	}
	sink.Begin()
	used, err := c.parser.parse(c.in[c.r:c.w], sink)
	sink.End()
	c.r += used
	if err != nil {
		c.giveBack()
		return err
	}
	switch {
	case c.r == c.w:
		c.r, c.w = 0, 0
		if c.raw == nil && !c.parser.midway {
			c.giveBack()
		}
	case inputSize-c.r < maxFrame:
		c.w = copy(c.in[:], c.in[c.r:c.w])
		c.r = 0
	}
	return nil
}

// Watch is Receive for who has nothing else to do: before it sleeps it looks for a moment whether something arrives, as
// long as that pays.
func (c *Conn) Watch(sink ddp.Sink) error {
	c.looks = true
	err := c.Receive(sink)
	c.looks = false
	return err
}

// Interrupt has a Receive that waits return, or else the next one. It does nothing to a connection that Blocks.
func (c *Conn) Interrupt() {
	if c.raw != nil {
		c.roused.Store(true)
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// Discard waits until something arrives and drops it, until the peer has ended its direction: [io.EOF].
// For after a fault: TCP that is closed while there is something to read resets the connection,
// and the peer may lose the Terminate that tells it why.
func (c *Conn) Discard() error {
	in := inputs.Get().(*input)
	defer inputs.Put(in)
	_, err := c.nc.Read(in[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return c.nc.SetReadDeadline(time.Time{}) // of an Interrupt
	}
	return err
}

// giveBack gives the buffer back, which holds nothing of use.
func (c *Conn) giveBack() {
	if c.in != nil {
		inputs.Put(c.in)
		c.in, c.r, c.w = nil, 0, 0
	}
}

// read waits for bytes. They are then in the buffer, but for those that belong to the payload which
// the parser is in.
func (c *Conn) read() error {
	if c.raw == nil {
		return c.readBlocking()
	}
	c.got, c.readErr = 0, nil
	c.patience.Begin()
	if err := c.raw.Read(c.readOnce); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// In the order of Interrupt, so that roused does not stay without its deadline.
			c.nc.SetReadDeadline(time.Time{})
			c.roused.Store(false)
			return ErrInterrupted
		}
		return lost("receiving", err)
	}
	if c.readErr != nil {
		return c.readErr
	}
	if c.got == 0 {
		return c.end()
	}
	if !c.tcp {
		c.tally.came.Add(uint64(c.got))
	}
	c.patience.Found()
	return nil
}

// end is what the end of the peer's direction means: a good one is between two frames.
func (c *Conn) end() error {
	if c.r == c.w && !c.parser.midway {
		return io.EOF
	}
	return lost("receiving", io.ErrUnexpectedEOF)
}

// readRaw reads once. It says false if there is nothing, and it shall be called again when there is.
func (c *Conn) readRaw(fd uintptr) bool {
	p := &c.parser
	vecs := c.vecs[:0]
	room, rest := c.input()[c.w:], p.rest()
	if len(p.span.Bytes) >= minDirect {
		c.direct = expectant
	}
	if c.direct > 0 && !p.crc {
		// Without CRC all that was buffered of the payload is in its place.
		c.direct--
		if len(rest) > 0 {
			// What is there of more frames is taken by the same call, if this side lags that far. To copy a long payload costs less
			// than another call, and the acknowledgement that TCP sends at the end of each.
			vecs = append(vecs, vec(rest))
		} else {
			room = room[:min(ahead, len(room))]
		}
	} else {
		rest = nil
	}
	vecs = append(vecs, vec(room))
	for {
		if len(rest) > 0 && !p.span.Enter() {
			clear(vecs)
			c.readErr = ddp.TaggedSTag
			return true
		}
		n, e := readv(fd, vecs)
		if len(rest) > 0 {
			p.span.Leave()
		}
		switch e {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			if c.dry() {
				clear(vecs)
				return c.readRaw(fd)
			}
			if c.looks && !c.roused.Load() && c.patience.Again() {
				continue
			}
			clear(vecs)
			if c.r == c.w {
				c.giveBack()
			}
			return false
		case unix.EFAULT: // rest: the other room is the carrier's own
			clear(vecs)
			at, _ := (&ddp.Span{Bytes: rest, Guard: p.span.Guard, Epoch: p.span.Epoch}).Lost()
			c.readErr = p.lost(p.placed + at)
			return true
		case 0:
			c.got = n
			c.burst = min(c.burst+n, inputSize+1)
			placed := min(n, len(rest))
			p.placed += placed
			c.w += n - placed
		default:
			c.readErr = lost("receiving", os.NewSyscallError("readv", e))
		}
		clear(vecs)
		return true
	}
}

// dry notes that there is nothing to read. It reports whether the next read is to be another: where all that came at a time
// would have fitted into the buffer, one call that fills it costs less than one for the header, one for each long
// payload, and what TCP does after each of them.
func (c *Conn) dry() bool {
	if c.r < c.w || c.parser.midway {
		return false
	}
	fitted := 0 < c.burst && c.burst <= inputSize
	c.burst = 0
	if !fitted || c.direct == 0 {
		return false
	}
	c.direct = 0
	return true
}

// readBlocking reads once from a connection that has to be waited for with memory in hand: little of
// it between two frames.
func (c *Conn) readBlocking() error {
	room := c.wake[:]
	if c.r < c.w || c.parser.midway {
		room = c.input()[c.w:]
	}
	n, err := c.nc.Read(room)
	if n > 0 {
		c.tally.came.Add(uint64(n))
		if c.r == c.w && !c.parser.midway {
			copy(c.input()[c.w:], room[:n])
		}
		c.w += n
		return nil // an error comes again
	}
	switch err {
	case nil:
		c.input()
		return nil
	case io.EOF:
		return c.end()
	}
	return lost("receiving", err)
}

// input is the buffer.
func (c *Conn) input() *input {
	if c.in == nil {
		c.in = inputs.Get().(*input)
	}
	return c.in
}

func vec(p []byte) unix.Iovec {
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	return v
}

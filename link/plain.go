package link

import (
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Peers of other kinds know no handshake. What each side has to know of the other's memory is told by
// other means: the consumer's Buffers first, then the producer's EmptyFlags.

// Buffers is where a consumer has its buffers, and the flags that its producer writes
// when they are full. What belongs to buffer i is at the address plus i times the
// pitch; addresses are offsets in the memory of the consumer's endpoint.
type Buffers struct {
	N, Size          uint32 // how many, and the bytes in each
	Data, Pitch      uint32
	Flags, FlagPitch uint32 // of flags: each a [Flag]; with pitch 0 one for all
}

// EmptyFlags is where a producer has its empty flags. Its consumer writes 1 into one of them when it
// gives a buffer back: that of buffer i is at the address plus i times the pitch.
type EmptyFlags struct{ Addr, Pitch uint32 }

// Offer makes a link that receives from a peer of another kind, to which the host's endpoint was
// connected, and says where that producer has to write. Its full flags are flagPitch bytes apart, a
// multiple of 4; 0 means 4. No buffer can be given back before [Link.Connect] says where that is told.
func (h *Host) Offer(c *dgrdma.Conn, flagPitch uint32, opt *Options) (*Link, Buffers, error) {
	if flagPitch%wordSize != 0 || flagPitch > mostFlagPitch {
		return nil, Buffers{}, fmt.Errorf("link: offer: flags every %d bytes, need a multiple of %d up to %d: %w", flagPitch, wordSize, mostFlagPitch, ErrLayout)
	}
	l, o, err := h.plainLink(c, opt)
	if err != nil {
		return nil, Buffers{}, err
	}
	shape := o.chooseShape(half{})
	shape.Size = (shape.Size + wordSize - 1) &^ (wordSize - 1) // such peers may write whole words
	shape.FlagPitch = flagPitch
	if err := l.allocate(&shape, nil, 0, &o); err != nil {
		return nil, Buffers{}, err
	}
	l.peer.add(l)
	return l, Buffers{
		N: shape.Buffers, Size: shape.Size, Data: shape.Data, Pitch: shape.Pitch, Flags: shape.Flags, FlagPitch: shape.FlagPitch,
	}, nil
}

// Connect completes a link of Offer: from now on the producer is told of free buffers.
func (l *Link) Connect(flags EmptyFlags) error {
	if !l.plain || l.In == nil {
		return l.wrap("connect", fmt.Errorf("it is not one that was offered: %w", ErrLayout))
	}
	if n := l.In.first.buffers; flags.Addr%wordSize != 0 || endOf(flags.Addr, flags.Pitch, wordSize, n) > 1<<32 {
		return l.wrap("connect", fmt.Errorf("empty flags of %d buffers at %#x, every %d bytes: %w", n, flags.Addr, flags.Pitch, ErrLayout))
	}
	if l.In.credits.isConnected() {
		return l.wrap("connect", fmt.Errorf("it is connected already: %w", ErrLayout))
	}
	l.In.credits.setAddress(returnsEach, flags.Addr, flags.Pitch)
	return nil
}

// Attach makes a link that sends into the buffers of a consumer of another kind, to which the host's
// endpoint was connected, and says where that consumer has to give them back.
func (h *Host) Attach(c *dgrdma.Conn, to Buffers, opt *Options) (*Link, EmptyFlags, error) {
	if err := to.checkLayout(); err != nil {
		return nil, EmptyFlags{}, fmt.Errorf("link: attach: %w", err)
	}
	l, o, err := h.plainLink(c, opt)
	if err != nil {
		return nil, EmptyFlags{}, err
	}
	words := half{Buffers: to.N}
	if err := l.allocate(nil, &words, to.N, &o); err != nil {
		return nil, EmptyFlags{}, err
	}
	l.peer.add(l)
	l.Out.setLayout(outLayout{
		buffers: uint64(to.N), size: int(min(to.Size, mostSize)), data: to.Data, pitch: to.Pitch,
		flags: to.Flags, flagPitch: to.FlagPitch, returns: returnsEach,
	})
	return l, EmptyFlags{Addr: words.Credit, Pitch: wordSize}, nil
}

// checkLayout returns an error for buffers that cannot be written to.
func (b *Buffers) checkLayout() error {
	const top = 1 << 32
	n := uint64(b.N)
	switch {
	case n == 0 || n > mostBuffers:
		return fmt.Errorf("%d buffers, need 1 to %d: %w", n, mostBuffers, ErrLayout)
	case b.Size == 0 || n > 1 && b.Pitch < b.Size || endOf(b.Data, b.Pitch, b.Size, n) > top:
		return fmt.Errorf("%d buffers of %d bytes at %#x, every %d: %w", n, b.Size, b.Data, b.Pitch, ErrLayout)
	case b.Flags%wordSize != 0 || n > 1 && b.FlagPitch%wordSize != 0 || endOf(b.Flags, b.FlagPitch, wordSize, n) > top:
		return fmt.Errorf("flags of %d buffers at %#x, every %d bytes: %w", n, b.Flags, b.FlagPitch, ErrLayout)
	}
	return nil
}

// endOf returns where the last of n things of that size ends. It is below 2^64 for all values.
func endOf(base, pitch, size uint32, n uint64) uint64 {
	return uint64(base) + (n-1)*uint64(pitch) + uint64(size)
}

// plainLink makes the link of Offer and Attach, which have no port.
func (h *Host) plainLink(c *dgrdma.Conn, opt *Options) (*Link, Options, error) {
	o, err := opt.withDefaults(Both, "-")
	if err != nil {
		return nil, o, err
	}
	if err := h.checkOpen(); err != nil {
		return nil, o, err
	}
	p := h.peerOf(c)
	if p == nil {
		return nil, o, fmt.Errorf("link: the connection to %v is not one of the host's endpoint", c.Name())
	}
	l := newLink(p, c.Life(), "", 0)
	l.plain = true
	return l, o, nil
}

package link

import (
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Peers of other kinds know no handshake. Their links are made of descriptors
// that travel by other means: the consumer's first, then the producer's, which
// says where it wants to hear of free buffers.

// plainFlagPitch is the distance of full flags in OpenCPI's own consumers: ten
// words of which one is ours, twice (section 8.3 of the peers' facts).
const plainFlagPitch = 80

// Offer makes a link that receives from a peer of another kind, to which the
// host's endpoint was connected, and the descriptor to be given to that producer.
// Nothing can be given back before [Link.Connect] has the producer's.
func (h *Host) Offer(c *dgrdma.Conn, opt *Options) (*Link, Descriptor, error) {
	if h == nil {
		return nil, Descriptor{}, ErrNil
	}
	l, o, err := h.plainLink(c, opt)
	if err != nil {
		return nil, Descriptor{}, err
	}
	shape := o.settle(half{})
	// Cards write whole words (section 8.4).
	shape.Size = (shape.Size + wordSize - 1) &^ (wordSize - 1)
	shape.FlagPitch = plainFlagPitch
	if err := l.allocate(&shape, nil, 0, &o); err != nil {
		return nil, Descriptor{}, err
	}
	l.peer.add(l)
	return l, Descriptor{
		Kind: KindConsumer, Role: RoleActiveFlowControl, Options: OptionActiveFlowControl | OptionFlagIsMeta,
		Buffers: shape.Buffers, DataAddr: shape.Data, Pitch: shape.Pitch, Size: shape.Size,
		FullFlagAddr: shape.Flags, FullFlagSize: wordSize, FullFlagPitch: plainFlagPitch, FullFlagValue: 1,
		Endpoint: h.URL(),
	}, nil
}

// Connect completes a link of Offer with the descriptor of the producer.
func (l *Link) Connect(producer Descriptor) error {
	if l == nil {
		return ErrNil
	}
	if !l.plain || l.In == nil {
		return l.wrap("connect", fmt.Errorf("it is not one that was offered: %w", ErrDescriptor))
	}
	if producer.Kind != KindConsumerFlowControl && producer.Kind != KindProducer {
		return l.wrap("connect", fmt.Errorf("%w: kind %v, need that of a producer or of flow control", ErrDescriptor, producer.Kind))
	}
	words := span{uint64(producer.EmptyFlagAddr), uint64(l.In.wire.buffers-1)*uint64(producer.EmptyFlagPitch) + wordSize}
	if words.at%wordSize != 0 || words.at+words.n > 1<<32 {
		return l.wrap("connect", fmt.Errorf("%w: empty flags at %#x, every %d bytes", ErrDescriptor, producer.EmptyFlagAddr, producer.EmptyFlagPitch))
	}
	if l.In.credits.known() {
		return l.wrap("connect", fmt.Errorf("it is connected already: %w", ErrDescriptor))
	}
	l.In.credits.begin(returnsEach, producer.EmptyFlagAddr, producer.EmptyFlagPitch)
	return nil
}

// Attach makes a link that sends to a consumer of another kind, and the descriptor
// to be given to it, which says where our empty flags are.
func (h *Host) Attach(c *dgrdma.Conn, consumer Descriptor, opt *Options) (*Link, Descriptor, error) {
	if h == nil {
		return nil, Descriptor{}, ErrNil
	}
	if err := consumer.Validate(); err != nil {
		return nil, Descriptor{}, err
	}
	if consumer.Kind != KindConsumer || consumer.Buffers > mostBuffers {
		return nil, Descriptor{}, fmt.Errorf("link: attach: %w: kind %v with %d buffers, need a consumer with at most %d",
			ErrDescriptor, consumer.Kind, consumer.Buffers, mostBuffers)
	}
	l, o, err := h.plainLink(c, opt)
	if err != nil {
		return nil, Descriptor{}, err
	}
	words := half{Buffers: consumer.Buffers}
	if err := l.allocate(nil, &words, consumer.Buffers, &o); err != nil {
		return nil, Descriptor{}, err
	}
	l.peer.add(l)
	l.Out.begin(outWire{
		buffers: uint64(consumer.Buffers), size: int(min(consumer.Size, mostSize)), data: consumer.DataAddr, pitch: consumer.Pitch,
		flags: consumer.FullFlagAddr, flagPitch: consumer.FullFlagPitch, returns: returnsEach,
	})
	return l, Descriptor{
		Kind: KindConsumerFlowControl, Role: RoleActiveMessage, Options: OptionActiveMessage | OptionFlagIsMeta,
		Buffers: consumer.Buffers, Size: consumer.Size, Pitch: consumer.Pitch,
		EmptyFlagAddr: words.Credit, EmptyFlagSize: wordSize, EmptyFlagPitch: wordSize, EmptyFlagValue: 1,
		Endpoint: h.URL(),
	}, nil
}

// plainLink makes the link of Offer and Attach, which have no port.
func (h *Host) plainLink(c *dgrdma.Conn, opt *Options) (*Link, Options, error) {
	o, err := opt.or(Both, "-")
	if err != nil {
		return nil, o, err
	}
	if c == nil {
		return nil, o, fmt.Errorf("link: no connection to make a link on: %w", ErrNil)
	}
	p, ok := c.Memory().(*peer)
	if !ok || p.host != h {
		return nil, o, fmt.Errorf("link: the connection to %v is not one of the host's endpoint", c.Name())
	}
	l := newLink(p, c.Life(), "", 0)
	l.plain = true
	return l, o, nil
}

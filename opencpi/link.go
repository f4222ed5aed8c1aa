package opencpi

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

const (
	flagSize = 4 // bytes, of full flags and of empty ones
	// fullFlagPitch is the distance of full flags in OpenCPI's own consumers: ten
	// words of which one is ours, twice.
	fullFlagPitch = 80
)

// Offer makes a link that receives from a producer of OpenCPI's, to which the host's
// endpoint is connected, and the descriptor to be given to it. The link gives no buffer back
// before [Connect] has the producer's descriptor.
func Offer(h *link.Host, c *dgrdma.Conn, opt *link.Options) (*link.Link, Descriptor, error) {
	l, at, err := h.Offer(c, fullFlagPitch, opt)
	if err != nil {
		return nil, Descriptor{}, err
	}
	return l, Descriptor{
		Kind: KindConsumer, Role: RoleActiveFlowControl, Options: OptionActiveFlowControl | OptionFlagIsMeta,
		Buffers: at.N, DataAddr: at.Data, Pitch: at.Pitch, Size: at.Size,
		FullFlagAddr: at.Flags, FullFlagSize: flagSize, FullFlagPitch: at.FlagPitch, FullFlagValue: 1,
		Endpoint: h.URL(),
	}, nil
}

// Connect completes a link of [Offer] with the descriptor of the producer.
func Connect(l *link.Link, producer Descriptor) error {
	if producer.Kind != KindConsumerFlowControl && producer.Kind != KindProducer {
		return badDescriptor("connect: kind is %v, expected producer or consumer_flow_control: the producer's answer", producer.Kind)
	}
	return unusable(l.Connect(link.EmptyFlags{Addr: producer.EmptyFlagAddr, Pitch: producer.EmptyFlagPitch}))
}

// Attach makes a link that sends to a consumer of OpenCPI's, to which the host's
// endpoint is connected, and the descriptor to be given to it, which says where our
// empty flags are.
func Attach(h *link.Host, c *dgrdma.Conn, consumer Descriptor, opt *link.Options) (*link.Link, Descriptor, error) {
	if err := consumer.Validate(); err != nil {
		return nil, Descriptor{}, err
	}
	if consumer.Kind != KindConsumer {
		return nil, Descriptor{}, badDescriptor("attach: kind is %v, expected consumer: the descriptor that the receiving side offers", consumer.Kind)
	}
	l, flags, err := h.Attach(c, link.Buffers{
		N: consumer.Buffers, Size: consumer.Size, Data: consumer.DataAddr, Pitch: consumer.Pitch,
		Flags: consumer.FullFlagAddr, FlagPitch: consumer.FullFlagPitch,
	}, opt)
	if err != nil {
		return nil, Descriptor{}, unusable(err)
	}
	return l, Descriptor{
		Kind: KindConsumerFlowControl, Role: RoleActiveMessage, Options: OptionActiveMessage | OptionFlagIsMeta,
		Buffers: consumer.Buffers, Size: consumer.Size, Pitch: consumer.Pitch,
		EmptyFlagAddr: flags.Addr, EmptyFlagSize: flagSize, EmptyFlagPitch: flags.Pitch, EmptyFlagValue: 1,
		Endpoint: h.URL(),
	}, nil
}

// unusable makes what link says about a descriptor's values an ErrDescriptor.
func unusable(err error) error {
	if errors.Is(err, link.ErrLayout) {
		return fmt.Errorf("%w: %w", ErrDescriptor, err)
	}
	return err
}

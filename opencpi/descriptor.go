package opencpi

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/url"
)

// ErrDescriptor is in every error about a descriptor.
var ErrDescriptor = errors.New("opencpi: bad descriptor")

func badDescriptor(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDescriptor, fmt.Errorf(format, args...))
}

// Kind says which side of a connection a descriptor is of, and what it is for.
type Kind uint32

const (
	KindConsumer            Kind = 1 // where the consumer's buffers and full flags are
	KindConsumerFlowControl Kind = 2 // the producer's answer: where its empty flags are
	KindProducer            Kind = 3
)

var kindWords = []string{
	KindConsumer:            "consumer",
	KindConsumerFlowControl: "consumer_flow_control",
	KindProducer:            "producer",
}

// String returns the word for k in JSON.
func (k Kind) String() string {
	if word := wordOf(kindWords, uint32(k)); word != "" {
		return word
	}
	return fmt.Sprintf("Kind(%d)", uint32(k))
}

// Role says what a port does to move data. On DG/RDMA the producer has
// RoleActiveMessage and the consumer RoleActiveFlowControl.
type Role uint32

const (
	RoleActiveMessage     Role = 0 // writes messages to the other side
	RoleActiveFlowControl Role = 1 // tells the other side which buffers are free
	RoleActiveOnly        Role = 2
	RolePassive           Role = 3
	RoleNone              Role = 5 // not decided
)

var roleWords = []string{
	RoleActiveMessage:     "active_message",
	RoleActiveFlowControl: "active_flow_control",
	RoleActiveOnly:        "active_only",
	RolePassive:           "passive",
	RoleNone:              "none",
}

// String returns the word for r in JSON.
func (r Role) String() string {
	if word := wordOf(roleWords, uint32(r)); word != "" {
		return word
	}
	return fmt.Sprintf("Role(%d)", uint32(r))
}

// wordOf returns "" for a value without a word.
func wordOf(words []string, value uint32) string {
	if uint64(value) < uint64(len(words)) {
		return words[value]
	}
	return ""
}

// Bits of Descriptor.Options, as OpenCPI's software sets them (docs/peers.md says which
// was tried). The first four say which roles the port can have.
const (
	OptionActiveMessage      uint32 = 1 << 0
	OptionActiveFlowControl  uint32 = 1 << 1
	OptionActiveOnly         uint32 = 1 << 2
	OptionPassive            uint32 = 1 << 3
	OptionFeedbackIsCount    uint32 = 1 << 4
	OptionMandatedRole       uint32 = 1 << 5
	OptionFlagIsMeta         uint32 = 1 << 6 // the full flag holds length, opcode and EOF; always so on DG/RDMA
	OptionFlagIsCounting     uint32 = 1 << 7
	OptionFlagIsMetaOptional uint32 = 1 << 8
	OptionPrefixMetadata     uint32 = 1 << 9 // of producers on cards
)

// Descriptor is what one side of a connection has to know about the other. The
// two sides exchange descriptors out of band: the consumer's first, then the
// producer's answer. Addresses are offsets in the memory of the endpoint. What
// belongs to buffer i is at the address plus i times the pitch.
//
// Descriptors are values: compare them with ==.
type Descriptor struct {
	Kind    Kind
	Role    Role
	Options uint32

	Buffers  uint32
	DataAddr uint32
	Pitch    uint32
	Size     uint32 // bytes in a buffer

	// MetaAddr and MetaPitch have no use with OptionFlagIsMeta.
	MetaAddr  uint32
	MetaPitch uint32

	// The producer writes full flags to the consumer. Software consumers use
	// pitch 80. Cards have one flag for all buffers: pitch 0.
	FullFlagAddr  uint32
	FullFlagSize  uint32
	FullFlagPitch uint32
	FullFlagValue uint32

	// The consumer writes EmptyFlagValue to the producer when it has emptied a
	// buffer. Software producers use size 4, pitch 4, value 1.
	EmptyFlagAddr  uint32
	EmptyFlagSize  uint32
	EmptyFlagPitch uint32
	EmptyFlagValue uint32

	PortID   uint64
	Endpoint string // as package url reads it; at most 255 bytes
	Cookie   uint64
	Address  uint64
}

// descriptorField is a field of a Descriptor: its name in JSON and in errors,
// and a *Kind, *Role, *uint32, *uint64 or *string.
type descriptorField struct {
	name  string
	value any
}

// fields returns all of d in the order in which OpenCPI transmits them.
func (d *Descriptor) fields() []descriptorField {
	return []descriptorField{
		{"kind", &d.Kind},
		{"role", &d.Role},
		{"options", &d.Options},
		{"buffers", &d.Buffers},
		{"data_addr", &d.DataAddr},
		{"pitch", &d.Pitch},
		{"size", &d.Size},
		{"meta_addr", &d.MetaAddr},
		{"meta_pitch", &d.MetaPitch},
		{"full_flag_addr", &d.FullFlagAddr},
		{"full_flag_size", &d.FullFlagSize},
		{"full_flag_pitch", &d.FullFlagPitch},
		{"full_flag_value", &d.FullFlagValue},
		{"empty_flag_addr", &d.EmptyFlagAddr},
		{"empty_flag_size", &d.EmptyFlagSize},
		{"empty_flag_pitch", &d.EmptyFlagPitch},
		{"empty_flag_value", &d.EmptyFlagValue},
		{"port_id", &d.PortID},
		{"endpoint", &d.Endpoint},
		{"cookie", &d.Cookie},
		{"address", &d.Address},
	}
}

// Validate reports whether a connection can be made with d: its values are
// known ones, and what it describes lies within the 2^32 bytes that have an
// address. Call it on descriptors of others. The error is ErrDescriptor.
func (d *Descriptor) Validate() error {
	switch {
	case wordOf(kindWords, uint32(d.Kind)) == "":
		return badDescriptor("kind is %d, expected 1 to 3", uint32(d.Kind))
	case wordOf(roleWords, uint32(d.Role)) == "":
		return badDescriptor("role is %d, expected 0 to 3, or 5", uint32(d.Role))
	case d.Buffers == 0:
		return badDescriptor("buffers is 0, expected at least 1")
	case d.Size == 0:
		return badDescriptor("size is 0, expected at least 1")
	case d.Buffers > 1 && d.Pitch < d.Size:
		return badDescriptor("pitch is %d, expected at least the size %d of one of the %d buffers", d.Pitch, d.Size, d.Buffers)
	}
	if err := d.checkReach("data_addr", d.DataAddr, d.Pitch, d.Size); err != nil {
		return err
	}
	// Nothing says how long metadata is.
	if err := d.checkReach("meta_addr", d.MetaAddr, d.MetaPitch, 1); err != nil {
		return err
	}
	if err := d.checkFlags("full_flag", d.FullFlagAddr, d.FullFlagPitch, d.FullFlagSize); err != nil {
		return err
	}
	if err := d.checkFlags("empty_flag", d.EmptyFlagAddr, d.EmptyFlagPitch, d.EmptyFlagSize); err != nil {
		return err
	}
	return d.checkEndpoint()
}

// checkReach checks that the last byte that belongs to the last buffer has an
// address. The sum is below 2^64 whatever the values.
func (d *Descriptor) checkReach(name string, base, pitch, size uint32) error {
	end := uint64(base) + uint64(d.Buffers-1)*uint64(pitch) + uint64(size)
	if end > 1<<32 {
		return badDescriptor("%s is %#x: %d buffers with pitch %d and size %d end at %#x, expected at most 0x100000000",
			name, base, d.Buffers, pitch, size, end)
	}
	return nil
}

func (d *Descriptor) checkFlags(name string, base, pitch, size uint32) error {
	const word = 4
	switch {
	case base%word != 0:
		return badDescriptor("%s_addr is %#x, expected a multiple of 4", name, base)
	case d.Buffers > 1 && pitch%word != 0:
		return badDescriptor("%s_pitch is %d, expected a multiple of 4", name, pitch)
	}
	return d.checkReach(name+"_addr", base, pitch, max(size, word))
}

func (d *Descriptor) checkEndpoint() error {
	if reason := endpointMisfit(d.Endpoint); reason != "" {
		return badDescriptor("endpoint is %.80q, expected %s", d.Endpoint, reason)
	}
	if d.Endpoint == "" {
		return nil
	}
	if _, err := url.Parse(d.Endpoint); err != nil {
		return badDescriptor("endpoint: %w", err)
	}
	return nil
}

package link

import "fmt"

// MaxMessage is the length in bytes of the longest message that a flag word can state.
const MaxMessage = 1<<21 - 1

// Where the parts of a flag word are in OpenCPI's software, its cards, and here.
const (
	flagFull        = 1 << 0
	flagLengthShift = 1
	flagEOF         = 1 << 22
	flagTruncated   = 1 << 23
	flagOpcodeShift = 24
)

// Flag is the word with which a producer declares a buffer full. It describes
// the message in the buffer. The zero Flag is that of an empty buffer.
type Flag uint32

// PackFlag returns the flag of a message. The length must be from 0 to
// MaxMessage; check messages of others before. The end of file may come with a
// message or with length 0.
//
// The result is never 0, and never 0xFFFFFFFF, which peers take for "no
// completion": it does not have the bit that says the message was truncated.
func PackFlag(length int, opcode uint8, eof bool) Flag {
	if length < 0 || length > MaxMessage {
		panic(fmt.Sprintf("BUG: link: flag of a message of %d bytes, expected 0 to %d", length, MaxMessage))
	}
	f := flagFull | Flag(length)<<flagLengthShift | Flag(opcode)<<flagOpcodeShift
	if eof {
		f |= flagEOF
	}
	return f
}

// Full reports whether f declares a buffer full. Peers look at no other bit for that; the rest of f
// means something only if it is full.
func (f Flag) Full() bool { return f&flagFull != 0 }

// Length returns the length of the message in bytes. A buffer may receive a few
// more, or fewer if the message was truncated.
func (f Flag) Length() int { return int(f >> flagLengthShift & MaxMessage) }

// Opcode returns the opcode of the message.
func (f Flag) Opcode() uint8 { return uint8(f >> flagOpcodeShift) }

// EOF reports whether the producer has no more messages after this one.
func (f Flag) EOF() bool { return f&flagEOF != 0 }

// Truncated reports whether the message did not fit in the buffer. Only cards
// say so.
func (f Flag) Truncated() bool { return f&flagTruncated != 0 }

// Message is a message in a buffer. Bytes are valid until it is released.
type Message struct {
	Number    uint64 // counts from 0
	Bytes     []byte
	Opcode    uint8
	EOF       bool // this is the last message
	Truncated bool // the producer had more than the buffer holds
}

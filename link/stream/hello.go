package stream

import (
	"encoding/binary"
	"fmt"
	"hash"
)

// hello is what the two sides tell each other when the link is made.
type hello struct {
	duplex   bool
	checksum bool
	size     int64 // of what the sender will send; negative: not known
}

const (
	helloVersion = 1
	helloLength  = 2 + 8

	flagDuplex   = 1 << 0
	flagChecksum = 1 << 1
)

func (h *hello) encode() []byte {
	b := []byte{helloVersion, 0}
	if h.duplex {
		b[1] |= flagDuplex
	}
	if h.checksum {
		b[1] |= flagChecksum
	}
	return binary.LittleEndian.AppendUint64(b, uint64(h.size))
}

func parseHello(b []byte) (hello, error) {
	if len(b) != helloLength || b[0] != helloVersion || b[1]&^(flagDuplex|flagChecksum) != 0 {
		return hello{}, &HelloError{Said: b}
	}
	return hello{duplex: b[1]&flagDuplex != 0, checksum: b[1]&flagChecksum != 0, size: int64(binary.LittleEndian.Uint64(b[2:]))}, nil
}

// The opcodes of messages.
const (
	opData    = iota
	opEnd     // no more data; a tally of it
	opReceipt // a tally of what was received and committed
)

// tally is how many bytes there were, and their SHA-256 if that is compared.
func tally(n int64, sum hash.Hash) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(n))
	if sum != nil {
		b = sum.Sum(b)
	}
	return b
}

// compare returns an ErrMismatch that says how two tallies differ, if they do.
func compare(local, remote []byte) error {
	if string(local) == string(remote) {
		return nil
	}
	return fmt.Errorf("%w: %s here, %s there", ErrMismatch, tallyText(local), tallyText(remote))
}

func tallyText(b []byte) string {
	if len(b) < 8 {
		return "nothing that can be read"
	}
	s := fmt.Sprintf("%d bytes", binary.LittleEndian.Uint64(b))
	if len(b) > 8 {
		s += fmt.Sprintf(" with SHA-256 %x", b[8:])
	}
	return s
}

package latency

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/verbs"
)

// version is that of the records and of what follows them.
const version = 1

const (
	magic       = "DGLT"
	headSize    = len(magic) + 4
	requestSize = headSize + 4 + verbs.KeySize
	replySize   = headSize + verbs.KeySize
)

// Errors.
var (
	// ErrStranger says that the peer is no client or server of this package.
	ErrStranger = errors.New("the peer measures no latency")
	// ErrRefused is what a server does not do for a client that it understands, and tells it.
	ErrRefused = errors.New("refused")
	// ErrSize says that a server takes no operations that are so large.
	ErrSize = errors.New("an operation is larger than the server takes")
	// ErrValue says that an atomic operation did not find what the one before had left.
	ErrValue = errors.New("a wrong value in the server's memory")
)

// request is what a client wants.
type request struct {
	op   Op
	size uint32
	key  verbs.Key // of its memory, for Write
}

func (r *request) bytes() []byte {
	b := append([]byte(magic), version, byte(r.op), 0, 0)
	b = binary.BigEndian.AppendUint32(b, r.size)
	return r.key.Append(b)
}

// Asks says that private data is that of a client of this package, of whatever version.
func Asks(private []byte) bool {
	return len(private) >= headSize && string(private[:len(magic)]) == magic
}

// refusal is why a server takes a client no further: an ErrStranger or ErrRefused, and the words for the client.
type refusal struct {
	kind error
	said string
}

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

func (e *refusal) Error() string { return e.kind.Error() + ": " + e.said }
func (e *refusal) Unwrap() error { return e.kind }

// parse reads a request. The error says why not, in words for the client.
func (r *request) parse(b []byte) error {
	if !Asks(b) {
		return refuse(ErrStranger, "this is ping --serve of dgrdmacat, which takes its own clients only")
	}
	if v := b[len(magic)]; v != version {
		return refuse(ErrRefused, "the client speaks version %d, and the server %d: use the same release at both sides", v, version)
	}
	r.op = Op(b[len(magic)+1])
	if !r.op.known() {
		return refuse(ErrRefused, "%v is not known here: use the same release at both sides", r.op)
	}
	if len(b) < requestSize || b[headSize-2] != 0 || b[headSize-1] != 0 {
		return refuse(ErrRefused, "the client's request is broken")
	}
	r.size = binary.BigEndian.Uint32(b[headSize:])
	key, err := verbs.ParseKey(b[headSize+4:])
	if err != nil {
		return err
	}
	r.key = key
	switch {
	case r.size == 0, r.op.Atomic() && r.size != WordSize, r.op == Write && r.key.Length < r.size:
		return refuse(ErrRefused, "%v of %d bytes cannot be", r.op, r.size)
	}
	return nil
}

// oversize is what a client is told that asks for operations larger than the server takes: a record, and words for people.
// All other clients are rejected in words alone.
func oversize(op Op, said string) []byte {
	return append(append([]byte(magic), version, byte(op), 0, 0), said...)
}

// sizeError is why a server takes no operations that are so large: an [ErrSize].
type sizeError struct{ *verbs.RejectedError }

func (e sizeError) Unwrap() error        { return e.RejectedError }
func (e sizeError) Is(target error) bool { return target == ErrSize }

// rejected reads why a server rejected a request, where that is a record. Other errors stay.
func (r *request) rejected(err error) error {
	var e *verbs.RejectedError
	if !errors.As(err, &e) || !bytes.HasPrefix(e.Private, oversize(r.op, "")) {
		return err
	}
	return sizeError{&verbs.RejectedError{Private: e.Private[headSize:], From: e.From}}
}

// reply is what a server grants.
type reply struct {
	op         Op
	persistent bool
	key        verbs.Key
}

func (r *reply) bytes() []byte {
	flags := byte(0)
	if r.persistent {
		flags = 1
	}
	return r.key.Append(append([]byte(magic), version, byte(r.op), flags, 0))
}

// parse reads the reply to a request.
func (r *reply) parse(b []byte, of *request) (err error) {
	if len(b) < replySize || string(b[:len(magic)]) != magic || b[len(magic)] != version || Op(b[len(magic)+1]) != of.op {
		return fmt.Errorf("%w: it accepted, and did not say for what, as rping and other programs of RDMA do", ErrStranger)
	}
	r.op, r.persistent = of.op, b[headSize-2]&1 != 0
	if r.key, err = verbs.ParseKey(b[headSize:]); err != nil {
		return err
	}
	if of.op != Send && r.key.Length < of.size {
		return fmt.Errorf("%w: it grants %d bytes of memory for %v of %d", ErrStranger, r.key.Length, of.op, of.size)
	}
	return nil
}

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"syscall"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// hello is what the two sides of a stream tell each other when the link is made.
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
	if len(b) > 0 && b[0] != helloVersion {
		return hello{}, fmt.Errorf("version %d of streams is spoken there, %d here: use the same dgrdmacat at both ends", b[0], helloVersion)
	}
	if len(b) != helloLength || b[1]&^(flagDuplex|flagChecksum) != 0 {
		return hello{}, fmt.Errorf("what is there is no dgrdmacat: it introduced itself with % x", b)
	}
	return hello{duplex: b[1]&flagDuplex != 0, checksum: b[1]&flagChecksum != 0, size: int64(binary.LittleEndian.Uint64(b[2:]))}, nil
}

// tally is how many bytes there were, and their SHA-256 if there is one.
func tally(m *meter, sum hash.Hash) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(m.moved.Load()))
	if sum != nil {
		b = sum.Sum(b)
	}
	return b
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

var (
	errInterrupted = errors.New("interrupted")
	errEndedEarly  = errors.New("it ended the stream before all of it was there")
)

// localError is a failure on this side.
type localError struct {
	what string
	err  error
}

func (e *localError) Error() string { return e.what + ": " + e.err.Error() }

func (e *localError) Unwrap() error { return e.err }

// reasonForPeer is what the peer is told. Names of files are none of its business.
func reasonForPeer(err error) string {
	var local *localError
	if !errors.As(err, &local) {
		return err.Error()
	}
	cause := local.err
	var number syscall.Errno
	if errors.As(cause, &number) {
		cause = number
	} else if errors.Is(cause, fs.ErrExist) {
		cause = fs.ErrExist
	}
	return local.what + ": " + cause.Error()
}

// goneAlready reports whether a stream failed because of a peer that listens no
// more.
func goneAlready(err error) bool {
	return errors.Is(err, link.ErrPeerClosed) || errors.Is(err, dgrdma.ErrPeerDown) || errors.Is(err, dgrdma.ErrPeerRestarted)
}

// inWords says in words of streams why one failed; who is the other side.
func inWords(err error, who string, l *link.Link) error {
	name := l.Peer().Name()
	var aborted *link.AbortError
	switch {
	case errors.As(err, &aborted):
		return fmt.Errorf("the %s, %v, gave up: %s", who, name, aborted.Reason)
	case errors.Is(err, dgrdma.ErrPeerDown):
		return fmt.Errorf("the %s, %v, does not answer any more: was it killed, or is the network down?", who, name)
	case errors.Is(err, dgrdma.ErrPeerRestarted):
		return fmt.Errorf("the %s, %v, was started anew", who, name)
	case errors.Is(err, errEndedEarly), errors.Is(err, link.ErrPeerClosed):
		return fmt.Errorf("the %s, %v, ended before all was there", who, name)
	}
	return err
}

// explainDial says what to look at when nobody is reached.
func explainDial(err error, peer string) error {
	if errors.Is(err, link.ErrNoAnswer) || errors.Is(err, dgrdma.ErrPeerDown) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer from %s: does dgrdmacat listen run there, is this the URL it printed when it was last started, and do routes and firewalls let its datagrams through?", peer)
	}
	return err
}

// withoutPath is an error of a file without the name that the caller says anyway.
func withoutPath(err error) error {
	var path *fs.PathError
	var two *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &two):
		return two.Err
	}
	return err
}

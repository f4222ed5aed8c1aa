package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/rping"
)

// goneTCP says in one sentence who ended a connection, how, and where a user may look; the layers between that end and the command say
// nothing that helps. about is where the other side is, or what was under way, "" where who prints it says that. Other errors stay.
func goneTCP(about string, err error) error {
	var terminated *verbs.TerminateError
	var call *os.SyscallError
	var number syscall.Errno
	words := ""
	switch {
	case errors.As(err, new(untold)): // the pipe that is broken is that of this side's output
		return err
	case errors.As(err, &terminated) && terminated.Remote:
		words = fmt.Sprintf("%v: the other side found a fault in what was sent", terminated)
	case errors.Is(err, verbs.ErrPeerClosed):
		words = "the peer closed the connection, before this side was done; does the other side say why?"
	case resetTCP(err):
		words = "the other side ended the connection (connection reset), without a good-bye: was it killed, or else does the other side say why?"
	case errors.Is(err, io.ErrUnexpectedEOF):
		words = "the other side ended the connection in the middle of a message, without a good-bye: was it killed, or else does the other side say why?"
	case errors.As(err, &number) && refused.NoFiles(number):
		words = refused.Files(number).Error()
	case errors.As(err, &call):
		words = fmt.Sprintf("the connection to the other side failed (%v); is the network down, or the other side gone?", call.Err)
	case errors.Is(err, rping.ErrSilent):
		return fmt.Errorf("%w; is the program there stopped, or its machine or the network down? --wait is how long it may take", err)
	default:
		return err
	}
	if about != "" {
		words = about + ": " + words
	}
	return &tcpError{words, err}
}

// resetTCP says that the other side, or something on the way, has dropped a connection.
func resetTCP(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// endedTCP says that the other side has ended a connection, in whatever way.
func endedTCP(err error) bool {
	var terminated *verbs.TerminateError
	return errors.Is(err, verbs.ErrPeerClosed) || resetTCP(err) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &terminated) && terminated.Remote
}

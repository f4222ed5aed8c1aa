package netconn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// ErrForeign is the error for a peer that has links, and is no peer of this package.
var ErrForeign = errors.New("netconn: the peer speaks something else at that port")

// likeTCP is an error of a link, and the error that TCP would have in its place.
type likeTCP struct {
	error
	known error
}

// Unwrap returns both errors.
func (e *likeTCP) Unwrap() []error { return []error{e.error, e.known} }

// Timeout is called by net.OpError.
func (e *likeTCP) Timeout() bool {
	t, ok := e.known.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// failed adds to an error the connection that it is of.
func (c *Conn) failed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case c.closed.Load():
		err = net.ErrClosed
	case err == io.EOF:
		return err
	case op == "write" && c.ended.Load() && errors.Is(err, link.ErrClosed):
		err = &likeTCP{errors.New("CloseWrite was called"), syscall.EPIPE}
	default:
		err = known(op, err)
	}
	return &net.OpError{Op: op, Net: Network, Source: c.local, Addr: c.remote, Err: err}
}

// known returns an error together with the one that TCP would have.
func known(op string, err error) error {
	if of := (*link.Error)(nil); errors.As(err, &of) {
		err = of.Err // the addresses say which link
	}
	for _, c := range []struct{ is, as error }{
		{link.ErrRefused, syscall.ECONNREFUSED},
		{dgrdma.ErrWrongID, syscall.ECONNREFUSED},
		{dgrdma.ErrRefused, syscall.ECONNREFUSED},
		{link.ErrNoAnswer, os.ErrDeadlineExceeded},
		{context.DeadlineExceeded, os.ErrDeadlineExceeded},
		{dgrdma.ErrPeerDown, syscall.ETIMEDOUT},
		{dgrdma.ErrPeerRestarted, syscall.ECONNRESET},
		{dgrdma.ErrReset, syscall.ECONNRESET},
	} {
		if errors.Is(err, c.is) {
			return &likeTCP{err, c.as}
		}
	}
	if errors.Is(err, link.ErrPeerClosed) {
		if op == "write" {
			return &likeTCP{err, syscall.EPIPE}
		}
		return &likeTCP{err, syscall.ECONNRESET}
	}
	return err
}

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

// ErrForeign is of a peer that is a link's, but no connection's.
var ErrForeign = errors.New("netconn: the peer speaks something else at that port")

// likeTCP is an error of a link, and what TCP would say in its place.
type likeTCP struct {
	error
	known error
}

// Unwrap is for errors.Is and errors.As.
func (e *likeTCP) Unwrap() []error { return []error{e.error, e.known} }

// Timeout is what net.OpError asks for.
func (e *likeTCP) Timeout() bool {
	t, ok := e.known.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// failed says which connection an error is of, if there is one.
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

// known returns an error together with what TCP says in that case.
func known(op string, err error) error {
	if of := (*link.Error)(nil); errors.As(err, &of) {
		err = of.Err // of which link, the addresses say
	}
	for _, c := range []struct{ is, as error }{
		{link.ErrRefused, syscall.ECONNREFUSED},
		{dgrdma.ErrWrongID, syscall.ECONNREFUSED},
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

package bench

import "errors"

// The errors of measurements; those of what carries them come besides.
var (
	ErrInterrupted = errors.New("interrupted") // less was measured than was wished
	ErrBusy        = errors.New("the server is busy with another client")
	ErrNoAnswer    = errors.New("the server does not answer; does it serve bench, with the same profile?")
	ErrNoRate      = errors.New("the server is an older one, which writes as fast as it can and knows no rate")
	ErrSilent      = errors.New("the client fell silent in the middle of a run")
)

// TCPError says that the TCP stream failed, with which DG/RDMA takes turns.
type TCPError struct{ Err error }

func (e *TCPError) Error() string { return "the TCP stream beside it: " + e.Err.Error() }

func (e *TCPError) Unwrap() error { return e.Err }

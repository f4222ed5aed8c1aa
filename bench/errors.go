package bench

import "errors"

// The errors of measurements; those of what carries them come besides.
var (
	ErrInterrupted = errors.New("interrupted") // less was measured than was wished
	ErrBusy        = errors.New("the server is busy with another client")
	ErrNoAnswer    = errors.New("the server does not answer; does it serve bench, with the same profile, and with no larger MTU than the way to here carries?")
	ErrNoRate      = errors.New("the server is an older one, which writes as fast as it can and knows no rate")
	ErrNoCarrier   = errors.New("the server is an older one, which compares with nothing, or with a TCP stream at its own port alone")
	ErrRefused     = errors.New("the server cannot await it, and says why")
	ErrSilent      = errors.New("the client fell silent in the middle of a run")
)

// CarrierError says that something else failed, with which DG/RDMA takes turns.
type CarrierError struct {
	Carrier Carrier
	Err     error
}

func (e *CarrierError) Error() string { return e.Carrier.String() + " beside it: " + e.Err.Error() }

func (e *CarrierError) Unwrap() error { return e.Err }

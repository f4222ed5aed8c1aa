package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors of measurements; those of what carries them come besides.
var (
	ErrInterrupted  = errors.New("interrupted") // less was measured than was wished
	ErrBusy         = errors.New("the server is busy with another client")
	ErrNoAnswer     = errors.New("the server does not answer; does it serve bench, with the same profile, and with no larger MTU than the way to here carries?")
	ErrNoRate       = errors.New("the server is an older one, which writes as fast as it can and knows no rate")
	ErrNoCarrier    = errors.New("the server is an older one, which compares with nothing, or with a TCP stream at its own port alone")
	ErrRefused      = errors.New("the server cannot await it, and says why")
	ErrNoBench      = errors.New("no server of bench over TCP listens there")
	ErrServerSilent = errors.New("the server fell silent")
	ErrSilent       = errors.New("the client fell silent in the middle of a run")
)

// whySilent ends what is said of who fell silent.
const whySilent = "; is its program stopped, or its machine or the network down?"

// BusyError is an [ErrBusy] of a server that tells of its client.
type BusyError struct {
	Client   string        // printable, whatever the server sent
	For      time.Duration // since it came
	Silent   time.Duration // since it was heard last
	Patience time.Duration // that it may be silent if others come
}

func (e *BusyError) Error() string {
	s := "the server is busy with another client, " + e.Client
	if e.For >= time.Second {
		s += fmt.Sprintf(", for %v by now", e.For.Truncate(time.Second))
	}
	if e.Silent > time.Second {
		s += fmt.Sprintf("; that is silent for %v, and gives way to who comes when it is for %v", e.Silent.Round(time.Second), e.Patience)
	}
	return s
}

// Is reports whether target is [ErrBusy].
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// busyWith reads what a server says that is busy.
func busyWith(record []byte) error {
	var b busy
	decode(record, &b)
	name, _, _ := bytes.Cut(b.Client[:], []byte{0})
	if len(name) == 0 {
		return ErrBusy // an older one
	}
	return &BusyError{printable(name), time.Duration(b.For), time.Duration(b.Silent), time.Duration(b.Patience)}
}

// CarrierError says that something else failed, with which DG/RDMA takes turns.
type CarrierError struct {
	Carrier Carrier
	Err     error
}

func (e *CarrierError) Error() string { return e.Carrier.String() + " beside it: " + e.Err.Error() }

func (e *CarrierError) Unwrap() error { return e.Err }

// ControllerError says that the system does not let this process use a congestion controller of TCP.
type ControllerError struct {
	Refused RefusedController
	Usable  []string // others
}

func (e *ControllerError) Error() string {
	return fmt.Sprintf("congestion controller %v: use one of %s", e.Refused, strings.Join(e.Usable, ", "))
}

func (e *ControllerError) Unwrap() error { return e.Refused.Err }

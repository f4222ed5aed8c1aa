package rpc

import (
	"errors"
	"fmt"
	"net"

	"github.com/dgrdma/dgrdma/rpcrdma"
)

// Errors of calls, to test for with errors.Is. A handler may return them as well.
var (
	// ErrProcedureUnavailable is PROC_UNAVAIL: the program has no such procedure.
	ErrProcedureUnavailable = errors.New("the server does not have this procedure")
	// ErrGarbageArgs is GARBAGE_ARGS: the server could not decode the arguments.
	ErrGarbageArgs = errors.New("the server could not decode the arguments")
	// ErrSystem is SYSTEM_ERR: the server failed, and does not say how.
	ErrSystem = errors.New("the server failed to carry it out (SYSTEM_ERR)")
	// ErrLost says that the connection was lost after the call was sent: it may have been carried out.
	ErrLost = errors.New("the connection was lost before the reply came, and the call may have been carried out")
	// ErrNoReply says that the server did not reply for [ClientOptions.GiveUp], whatever connections were tried: the call may have
	// been carried out.
	ErrNoReply = errors.New("the server does not reply")
	// ErrEnded says that the connection has ended, and the client does not connect again: the call was not sent.
	ErrEnded = errors.New("the connection has ended")
	// ErrNoCallbacks says that a client takes no calls of its server ([ClientOptions.Callbacks]). Over version 2 of RPC-over-RDMA
	// a server knows that; over version 1 and TCP such a call has no reply.
	ErrNoCallbacks = rpcrdma.ErrReverse
	// ErrBehind says that a client made more calls than the server takes, so that its reply to a call of the server could not be
	// read: the call may have been carried out.
	ErrBehind = errors.New("the reply waits behind calls of the client for which there is no place (raise Credits or Calls)")
	// ErrTooLong says that a reply is longer than the call has room for: than [ClientOptions.MaxReply], [Procedure.MaxResults] or
	// [CallOptions.MaxResults], or its item than [CallOptions.Into]. The error says which of them, and both lengths; with a
	// server of version 1 of RPC-over-RDMA it does not know that.
	ErrTooLong = errors.New("the reply is longer than there is room for")
	// ErrBulk says that arguments or results do not follow the table of their program: they have more items that are encoded with
	// Bulk than [Procedure.BulkArgs] or [Procedure.BulkResults] allow, or Into is for results that have none.
	ErrBulk = errors.New("the program's table does not allow that")
	// ErrNotRPC says that the peer speaks another protocol. Of a server it is said if it sends something else, or closes each
	// connection without a reply. A client that has had a reply goes on to connect instead.
	ErrNotRPC = errors.New("the peer does not speak ONC RPC")
	// ErrReply says that a message of the server is no reply of ONC RPC.
	ErrReply = errors.New("invalid reply")
	// ErrClosed says that this side has closed the client or the server. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
)

// ProgramError says that a server does not have a program, or not this version of it. [VersionError] is of the version of ONC RPC.
type ProgramError struct {
	// Unavailable is PROG_UNAVAIL: no version is served. Else it is PROG_MISMATCH: versions from Low to
	// High are.
	Unavailable bool
	Low, High   uint32
}

func (e *ProgramError) Error() string {
	if e.Unavailable {
		return "the server does not have this program"
	}
	if e.Low == e.High {
		return fmt.Sprintf("the server has version %d of this program only", e.Low)
	}
	return fmt.Sprintf("the server has versions %d to %d of this program", e.Low, e.High)
}

// VersionError is RPC_MISMATCH: the server does not speak version 2 of ONC RPC. [ProgramError] is of the version of a program.
type VersionError struct{ Low, High uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the server speaks versions %d to %d of ONC RPC, not 2", e.Low, e.High)
}

// AuthError is AUTH_ERROR: the server does not take the caller's credential.
type AuthError struct{ Status AuthStatus }

func (e *AuthError) Error() string {
	return "the server refuses the credential: " + e.Status.String()
}

// AuthStatus says what is wrong with a credential: auth_stat.
type AuthStatus uint32

// The statuses of RFC 5531, section 9.
const (
	AuthOK             AuthStatus = 0
	BadCredential      AuthStatus = 1 // AUTH_BADCRED
	Rejected           AuthStatus = 2 // AUTH_REJECTEDCRED
	BadVerifier        AuthStatus = 3 // AUTH_BADVERF
	RejectedVerifier   AuthStatus = 4 // AUTH_REJECTEDVERF
	TooWeak            AuthStatus = 5 // AUTH_TOOWEAK
	InvalidResponse    AuthStatus = 6 // AUTH_INVALIDRESP
	AuthenticationFail AuthStatus = 7 // AUTH_FAILED
)

func (s AuthStatus) String() string {
	switch s {
	case AuthOK:
		return "nothing is wrong with it (AUTH_OK)"
	case BadCredential:
		return "it is malformed (AUTH_BADCRED)"
	case Rejected:
		return "it is rejected (AUTH_REJECTEDCRED)"
	case BadVerifier:
		return "its verifier is malformed (AUTH_BADVERF)"
	case RejectedVerifier:
		return "its verifier is rejected (AUTH_REJECTEDVERF)"
	case TooWeak:
		return "it is too weak (AUTH_TOOWEAK)"
	case InvalidResponse:
		return "the server's verifier is invalid (AUTH_INVALIDRESP)"
	case AuthenticationFail:
		return "it fails for an unknown reason (AUTH_FAILED)"
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// CallError says which call failed. Each error of [Binding.Call] is one.
type CallError struct {
	Program   *Program
	Procedure uint32
	Address   string // of the server
	Err       error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("call %s at %s: %v", e.Program.call(e.Procedure), e.Address, e.Err)
}

// Name names the call, as in "READ of NFS version 3".
func (e *CallError) Name() string { return e.Program.call(e.Procedure) }

func (e *CallError) Unwrap() error { return e.Err }

package rpc

import (
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// rpcVersion is the version of ONC RPC.
const rpcVersion = 2

// Kinds of messages.
const (
	kindCall  = 0
	kindReply = 1
)

// callHeader is what a call begins with.
type callHeader struct {
	xid, program, version, procedure uint32
	credential, verifier             Auth
}

// append appends the header of a call in version 2.
func (h *callHeader) append(e *xdr.Encoder) {
	e.Uint32(h.xid)
	e.Uint32(kindCall)
	e.Uint32(rpcVersion)
	e.Uint32(h.program)
	e.Uint32(h.version)
	e.Uint32(h.procedure)
	appendAuth(e, h.credential)
	appendAuth(e, h.verifier)
}

func appendAuth(e *xdr.Encoder, a Auth) {
	e.Uint32(uint32(a.Flavor))
	e.Opaque(a.Body)
}

func takeAuth(d *xdr.Decoder) Auth {
	return Auth{Flavor(d.Uint32()), d.Opaque(maxAuth)}
}

// take takes the header of a call. It reports whether there is a call that can be answered, and the
// status to answer it with: statusSuccess if nothing is wrong in the header.
func (h *callHeader) take(d *xdr.Decoder) (answer replyHeader, ok bool) {
	*h = callHeader{xid: d.Uint32()}
	answer.xid = h.xid
	kind, version := d.Uint32(), d.Uint32()
	if d.Err() != nil || kind != kindCall {
		return answer, false
	}
	if version != rpcVersion {
		answer.status, answer.low, answer.high = statusVersion, rpcVersion, rpcVersion
		return answer, true
	}
	h.program, h.version, h.procedure = d.Uint32(), d.Uint32(), d.Uint32()
	if d.Err() != nil {
		return answer, false
	}
	if h.credential = takeAuth(d); d.Err() != nil {
		answer.deny(BadCredential)
		return answer, true
	}
	if h.verifier = takeAuth(d); d.Err() != nil {
		answer.deny(BadVerifier)
		return answer, true
	}
	if wrong := check(h.credential, h.verifier); wrong != AuthOK {
		answer.deny(wrong)
	}
	return answer, true
}

// takeTooLong takes what is left of the header of a call that is too long. What has not come is 0.
func (h *callHeader) takeTooLong(d *xdr.Decoder) (answer replyHeader, ok bool) {
	*h = callHeader{xid: d.Uint32()}
	ok = d.Uint32() == kindCall && d.Err() == nil
	d.Uint32() // the version of ONC RPC
	h.program, h.version, h.procedure = d.Uint32(), d.Uint32(), d.Uint32()
	return replyHeader{xid: h.xid, status: statusSystem}, ok
}

// status says what became of a call: the accept_stat of an accepted one, or why it was denied.
type status uint32

const (
	statusSuccess              status = 0
	statusProgramUnavailable   status = 1
	statusProgramMismatch      status = 2
	statusProcedureUnavailable status = 3
	statusGarbageArgs          status = 4
	statusSystem               status = 5

	statusVersion status = denied + 0
	statusAuth    status = denied + 1
)

// denied is added to the reject_stat of a denied call. It is arbitrary.
const denied = 16

// replyHeader is what a reply begins with.
type replyHeader struct {
	xid       uint32
	status    status
	low, high uint32 // versions of the program, or of ONC RPC
	auth      AuthStatus
}

// deny makes the reply one that refuses the credential.
func (h *replyHeader) deny(s AuthStatus) { h.status, h.auth = statusAuth, s }

// append appends the header. The verifier is that of AUTH_NONE.
func (h *replyHeader) append(e *xdr.Encoder) {
	e.Uint32(h.xid)
	e.Uint32(kindReply)
	if h.status >= denied {
		e.Uint32(1)
		e.Uint32(uint32(h.status) - denied)
	} else {
		e.Uint32(0)
		appendAuth(e, None)
		e.Uint32(uint32(h.status))
	}
	switch h.status {
	case statusVersion, statusProgramMismatch:
		e.Uint32(h.low)
		e.Uint32(h.high)
	case statusAuth:
		e.Uint32(uint32(h.auth))
	}
}

// take takes the header of a reply. Its error is ErrReply.
func (h *replyHeader) take(d *xdr.Decoder) error {
	*h = replyHeader{xid: d.Uint32()}
	kind := d.Uint32()
	switch isDenied := d.Bool(); {
	case d.Err() != nil:
	case kind != kindReply:
		return fmt.Errorf("%w: a message of kind %d", ErrReply, kind)
	case isDenied:
		h.status = denied + status(d.Uint32())
		if h.status != statusVersion && h.status != statusAuth {
			return fmt.Errorf("%w: denied with status %d", ErrReply, h.status-denied)
		}
	default:
		takeAuth(d)
		if h.status = status(d.Uint32()); h.status > statusSystem {
			return fmt.Errorf("%w: accepted with status %d", ErrReply, h.status)
		}
	}
	switch h.status {
	case statusVersion, statusProgramMismatch:
		h.low, h.high = d.Uint32(), d.Uint32()
	case statusAuth:
		h.auth = AuthStatus(d.Uint32())
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrReply, err)
	}
	return nil
}

// err returns what the reply means for the caller.
func (h *replyHeader) err() error {
	switch h.status {
	case statusProgramUnavailable:
		return &ProgramError{Unavailable: true}
	case statusProgramMismatch:
		return &ProgramError{Low: h.low, High: h.high}
	case statusProcedureUnavailable:
		return ErrProcedureUnavailable
	case statusGarbageArgs:
		return ErrGarbageArgs
	case statusSystem:
		return ErrSystem
	case statusVersion:
		return &VersionError{h.low, h.high}
	case statusAuth:
		return &AuthError{h.auth}
	}
	return nil
}

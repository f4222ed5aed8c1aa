package rpcrdma

import (
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// RPC is what an ONC RPC Call is (RFC 5531).
type RPC struct {
	Known          bool
	Program        uint32
	ProgramVersion uint32
	Procedure      uint32
	Compound       *Compound // of a COMPOUND of NFS 4: what it asks for, if that is known
	args           []byte    // as far as they are known
	argsAt         int       // where they begin in the message
}

// Name returns program, version and procedure in words: "NFS 3 READ", "NFS 4.1 COMPOUND (SEQUENCE, PUTFH, READ)".
func (r *RPC) Name() string {
	if !r.Known {
		return "unknown procedure"
	}
	p := programs[r.Program]
	if p == nil {
		return fmt.Sprintf("program %s version %d procedure %d", r.ProgramNumber(), r.ProgramVersion, r.Procedure)
	}
	if r.Compound != nil {
		return fmt.Sprintf("%s 4.%d %s (%v)", p.name, r.Compound.Minor, p.procedures[4][nfs4Compound], r.Compound)
	}
	if names := p.procedures[r.ProgramVersion]; uint64(r.Procedure) < uint64(len(names)) {
		return fmt.Sprintf("%s %d %s", p.name, r.ProgramVersion, names[r.Procedure])
	}
	return fmt.Sprintf("%s %d procedure %d", p.name, r.ProgramVersion, r.Procedure)
}

// ownPrograms is the first number of those that are of users (RFC 5531).
const ownPrograms = 0x20000000

// ProgramNumber returns the number of the program in words: hexadecimal if it is of users, as RFC 5531 writes those.
func (r *RPC) ProgramNumber() string {
	if r.Program >= ownPrograms {
		return fmt.Sprintf("%#x", r.Program)
	}
	return fmt.Sprint(r.Program)
}

// compoundText lists the operations of a COMPOUND; it is empty if there are none.
func (r *RPC) compoundText() string {
	if r.Compound == nil {
		return ""
	}
	return r.Compound.String()
}

// Status is how a Call was answered.
type Status struct {
	Known  bool
	Denied bool
	Code   uint32 // of acceptance or denial
	Low    uint32 // versions that are served, of a mismatch
	High   uint32
	Why    uint32 // of an authentication error

	HasResult bool
	Result    uint32 // the first word of the results, of programs of which it is a status
	At        string // the operation of a COMPOUND that has it, and was the last one
	names     *statusNames
	results   []byte
}

var accepted = [...]string{"success", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}

// Success reports whether the Call was carried out.
func (s *Status) Success() bool { return s.Known && !s.Denied && s.Code == 0 }

// Refused reports whether the Call was carried out with a status that is no success, as NFS3ERR_NOENT.
func (s *Status) Refused() bool { return s.Success() && s.HasResult && s.Result != 0 }

// String says what it is.
func (s *Status) String() string {
	switch {
	case !s.Known:
		return "status not known"
	case s.Denied && s.Code == 0:
		return fmt.Sprintf("RPC_MISMATCH: versions %d to %d", s.Low, s.High)
	case s.Denied && s.Code == 1:
		return fmt.Sprintf("AUTH_ERROR %d", s.Why)
	case s.Denied:
		return fmt.Sprintf("denied %d", s.Code)
	case s.Code == 2:
		return fmt.Sprintf("PROG_MISMATCH: versions %d to %d", s.Low, s.High)
	case uint64(s.Code) >= uint64(len(accepted)):
		return fmt.Sprintf("accept state %d", s.Code)
	case s.Refused() && s.At != "":
		return s.names.of(s.Result) + " at " + s.At
	case s.Refused():
		return s.names.of(s.Result)
	}
	return accepted[s.Code]
}

// Types of RPC messages, and the version of ONC RPC.
const (
	callType   = 0
	replyType  = 1
	rpcVersion = 2
	maxAuth    = 400
)

// xidOf reads the first two words of an RPC message.
func xidOf(b []byte) (xid, kind uint32, ok bool) {
	var d xdr.Decoder
	d.Reset(b, nil)
	xid, kind = d.Uint32(), d.Uint32()
	return xid, kind, d.Err() == nil
}

// parseCall reads the header of a Call. It is not Known if the message ends before, or is none.
func parseCall(b []byte) (r RPC) {
	var d xdr.Decoder
	d.Reset(b, nil)
	d.Uint32()
	if d.Uint32() != callType || d.Uint32() != rpcVersion {
		return r
	}
	r.Program, r.ProgramVersion, r.Procedure = d.Uint32(), d.Uint32(), d.Uint32()
	if r.Known = d.Err() == nil; !r.Known {
		return r
	}
	for range 2 { // credentials and verifier
		d.Uint32()
		d.Opaque(maxAuth)
	}
	if d.Err() == nil {
		r.args, r.argsAt = d.Left(), d.Offset()
	}
	return r
}

// parseReply reads the header of the Reply to a Call.
func parseReply(b []byte, of *RPC) (s Status) {
	var d xdr.Decoder
	d.Reset(b, nil)
	d.Uint32()
	if d.Uint32() != replyType {
		return s
	}
	switch d.Uint32() {
	case 0:
		d.Uint32()
		d.Opaque(maxAuth)
		if s.Code = d.Uint32(); s.Code == 2 {
			s.Low, s.High = d.Uint32(), d.Uint32()
		}
	case 1:
		s.Denied = true
		if s.Code = d.Uint32(); s.Code == 0 {
			s.Low, s.High = d.Uint32(), d.Uint32()
		} else {
			s.Why = d.Uint32()
		}
	default:
		return s
	}
	if s.Known = d.Err() == nil; !s.Success() {
		return s
	}
	s.results = d.Left()
	if of.hasStatus() {
		s.Result = d.Uint32()
		s.HasResult, s.names = d.Err() == nil, of.statusNames()
	}
	if s.Refused() && of.Compound != nil {
		d.Opaque(mostKept) // the tag
		if n := d.Uint32(); d.Err() == nil {
			s.At = of.Compound.at(n)
		}
	}
	return s
}

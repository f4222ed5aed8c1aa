package rpc

import (
	"fmt"
	"os"

	"github.com/dgrdma/dgrdma/xdr"
)

// Flavor is a kind of authentication: what the body of an [Auth] is.
type Flavor uint32

// Flavors that this package knows. RPCSEC_GSS, 6, is none of them.
const (
	FlavorNone Flavor = 0
	FlavorSys  Flavor = 1
)

func (f Flavor) String() string {
	switch f {
	case FlavorNone:
		return "AUTH_NONE"
	case FlavorSys:
		return "AUTH_SYS"
	}
	return fmt.Sprintf("flavor %d", uint32(f))
}

// Auth says who calls: the credential of a call. It proves nothing by itself.
type Auth struct {
	Flavor Flavor
	Body   []byte // at most 400 octets
}

// None is the credential of a caller who does not say who he is.
var None = Auth{}

// Sys is the body of a credential of flavor AUTH_SYS: a user of a Unix system. Nothing is proven by
// it: whoever reaches the server says who he is.
type Sys struct {
	Stamp    uint32 // arbitrary
	Machine  string // at most 255 octets
	UID, GID uint32
	GIDs     []uint32 // at most 16
}

// Bounds of credentials (RFC 5531, section 8.2 and appendix A).
const (
	maxAuth    = 400
	maxMachine = 255
	maxGIDs    = 16
	sysStamp   = 4 // octets of a body of AUTH_SYS, before the machine
)

// MarshalXDR encodes the body.
func (s *Sys) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(s.Stamp)
	e.String(s.Machine)
	e.Uint32(s.UID)
	e.Uint32(s.GID)
	e.Uint32(uint32(len(s.GIDs)))
	for _, gid := range s.GIDs {
		e.Uint32(gid)
	}
}

// UnmarshalXDR decodes the body. It takes no memory for a name that s has already, nor for groups for which s has room.
func (s *Sys) UnmarshalXDR(d *xdr.Decoder) {
	s.Stamp = d.Uint32()
	if m := d.Opaque(maxMachine); string(m) != s.Machine {
		s.Machine = string(m)
	}
	s.UID = d.Uint32()
	s.GID = d.Uint32()
	n := d.Count(maxGIDs, 4)
	s.GIDs = s.GIDs[:0]
	for range n {
		s.GIDs = append(s.GIDs, d.Uint32())
	}
}

// Auth returns the credential. A machine name of more than 255 octets is cut, and of more than 16
// groups the first 16 are told.
func (s *Sys) Auth() Auth {
	told := *s
	told.Machine = told.Machine[:min(len(told.Machine), maxMachine)]
	told.GIDs = told.GIDs[:min(len(told.GIDs), maxGIDs)]
	var e xdr.Encoder
	told.MarshalXDR(&e)
	return Auth{FlavorSys, e.Bytes()}
}

// ProcessSys returns user and groups of this process.
func ProcessSys() *Sys {
	machine, _ := os.Hostname()
	s := &Sys{Machine: machine, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	groups, _ := os.Getgroups()
	for _, g := range groups {
		s.GIDs = append(s.GIDs, uint32(g))
	}
	return s
}

// Sys returns what a credential of flavor AUTH_SYS says. Its error is an [AuthError].
func (a Auth) Sys() (*Sys, error) {
	s := new(Sys)
	if err := s.Take(a); err != nil {
		return nil, err
	}
	return s, nil
}

// Take is [Auth.Sys] into s, whose memory it uses again.
func (s *Sys) Take(a Auth) error {
	if a.Flavor != FlavorSys {
		return &AuthError{Rejected}
	}
	var d xdr.Decoder
	d.Reset(a.Body, nil)
	s.UnmarshalXDR(&d)
	if d.Err() != nil || len(d.Left()) > 0 {
		return &AuthError{BadCredential}
	}
	return nil
}

// validSys reports whether a body of flavor AUTH_SYS has its form.
func validSys(body []byte) bool {
	var d xdr.Decoder
	d.Reset(body, nil)
	d.Uint32()
	d.Opaque(maxMachine)
	d.Uint64()
	d.Fixed(4 * d.Count(maxGIDs, 4))
	return d.Err() == nil && len(d.Left()) == 0
}

// check returns what is wrong with the credential and verifier of a call whatever the program is, or
// statusOK.
func check(credential, verifier Auth) AuthStatus {
	switch credential.Flavor {
	case FlavorNone:
		if len(credential.Body) > 0 {
			return BadCredential
		}
	case FlavorSys:
		if !validSys(credential.Body) {
			return BadCredential
		}
	default:
		return AuthOK // ServerOptions.Auth knows it, or the call is rejected there
	}
	if verifier.Flavor != FlavorNone || len(verifier.Body) > 0 {
		return BadVerifier
	}
	return AuthOK
}

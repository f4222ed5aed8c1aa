package nfs3

import (
	"slices"

	"github.com/dgrdma/dgrdma/xdr"
)

// Access are rights that ACCESS asks for and grants.
type Access uint32

// Rights.
const (
	AccessRead    Access = 0x01 // read a file, or a directory
	AccessLookup  Access = 0x02 // look up a name in a directory
	AccessModify  Access = 0x04 // rewrite a file, or entries of a directory
	AccessExtend  Access = 0x08 // write new data, or add entries
	AccessDelete  Access = 0x10 // delete entries
	AccessExecute Access = 0x20 // execute a file
)

// Bits of a mode, for one class of users.
const (
	mayRead    = 4
	mayWrite   = 2
	mayExecute = 1
)

// Granted returns which rights of want the mode of an object grants. nil is user 0.
func (c *Cred) Granted(a *Attr, want Access) Access {
	bits := c.bits(a)
	var granted Access
	if bits&mayRead != 0 {
		granted |= AccessRead
	}
	if a.Type == TypeDirectory {
		if bits&mayExecute != 0 {
			granted |= AccessLookup
			if bits&mayWrite != 0 {
				granted |= AccessModify | AccessExtend | AccessDelete
			}
		}
		return granted & want
	}
	if bits&mayWrite != 0 {
		granted |= AccessModify | AccessExtend
	}
	if bits&mayExecute != 0 {
		granted |= AccessExecute
	}
	return granted & want
}

// bits returns those of a mode that are for c.
func (c *Cred) bits(a *Attr) uint32 {
	switch {
	case c == nil || c.UID == 0:
		if a.Type == TypeDirectory || a.Mode&0o111 != 0 {
			return mayRead | mayWrite | mayExecute
		}
		return mayRead | mayWrite
	case c.UID == a.UID:
		return a.Mode >> 6
	case c.GID == a.GID || slices.Contains(c.GIDs, a.GID):
		return a.Mode >> 3
	}
	return a.Mode
}

// AccessArgs are the arguments of ACCESS.
type AccessArgs struct {
	Object Handle
	Access Access
}

// MarshalXDR appends an ACCESS3args.
func (a *AccessArgs) MarshalXDR(e *xdr.Encoder) {
	a.Object.MarshalXDR(e)
	e.Uint32(uint32(a.Access))
}

// UnmarshalXDR takes an ACCESS3args.
func (a *AccessArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Object.UnmarshalXDR(d)
	a.Access = Access(d.Uint32())
}

// AccessResult is the result of ACCESS.
type AccessResult struct {
	Status Status
	Attr   PostAttr
	Access Access // if Status is OK: those of the rights asked for that are granted
}

// MarshalXDR appends an ACCESS3res.
func (r *AccessResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.MarshalXDR(e); r.Status == OK {
		e.Uint32(uint32(r.Access))
	}
}

// UnmarshalXDR takes an ACCESS3res.
func (r *AccessResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.Attr.UnmarshalXDR(d); r.Status == OK {
		r.Access = Access(d.Uint32())
	}
}

package nfs3

import "github.com/dgrdma/dgrdma/xdr"

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

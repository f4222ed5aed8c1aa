package nfs3

import "github.com/dgrdma/dgrdma/xdr"

// LookupArgs are the arguments of LOOKUP.
type LookupArgs struct{ What DirName }

// MarshalXDR appends a LOOKUP3args.
func (a *LookupArgs) MarshalXDR(e *xdr.Encoder) { a.What.MarshalXDR(e) }

// UnmarshalXDR takes a LOOKUP3args.
func (a *LookupArgs) UnmarshalXDR(d *xdr.Decoder) { a.What.UnmarshalXDR(d) }

// LookupResult is the result of LOOKUP.
type LookupResult struct {
	Status Status
	Object Handle   // if Status is OK
	Attr   PostAttr // the same
	Dir    PostAttr
}

// MarshalXDR appends a LOOKUP3res.
func (r *LookupResult) MarshalXDR(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status == OK {
		r.Object.MarshalXDR(e)
		r.Attr.MarshalXDR(e)
	}
	r.Dir.MarshalXDR(e)
}

// UnmarshalXDR takes a LOOKUP3res.
func (r *LookupResult) UnmarshalXDR(d *xdr.Decoder) {
	if r.Status = Status(d.Uint32()); r.Status == OK {
		r.Object.UnmarshalXDR(d)
		r.Attr.UnmarshalXDR(d)
	}
	r.Dir.UnmarshalXDR(d)
}

// ReadLinkArgs are the arguments of READLINK.
type ReadLinkArgs struct{ Link Handle }

// MarshalXDR appends a READLINK3args.
func (a *ReadLinkArgs) MarshalXDR(e *xdr.Encoder) { a.Link.MarshalXDR(e) }

// UnmarshalXDR takes a READLINK3args.
func (a *ReadLinkArgs) UnmarshalXDR(d *xdr.Decoder) { a.Link.UnmarshalXDR(d) }

// ReadLinkResult is the result of READLINK.
type ReadLinkResult struct {
	Status Status
	Attr   PostAttr
	Target []byte // if Status is OK; it travels by reference
}

// MarshalXDR appends a READLINK3res.
func (r *ReadLinkResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.MarshalXDR(e); r.Status == OK {
		e.Bulk(r.Target)
	}
}

// UnmarshalXDR takes a READLINK3res.
func (r *ReadLinkResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.Attr.UnmarshalXDR(d); r.Status == OK {
		r.Target = d.Bulk(MaxTarget)
	}
}

package nfs3

import "github.com/dgrdma/dgrdma/xdr"

// RemoveArgs are the arguments of REMOVE and RMDIR.
type RemoveArgs struct{ What DirName }

// MarshalXDR appends a REMOVE3args.
func (a *RemoveArgs) MarshalXDR(e *xdr.Encoder) { a.What.MarshalXDR(e) }

// UnmarshalXDR takes a REMOVE3args.
func (a *RemoveArgs) UnmarshalXDR(d *xdr.Decoder) { a.What.UnmarshalXDR(d) }

// RenameArgs are the arguments of RENAME.
type RenameArgs struct{ From, To DirName }

// MarshalXDR appends a RENAME3args.
func (a *RenameArgs) MarshalXDR(e *xdr.Encoder) {
	a.From.MarshalXDR(e)
	a.To.MarshalXDR(e)
}

// UnmarshalXDR takes a RENAME3args.
func (a *RenameArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.From.UnmarshalXDR(d)
	a.To.UnmarshalXDR(d)
}

// RenameResult is the result of RENAME: a status, and wcc_data of both directories.
type RenameResult struct {
	Status   Status
	From, To WCC
}

// MarshalXDR appends a RENAME3res.
func (r *RenameResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	r.From.MarshalXDR(e)
	r.To.MarshalXDR(e)
}

// UnmarshalXDR takes a RENAME3res.
func (r *RenameResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	r.From.UnmarshalXDR(d)
	r.To.UnmarshalXDR(d)
}

// LinkArgs are the arguments of LINK.
type LinkArgs struct {
	File Handle
	Link DirName
}

// MarshalXDR appends a LINK3args.
func (a *LinkArgs) MarshalXDR(e *xdr.Encoder) {
	a.File.MarshalXDR(e)
	a.Link.MarshalXDR(e)
}

// UnmarshalXDR takes a LINK3args.
func (a *LinkArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.File.UnmarshalXDR(d)
	a.Link.UnmarshalXDR(d)
}

// LinkResult is the result of LINK: a status, attributes of the file, and wcc_data of the directory.
type LinkResult struct {
	Status Status
	Attr   PostAttr
	Dir    WCC
}

// MarshalXDR appends a LINK3res.
func (r *LinkResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	r.Attr.MarshalXDR(e)
	r.Dir.MarshalXDR(e)
}

// UnmarshalXDR takes a LINK3res.
func (r *LinkResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	r.Attr.UnmarshalXDR(d)
	r.Dir.UnmarshalXDR(d)
}

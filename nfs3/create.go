package nfs3

import (
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// CreateMode says what CREATE does if the file is there (createmode3).
type CreateMode uint32

// What CREATE does.
const (
	Unchecked CreateMode = 0 // it takes the file that is there, and truncates it if Size is set
	Guarded   CreateMode = 1 // it fails with ErrExist
	Exclusive CreateMode = 2 // the same, but a CREATE that is sent again succeeds: it has the same verifier
)

// CreateHow says how CREATE makes a file (createhow3).
type CreateHow struct {
	Mode     CreateMode
	Set      SetAttr // not with Exclusive
	Verifier uint64  // with Exclusive
}

// MarshalXDR appends a createhow3.
func (h *CreateHow) MarshalXDR(e *xdr.Encoder) {
	if e.Uint32(uint32(h.Mode)); h.Mode == Exclusive {
		e.Uint64(h.Verifier)
	} else {
		h.Set.MarshalXDR(e)
	}
}

// UnmarshalXDR takes a createhow3.
func (h *CreateHow) UnmarshalXDR(d *xdr.Decoder) {
	*h = CreateHow{Mode: CreateMode(d.Uint32())}
	switch h.Mode {
	case Unchecked, Guarded:
		h.Set.UnmarshalXDR(d)
	case Exclusive:
		h.Verifier = d.Uint64()
	default:
		d.Fail(fmt.Sprintf("a mode of CREATE is %d", uint32(h.Mode)))
	}
}

// CreateArgs are the arguments of CREATE.
type CreateArgs struct {
	Where DirName
	How   CreateHow
}

// MarshalXDR appends a CREATE3args.
func (a *CreateArgs) MarshalXDR(e *xdr.Encoder) {
	a.Where.MarshalXDR(e)
	a.How.MarshalXDR(e)
}

// UnmarshalXDR takes a CREATE3args.
func (a *CreateArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Where.UnmarshalXDR(d)
	a.How.UnmarshalXDR(d)
}

// MkdirArgs are the arguments of MKDIR.
type MkdirArgs struct {
	Where DirName
	Set   SetAttr
}

// MarshalXDR appends a MKDIR3args.
func (a *MkdirArgs) MarshalXDR(e *xdr.Encoder) {
	a.Where.MarshalXDR(e)
	a.Set.MarshalXDR(e)
}

// UnmarshalXDR takes a MKDIR3args.
func (a *MkdirArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Where.UnmarshalXDR(d)
	a.Set.UnmarshalXDR(d)
}

// SymlinkArgs are the arguments of SYMLINK.
type SymlinkArgs struct {
	Where  DirName
	Set    SetAttr
	Target []byte // it travels by reference
}

// MarshalXDR appends a SYMLINK3args.
func (a *SymlinkArgs) MarshalXDR(e *xdr.Encoder) {
	a.Where.MarshalXDR(e)
	a.Set.MarshalXDR(e)
	e.Bulk(a.Target)
}

// UnmarshalXDR takes a SYMLINK3args.
func (a *SymlinkArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Where.UnmarshalXDR(d)
	a.Set.UnmarshalXDR(d)
	a.Target = d.Bulk(MaxTarget)
}

// NodeSpec says what MKNOD makes (mknoddata3).
type NodeSpec struct {
	Type         FileType // TypeChar, TypeBlock, TypeSocket or TypeFIFO
	Set          SetAttr
	Major, Minor uint32 // of a device
}

func (t FileType) device() bool { return t == TypeChar || t == TypeBlock }

// MarshalXDR appends a mknoddata3.
func (n *NodeSpec) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(n.Type))
	if n.Type.device() || n.Type == TypeSocket || n.Type == TypeFIFO {
		n.Set.MarshalXDR(e)
	}
	if n.Type.device() {
		e.Uint32(n.Major)
		e.Uint32(n.Minor)
	}
}

// UnmarshalXDR takes a mknoddata3. Of the types that MKNOD does not make nothing follows.
func (n *NodeSpec) UnmarshalXDR(d *xdr.Decoder) {
	*n = NodeSpec{}
	n.Type.unmarshal(d)
	if n.Type.device() || n.Type == TypeSocket || n.Type == TypeFIFO {
		n.Set.UnmarshalXDR(d)
	}
	if n.Type.device() {
		n.Major, n.Minor = d.Uint32(), d.Uint32()
	}
}

// MknodArgs are the arguments of MKNOD.
type MknodArgs struct {
	Where DirName
	What  NodeSpec
}

// MarshalXDR appends a MKNOD3args.
func (a *MknodArgs) MarshalXDR(e *xdr.Encoder) {
	a.Where.MarshalXDR(e)
	a.What.MarshalXDR(e)
}

// UnmarshalXDR takes a MKNOD3args.
func (a *MknodArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Where.UnmarshalXDR(d)
	a.What.UnmarshalXDR(d)
}

// CreateResult is the result of CREATE, MKDIR, SYMLINK and MKNOD.
type CreateResult struct {
	Status Status
	Object PostHandle // if Status is OK
	Attr   PostAttr   // the same
	Dir    WCC
}

// MarshalXDR appends a CREATE3res.
func (r *CreateResult) MarshalXDR(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status == OK {
		r.Object.MarshalXDR(e)
		r.Attr.MarshalXDR(e)
	}
	r.Dir.MarshalXDR(e)
}

// UnmarshalXDR takes a CREATE3res.
func (r *CreateResult) UnmarshalXDR(d *xdr.Decoder) {
	if r.Status = Status(d.Uint32()); r.Status == OK {
		r.Object.UnmarshalXDR(d)
		r.Attr.UnmarshalXDR(d)
	}
	r.Dir.UnmarshalXDR(d)
}

package nfs3

import (
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// SetTime says what becomes of a time (set_atime, set_mtime).
type SetTime uint32

// What becomes of a time.
const (
	KeepTime   SetTime = 0
	ServerTime SetTime = 1 // it is set to the time at the server
	ClientTime SetTime = 2 // it is set to a time that the caller says
)

// SetAttr are attributes to set (sattr3); nil keeps one as it is.
type SetAttr struct {
	Mode     *uint32
	UID, GID *uint32
	Size     *uint64
	SetAtime SetTime
	SetMtime SetTime
	Atime    Time // if SetAtime is ClientTime
	Mtime    Time
}

// Empty reports whether s sets nothing.
func (s *SetAttr) Empty() bool {
	return s.Mode == nil && s.UID == nil && s.GID == nil && s.Size == nil && s.SetAtime == KeepTime && s.SetMtime == KeepTime
}

// MarshalXDR appends an sattr3.
func (s *SetAttr) MarshalXDR(e *xdr.Encoder) {
	for _, v := range [...]*uint32{s.Mode, s.UID, s.GID} {
		if e.Bool(v != nil); v != nil {
			e.Uint32(*v)
		}
	}
	if e.Bool(s.Size != nil); s.Size != nil {
		e.Uint64(*s.Size)
	}
	s.SetAtime.marshal(e, s.Atime)
	s.SetMtime.marshal(e, s.Mtime)
}

// UnmarshalXDR takes an sattr3.
func (s *SetAttr) UnmarshalXDR(d *xdr.Decoder) {
	*s = SetAttr{}
	for _, v := range [...]**uint32{&s.Mode, &s.UID, &s.GID} {
		if d.Bool() {
			n := d.Uint32()
			*v = &n
		}
	}
	if d.Bool() {
		n := d.Uint64()
		s.Size = &n
	}
	s.SetAtime.unmarshal(d, &s.Atime)
	s.SetMtime.unmarshal(d, &s.Mtime)
}

func (how SetTime) marshal(e *xdr.Encoder, t Time) {
	if e.Uint32(uint32(how)); how == ClientTime {
		t.marshal(e)
	}
}

func (how *SetTime) unmarshal(d *xdr.Decoder, t *Time) {
	switch *how = SetTime(d.Uint32()); *how {
	case KeepTime, ServerTime:
	case ClientTime:
		t.unmarshal(d)
	default:
		d.Fail(fmt.Sprintf("how to set a time is %d", uint32(*how)))
	}
}

// GetAttrArgs are the arguments of GETATTR.
type GetAttrArgs struct{ Object Handle }

// MarshalXDR appends a GETATTR3args.
func (a *GetAttrArgs) MarshalXDR(e *xdr.Encoder) { a.Object.MarshalXDR(e) }

// UnmarshalXDR takes a GETATTR3args.
func (a *GetAttrArgs) UnmarshalXDR(d *xdr.Decoder) { a.Object.UnmarshalXDR(d) }

// GetAttrResult is the result of GETATTR.
type GetAttrResult struct {
	Status Status
	Attr   Attr // if Status is OK
}

// MarshalXDR appends a GETATTR3res.
func (r *GetAttrResult) MarshalXDR(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status == OK {
		r.Attr.MarshalXDR(e)
	}
}

// UnmarshalXDR takes a GETATTR3res.
func (r *GetAttrResult) UnmarshalXDR(d *xdr.Decoder) {
	if r.Status = Status(d.Uint32()); r.Status == OK {
		r.Attr.UnmarshalXDR(d)
	}
}

// SetAttrArgs are the arguments of SETATTR.
type SetAttrArgs struct {
	Object Handle
	Set    SetAttr
	Guard  *Time // nil, or the Ctime that the object must have
}

// MarshalXDR appends a SETATTR3args.
func (a *SetAttrArgs) MarshalXDR(e *xdr.Encoder) {
	a.Object.MarshalXDR(e)
	a.Set.MarshalXDR(e)
	if e.Bool(a.Guard != nil); a.Guard != nil {
		a.Guard.marshal(e)
	}
}

// UnmarshalXDR takes a SETATTR3args.
func (a *SetAttrArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Object.UnmarshalXDR(d)
	a.Set.UnmarshalXDR(d)
	a.Guard = nil
	if d.Bool() {
		a.Guard = new(Time)
		a.Guard.unmarshal(d)
	}
}

// ChangeResult is the result of SETATTR, REMOVE and RMDIR: a status, and wcc_data of the object or the
// directory.
type ChangeResult struct {
	Status Status
	WCC    WCC
}

// MarshalXDR appends a SETATTR3res.
func (r *ChangeResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	r.WCC.MarshalXDR(e)
}

// UnmarshalXDR takes a SETATTR3res.
func (r *ChangeResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	r.WCC.UnmarshalXDR(d)
}

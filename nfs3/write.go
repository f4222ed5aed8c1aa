package nfs3

import (
	"fmt"

	"github.com/dgrdma/dgrdma/xdr"
)

// Stable says how safe written data is to be, or is, when WRITE is answered (stable_how).
type Stable uint32

// How safe data is.
const (
	Unstable Stable = 0 // a crash of the server may lose it until COMMIT is answered
	DataSync Stable = 1 // it is on stable storage, with what is needed to find it
	FileSync Stable = 2 // it is there, with all attributes of the file
)

func (s Stable) String() string {
	if s > FileSync {
		return fmt.Sprintf("stable_how %d", uint32(s))
	}
	return [...]string{"UNSTABLE", "DATA_SYNC", "FILE_SYNC"}[s]
}

func (s *Stable) unmarshal(d *xdr.Decoder) {
	if *s = Stable(d.Uint32()); *s > FileSync {
		d.Fail(fmt.Sprintf("how safe data is to be is %d", uint32(*s)))
	}
}

// WriteArgs are the arguments of WRITE.
type WriteArgs struct {
	File   Handle
	Offset uint64
	Stable Stable
	Data   []byte // it travels by reference
}

// MarshalXDR appends a WRITE3args.
func (a *WriteArgs) MarshalXDR(e *xdr.Encoder) {
	a.File.MarshalXDR(e)
	e.Uint64(a.Offset)
	e.Uint32(uint32(len(a.Data)))
	e.Uint32(uint32(a.Stable))
	e.Bulk(a.Data)
}

// UnmarshalXDR takes a WRITE3args. Its count must be the length of the data.
func (a *WriteArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.File.UnmarshalXDR(d)
	a.Offset = d.Uint64()
	count := d.Uint32()
	a.Stable.unmarshal(d)
	a.Data = d.Bulk(MaxData)
	if d.Err() == nil && int(count) != len(a.Data) {
		d.Fail("count and data of a WRITE differ")
	}
}

// Written is what became of written data.
type Written struct {
	Count    uint32 // octets that were written
	Stable   Stable // how safe they are: at least what was asked for
	Verifier uint64 // another one than before: what was written as Unstable and not committed may be lost
}

// WriteResult is the result of WRITE.
type WriteResult struct {
	Status  Status
	WCC     WCC
	Written Written // if Status is OK
}

// MarshalXDR appends a WRITE3res.
func (r *WriteResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.WCC.MarshalXDR(e); r.Status == OK {
		e.Uint32(r.Written.Count)
		e.Uint32(uint32(r.Written.Stable))
		e.Uint64(r.Written.Verifier)
	}
}

// UnmarshalXDR takes a WRITE3res.
func (r *WriteResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.WCC.UnmarshalXDR(d); r.Status == OK {
		r.Written.Count = d.Uint32()
		r.Written.Stable.unmarshal(d)
		r.Written.Verifier = d.Uint64()
	}
}

// CommitArgs are the arguments of COMMIT.
type CommitArgs struct {
	File   Handle
	Offset uint64
	Count  uint32 // 0: until the end of the file
}

// MarshalXDR appends a COMMIT3args.
func (a *CommitArgs) MarshalXDR(e *xdr.Encoder) { (*ReadArgs)(a).MarshalXDR(e) }

// UnmarshalXDR takes a COMMIT3args.
func (a *CommitArgs) UnmarshalXDR(d *xdr.Decoder) { (*ReadArgs)(a).UnmarshalXDR(d) }

// CommitResult is the result of COMMIT.
type CommitResult struct {
	Status   Status
	WCC      WCC
	Verifier uint64 // if Status is OK
}

// MarshalXDR appends a COMMIT3res.
func (r *CommitResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.WCC.MarshalXDR(e); r.Status == OK {
		e.Uint64(r.Verifier)
	}
}

// UnmarshalXDR takes a COMMIT3res.
func (r *CommitResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.WCC.UnmarshalXDR(d); r.Status == OK {
		r.Verifier = d.Uint64()
	}
}

package nfs3

import "github.com/dgrdma/dgrdma/xdr"

// ReadArgs are the arguments of READ.
type ReadArgs struct {
	File   Handle
	Offset uint64
	Count  uint32
}

// MarshalXDR appends a READ3args.
func (a *ReadArgs) MarshalXDR(e *xdr.Encoder) {
	a.File.MarshalXDR(e)
	e.Uint64(a.Offset)
	e.Uint32(a.Count)
}

// UnmarshalXDR takes a READ3args.
func (a *ReadArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.File.UnmarshalXDR(d)
	a.Offset = d.Uint64()
	a.Count = d.Uint32()
}

// ReadResult is the result of READ.
type ReadResult struct {
	Status Status
	Attr   PostAttr
	EOF    bool   // if Status is OK: Data reaches the end of the file
	Data   []byte // the same; it travels by reference
}

// MarshalXDR appends a READ3res.
func (r *ReadResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.MarshalXDR(e); r.Status == OK {
		e.Uint32(uint32(len(r.Data)))
		e.Bool(r.EOF)
		e.Bulk(r.Data)
	}
}

// UnmarshalXDR takes a READ3res. Its count must be the length of the data.
func (r *ReadResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.Attr.UnmarshalXDR(d); r.Status == OK {
		count := d.Uint32()
		r.EOF = d.Bool()
		r.Data = d.Bulk(MaxData)
		if d.Err() == nil && int(count) != len(r.Data) {
			d.Fail("count and data of a READ differ")
		}
	}
}

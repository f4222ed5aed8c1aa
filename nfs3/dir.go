package nfs3

import "github.com/dgrdma/dgrdma/xdr"

// DirEntry is an entry of a directory (entry3, entryplus3).
type DirEntry struct {
	FileID uint64
	Name   string
	Cookie uint64     // where the next READDIR goes on after this entry
	Attr   PostAttr   // of READDIRPLUS
	Object PostHandle // the same
}

// ReadDirArgs are the arguments of READDIR.
type ReadDirArgs struct {
	Dir      Handle
	Cookie   uint64
	Verifier uint64
	Count    uint32 // most octets of the READDIR3resok
}

// MarshalXDR appends a READDIR3args.
func (a *ReadDirArgs) MarshalXDR(e *xdr.Encoder) {
	a.Dir.MarshalXDR(e)
	e.Uint64(a.Cookie)
	e.Uint64(a.Verifier)
	e.Uint32(a.Count)
}

// UnmarshalXDR takes a READDIR3args.
func (a *ReadDirArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Dir.UnmarshalXDR(d)
	a.Cookie = d.Uint64()
	a.Verifier = d.Uint64()
	a.Count = d.Uint32()
}

// ReadDirPlusArgs are the arguments of READDIRPLUS.
type ReadDirPlusArgs struct {
	Dir      Handle
	Cookie   uint64
	Verifier uint64
	DirCount uint32 // most octets of file ids, names and cookies
	MaxCount uint32 // most octets of the READDIRPLUS3resok
}

// MarshalXDR appends a READDIRPLUS3args.
func (a *ReadDirPlusArgs) MarshalXDR(e *xdr.Encoder) {
	a.Dir.MarshalXDR(e)
	e.Uint64(a.Cookie)
	e.Uint64(a.Verifier)
	e.Uint32(a.DirCount)
	e.Uint32(a.MaxCount)
}

// UnmarshalXDR takes a READDIRPLUS3args.
func (a *ReadDirPlusArgs) UnmarshalXDR(d *xdr.Decoder) {
	a.Dir.UnmarshalXDR(d)
	a.Cookie = d.Uint64()
	a.Verifier = d.Uint64()
	a.DirCount = d.Uint32()
	a.MaxCount = d.Uint32()
}

// ReadDirResult is the result of READDIR.
type ReadDirResult struct {
	Status   Status
	Attr     PostAttr // of the directory
	Verifier uint64   // if Status is OK, as are the following
	Entries  []DirEntry
	EOF      bool // nothing follows the entries
}

// MarshalXDR appends a READDIR3res.
func (r *ReadDirResult) MarshalXDR(e *xdr.Encoder) { r.marshal(e, false) }

// UnmarshalXDR takes a READDIR3res.
func (r *ReadDirResult) UnmarshalXDR(d *xdr.Decoder) { r.unmarshal(d, false) }

// ReadDirPlusResult is the result of READDIRPLUS.
type ReadDirPlusResult ReadDirResult

// MarshalXDR appends a READDIRPLUS3res.
func (r *ReadDirPlusResult) MarshalXDR(e *xdr.Encoder) { (*ReadDirResult)(r).marshal(e, true) }

// UnmarshalXDR takes a READDIRPLUS3res.
func (r *ReadDirPlusResult) UnmarshalXDR(d *xdr.Decoder) { (*ReadDirResult)(r).unmarshal(d, true) }

func (r *ReadDirResult) marshal(e *xdr.Encoder, plus bool) {
	e.Uint32(uint32(r.Status))
	r.Attr.MarshalXDR(e)
	if r.Status != OK {
		return
	}
	e.Uint64(r.Verifier)
	for i := range r.Entries {
		entry := &r.Entries[i]
		e.Bool(true)
		e.Uint64(entry.FileID)
		e.String(entry.Name)
		e.Uint64(entry.Cookie)
		if plus {
			entry.Attr.MarshalXDR(e)
			entry.Object.MarshalXDR(e)
		}
	}
	e.Bool(false)
	e.Bool(r.EOF)
}

// unmarshal takes as many entries as the message has: each takes 24 octets of it, or more.
func (r *ReadDirResult) unmarshal(d *xdr.Decoder, plus bool) {
	*r = ReadDirResult{Status: Status(d.Uint32())}
	r.Attr.UnmarshalXDR(d)
	if r.Status != OK {
		return
	}
	r.Verifier = d.Uint64()
	for d.Bool() {
		entry := DirEntry{FileID: d.Uint64(), Name: d.String(MaxName), Cookie: d.Uint64()}
		if plus {
			entry.Attr.UnmarshalXDR(d)
			entry.Object.UnmarshalXDR(d)
		}
		r.Entries = append(r.Entries, entry)
	}
	r.EOF = d.Bool()
}

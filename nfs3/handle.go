package nfs3

import (
	"encoding/hex"

	"github.com/dgrdma/dgrdma/xdr"
)

// Handle names an object of an [FS]: at most [MaxHandle] octets that mean something to that FS alone.
type Handle string

// String returns the octets in hexadecimal.
func (h Handle) String() string { return hex.EncodeToString([]byte(h)) }

// MarshalXDR appends an nfs_fh3.
func (h Handle) MarshalXDR(e *xdr.Encoder) { e.String(string(h)) }

// UnmarshalXDR takes an nfs_fh3.
func (h *Handle) UnmarshalXDR(d *xdr.Decoder) { *h = Handle(d.Opaque(MaxHandle)) }

// PostHandle is a handle that may be there or not (post_op_fh3).
type PostHandle struct {
	Present bool
	Handle  Handle
}

// MarshalXDR appends a post_op_fh3.
func (p *PostHandle) MarshalXDR(e *xdr.Encoder) {
	if e.Bool(p.Present); p.Present {
		p.Handle.MarshalXDR(e)
	}
}

// UnmarshalXDR takes a post_op_fh3.
func (p *PostHandle) UnmarshalXDR(d *xdr.Decoder) {
	*p = PostHandle{}
	if p.Present = d.Bool(); p.Present {
		p.Handle.UnmarshalXDR(d)
	}
}

// DirName is an entry of a directory, named by a caller (diropargs3).
type DirName struct {
	Dir  Handle
	Name string
}

// MarshalXDR appends a diropargs3.
func (n *DirName) MarshalXDR(e *xdr.Encoder) {
	n.Dir.MarshalXDR(e)
	e.String(n.Name)
}

// UnmarshalXDR takes a diropargs3.
func (n *DirName) UnmarshalXDR(d *xdr.Decoder) {
	n.Dir.UnmarshalXDR(d)
	n.Name = d.String(maxArgName)
}

// CheckName returns the error that an FS has for a name that no entry can have: ErrInval for an
// empty one and one with a slash or a NUL, ErrNameTooLong beyond [MaxName].
func CheckName(name string) error {
	if len(name) > MaxName {
		return ErrNameTooLong
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return ErrInval
		}
	}
	if name == "" {
		return ErrInval
	}
	return nil
}

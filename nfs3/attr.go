package nfs3

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// FileType is the type of an object (ftype3).
type FileType uint32

// Types of objects.
const (
	TypeRegular   FileType = 1
	TypeDirectory FileType = 2
	TypeBlock     FileType = 3
	TypeChar      FileType = 4
	TypeSymlink   FileType = 5
	TypeSocket    FileType = 6
	TypeFIFO      FileType = 7
)

var typeModes = [...]fs.FileMode{
	TypeRegular: 0, TypeDirectory: fs.ModeDir, TypeBlock: fs.ModeDevice, TypeChar: fs.ModeDevice | fs.ModeCharDevice,
	TypeSymlink: fs.ModeSymlink, TypeSocket: fs.ModeSocket, TypeFIFO: fs.ModeNamedPipe,
}

func (t *FileType) unmarshal(d *xdr.Decoder) {
	if *t = FileType(d.Uint32()); d.Err() == nil && (*t < TypeRegular || *t > TypeFIFO) {
		d.Fail(fmt.Sprintf("a type of file is %d", uint32(*t)))
	}
}

// CheckRegular returns the error that an FS has for data of an object that is no regular file: ErrIsDir for a directory, and
// ErrInval for others.
func CheckRegular(a *Attr) error {
	switch a.Type {
	case TypeRegular:
		return nil
	case TypeDirectory:
		return ErrIsDir
	}
	return ErrInval
}

// Time is a time of the protocol (nfstime3). It is comparable.
type Time struct{ Seconds, Nanoseconds uint32 }

// TimeOf returns the time of the protocol that is nearest to t: it has no times before 1970.
func TimeOf(t time.Time) Time {
	sec := min(max(t.Unix(), 0), 1<<32-1)
	if sec != t.Unix() {
		return Time{uint32(sec), 0}
	}
	return Time{uint32(sec), uint32(t.Nanosecond())}
}

// Time returns t as a time of package time.
func (t Time) Time() time.Time { return time.Unix(int64(t.Seconds), int64(t.Nanoseconds)) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool {
	return t.Seconds < u.Seconds || t.Seconds == u.Seconds && t.Nanoseconds < u.Nanoseconds
}

func (t Time) marshal(e *xdr.Encoder) {
	e.Uint32(t.Seconds)
	e.Uint32(t.Nanoseconds)
}

func (t *Time) unmarshal(d *xdr.Decoder) { *t = Time{d.Uint32(), d.Uint32()} }

// Attr are the attributes of an object (fattr3).
type Attr struct {
	Type         FileType
	Mode         uint32 // permissions, set-user-id, set-group-id and sticky: 07777
	Links        uint32
	UID, GID     uint32
	Size, Used   uint64 // in octets: of the file, and of what it takes of the disk
	Major, Minor uint32 // of a device
	FSID         uint64 // of the file system
	FileID       uint64 // of the object in it: the number of an inode
	Atime        Time
	Mtime        Time
	Ctime        Time // of the last change of the attributes
}

const attrSize = 84

// MarshalXDR appends an fattr3.
func (a *Attr) MarshalXDR(e *xdr.Encoder) {
	for _, v := range [...]uint32{uint32(a.Type), a.Mode, a.Links, a.UID, a.GID} {
		e.Uint32(v)
	}
	e.Uint64(a.Size)
	e.Uint64(a.Used)
	e.Uint32(a.Major)
	e.Uint32(a.Minor)
	e.Uint64(a.FSID)
	e.Uint64(a.FileID)
	a.Atime.marshal(e)
	a.Mtime.marshal(e)
	a.Ctime.marshal(e)
}

// UnmarshalXDR takes an fattr3.
func (a *Attr) UnmarshalXDR(d *xdr.Decoder) {
	a.Type.unmarshal(d)
	for _, v := range [...]*uint32{&a.Mode, &a.Links, &a.UID, &a.GID} {
		*v = d.Uint32()
	}
	a.Size, a.Used = d.Uint64(), d.Uint64()
	a.Major, a.Minor = d.Uint32(), d.Uint32()
	a.FSID, a.FileID = d.Uint64(), d.Uint64()
	a.Atime.unmarshal(d)
	a.Mtime.unmarshal(d)
	a.Ctime.unmarshal(d)
}

// FileMode returns type and permissions as package io/fs has them.
func (a *Attr) FileMode() fs.FileMode {
	m := fs.FileMode(a.Mode & 0o777)
	if int(a.Type) < len(typeModes) {
		m |= typeModes[a.Type]
	}
	for bit, mode := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if a.Mode&bit != 0 {
			m |= mode
		}
	}
	return m
}

// ModeOf returns the permissions of m as the protocol has them.
func ModeOf(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for bit, b := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&b != 0 {
			mode |= bit
		}
	}
	return mode
}

// PostAttr are attributes after an operation, which may be there or not (post_op_attr).
type PostAttr struct {
	Present bool
	Attr    Attr
}

// Post returns a as attributes that are there.
func Post(a Attr) PostAttr { return PostAttr{true, a} }

const postAttrSize = 4 + attrSize

// MarshalXDR appends a post_op_attr.
func (p *PostAttr) MarshalXDR(e *xdr.Encoder) {
	if e.Bool(p.Present); p.Present {
		p.Attr.MarshalXDR(e)
	}
}

// UnmarshalXDR takes a post_op_attr.
func (p *PostAttr) UnmarshalXDR(d *xdr.Decoder) {
	if p.Present = d.Bool(); p.Present {
		p.Attr.UnmarshalXDR(d)
	} else {
		p.Attr = Attr{}
	}
}

// PreAttr are the attributes before an operation that tell a client whether its cache was right
// (pre_op_attr).
type PreAttr struct {
	Present      bool
	Size         uint64
	Mtime, Ctime Time
}

// Pre returns what PreAttr has of a.
func Pre(a *Attr) PreAttr { return PreAttr{true, a.Size, a.Mtime, a.Ctime} }

// WCC is weak cache consistency data (wcc_data): what a client needs to keep its cache over a change
// of its own. Before is there only if nothing else can have changed the object between Before and
// After.
type WCC struct {
	Before PreAttr
	After  PostAttr
}

const wccSize = 4 + 24 + postAttrSize

// MarshalXDR appends a wcc_data.
func (w *WCC) MarshalXDR(e *xdr.Encoder) {
	if e.Bool(w.Before.Present); w.Before.Present {
		e.Uint64(w.Before.Size)
		w.Before.Mtime.marshal(e)
		w.Before.Ctime.marshal(e)
	}
	w.After.MarshalXDR(e)
}

// UnmarshalXDR takes a wcc_data.
func (w *WCC) UnmarshalXDR(d *xdr.Decoder) {
	w.Before = PreAttr{}
	if w.Before.Present = d.Bool(); w.Before.Present {
		w.Before.Size = d.Uint64()
		w.Before.Mtime.unmarshal(d)
		w.Before.Ctime.unmarshal(d)
	}
	w.After.UnmarshalXDR(d)
}

// Object is an object that was found or made.
type Object struct {
	Handle Handle
	Attr   Attr
}

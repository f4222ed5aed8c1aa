package nfs3

import (
	"cmp"

	"github.com/dgrdma/dgrdma/xdr"
)

// FSArgs are the arguments of FSSTAT, FSINFO and PATHCONF: an object of the file system.
type FSArgs struct{ Object Handle }

// MarshalXDR appends an FSSTAT3args.
func (a *FSArgs) MarshalXDR(e *xdr.Encoder) { a.Object.MarshalXDR(e) }

// UnmarshalXDR takes an FSSTAT3args.
func (a *FSArgs) UnmarshalXDR(d *xdr.Decoder) { a.Object.UnmarshalXDR(d) }

// FSStat says how full a file system is.
type FSStat struct {
	TotalBytes, FreeBytes, AvailBytes uint64 // Avail: what the caller may use of it
	TotalFiles, FreeFiles, AvailFiles uint64
	Invarsec                          uint32 // for how many seconds this is not expected to change
}

// FSStatResult is the result of FSSTAT.
type FSStatResult struct {
	Status Status
	Attr   PostAttr
	Stat   FSStat // if Status is OK
}

// MarshalXDR appends an FSSTAT3res.
func (r *FSStatResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.MarshalXDR(e); r.Status == OK {
		s := &r.Stat
		for _, v := range [...]uint64{s.TotalBytes, s.FreeBytes, s.AvailBytes, s.TotalFiles, s.FreeFiles, s.AvailFiles} {
			e.Uint64(v)
		}
		e.Uint32(s.Invarsec)
	}
}

// UnmarshalXDR takes an FSSTAT3res.
func (r *FSStatResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.Attr.UnmarshalXDR(d); r.Status == OK {
		s := &r.Stat
		for _, v := range [...]*uint64{&s.TotalBytes, &s.FreeBytes, &s.AvailBytes, &s.TotalFiles, &s.FreeFiles, &s.AvailFiles} {
			*v = d.Uint64()
		}
		s.Invarsec = d.Uint32()
	}
}

// Properties of a file system, in [FSInfo].
const (
	HasLinks    = 0x01 // hard links
	HasSymlinks = 0x02
	Homogeneous = 0x08 // PATHCONF says the same of all objects
	CanSetTime  = 0x10 // SETATTR sets times
)

// FSInfo says what a file system can do, and which sizes are best. For what an [FS] leaves 0, but Properties, a server has defaults:
// [MaxData], and files as long as there may be.
type FSInfo struct {
	ReadMax, ReadPref, ReadMult    uint32 // octets of READ
	WriteMax, WritePref, WriteMult uint32 // octets of WRITE
	DirPref                        uint32 // octets of READDIR
	MaxFileSize                    uint64
	TimeDelta                      Time // how exact times are
	Properties                     uint32
}

// complete gives the sizes that are 0 their defaults, and bounds them by MaxData.
func (i *FSInfo) complete() {
	usual := FSInfo{ReadMax: MaxData, ReadPref: MaxData, ReadMult: 4096, WriteMax: MaxData, WritePref: MaxData, WriteMult: 4096, DirPref: mostListed}
	i.TimeDelta = cmp.Or(i.TimeDelta, Time{0, 1})
	i.MaxFileSize = cmp.Or(i.MaxFileSize, 1<<63-1)
	defaults := usual.words()
	for n, size := range i.words() {
		*size = min(cmp.Or(*size, *defaults[n]), MaxData)
	}
	i.ReadPref, i.WritePref, i.DirPref = min(i.ReadPref, i.ReadMax), min(i.WritePref, i.WriteMax), min(i.DirPref, mostListed)
}

// FSInfoResult is the result of FSINFO.
type FSInfoResult struct {
	Status Status
	Attr   PostAttr
	Info   FSInfo // if Status is OK
}

func (i *FSInfo) words() [7]*uint32 {
	return [...]*uint32{&i.ReadMax, &i.ReadPref, &i.ReadMult, &i.WriteMax, &i.WritePref, &i.WriteMult, &i.DirPref}
}

// MarshalXDR appends an FSINFO3res.
func (r *FSInfoResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.MarshalXDR(e); r.Status == OK {
		for _, v := range r.Info.words() {
			e.Uint32(*v)
		}
		e.Uint64(r.Info.MaxFileSize)
		r.Info.TimeDelta.marshal(e)
		e.Uint32(r.Info.Properties)
	}
}

// UnmarshalXDR takes an FSINFO3res.
func (r *FSInfoResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.Attr.UnmarshalXDR(d); r.Status == OK {
		for _, v := range r.Info.words() {
			*v = d.Uint32()
		}
		r.Info.MaxFileSize = d.Uint64()
		r.Info.TimeDelta.unmarshal(d)
		r.Info.Properties = d.Uint32()
	}
}

// PathConf are the limits of names, and what is done with them. For limits that an [FS] leaves 0 a server has defaults: 1 link, and
// [MaxName].
type PathConf struct {
	LinkMax, NameMax uint32
	NoTrunc          bool // a name that is too long is an error; it is not cut
	ChownRestricted  bool // only a superuser changes owners
	CaseInsensitive  bool
	CasePreserving   bool
}

func (p *PathConf) flags() [4]*bool {
	return [...]*bool{&p.NoTrunc, &p.ChownRestricted, &p.CaseInsensitive, &p.CasePreserving}
}

// PathConfResult is the result of PATHCONF.
type PathConfResult struct {
	Status Status
	Attr   PostAttr
	Conf   PathConf // if Status is OK
}

// MarshalXDR appends a PATHCONF3res.
func (r *PathConfResult) MarshalXDR(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.MarshalXDR(e); r.Status == OK {
		e.Uint32(r.Conf.LinkMax)
		e.Uint32(r.Conf.NameMax)
		for _, v := range r.Conf.flags() {
			e.Bool(*v)
		}
	}
}

// UnmarshalXDR takes a PATHCONF3res.
func (r *PathConfResult) UnmarshalXDR(d *xdr.Decoder) {
	r.Status = Status(d.Uint32())
	if r.Attr.UnmarshalXDR(d); r.Status == OK {
		r.Conf.LinkMax, r.Conf.NameMax = d.Uint32(), d.Uint32()
		for _, v := range r.Conf.flags() {
			*v = d.Bool()
		}
	}
}

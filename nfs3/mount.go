package nfs3

import "github.com/dgrdma/dgrdma/xdr"

// MountPath is a directory that a caller mounts or unmounts (dirpath): the argument of MNT and UMNT.
type MountPath struct{ Path string }

// MarshalXDR appends a dirpath.
func (a *MountPath) MarshalXDR(e *xdr.Encoder) { e.String(a.Path) }

// UnmarshalXDR takes a dirpath.
func (a *MountPath) UnmarshalXDR(d *xdr.Decoder) { a.Path = d.String(MaxPath) }

// maxFlavors bounds the flavors of a MountResult.
const maxFlavors = 32

// MountResult is the result of MNT. Its statuses (mountstat3) have the values and meanings of
// those of NFS: OK, ErrPerm, ErrNoEnt, ErrIO, ErrAcces, ErrNotDir, ErrInval, ErrNameTooLong,
// ErrNotSupp, ErrServerFault.
type MountResult struct {
	Status  Status
	Root    Handle   // if Status is OK
	Flavors []uint32 // the same: of credentials, that the server takes, the best first
}

// MarshalXDR appends a mountres3.
func (r *MountResult) MarshalXDR(e *xdr.Encoder) {
	if e.Uint32(uint32(r.Status)); r.Status == OK {
		r.Root.MarshalXDR(e)
		e.Uint32(uint32(len(r.Flavors)))
		for _, f := range r.Flavors {
			e.Uint32(f)
		}
	}
}

// UnmarshalXDR takes a mountres3.
func (r *MountResult) UnmarshalXDR(d *xdr.Decoder) {
	*r = MountResult{Status: Status(d.Uint32())}
	if r.Status == OK {
		r.Root.UnmarshalXDR(d)
		for n := d.Count(maxFlavors, 4); n > 0; n-- {
			r.Flavors = append(r.Flavors, d.Uint32())
		}
	}
}

// MountEntry says that a host has mounted a directory (mountbody).
type MountEntry struct{ Host, Path string }

// MountList is the result of DUMP.
type MountList []MountEntry

// MarshalXDR appends a mountlist.
func (l *MountList) MarshalXDR(e *xdr.Encoder) {
	for _, m := range *l {
		e.Bool(true)
		e.String(m.Host)
		e.String(m.Path)
	}
	e.Bool(false)
}

// UnmarshalXDR takes a mountlist.
func (l *MountList) UnmarshalXDR(d *xdr.Decoder) {
	for *l = nil; d.Bool(); {
		*l = append(*l, MountEntry{d.String(MaxName), d.String(MaxPath)})
	}
}

// Export is a directory that a server exports, and to which groups of hosts; none: to all
// (exportnode).
type Export struct {
	Path   string
	Groups []string
}

// ExportList is the result of EXPORT.
type ExportList []Export

// MarshalXDR appends an exports.
func (l *ExportList) MarshalXDR(e *xdr.Encoder) {
	for _, x := range *l {
		e.Bool(true)
		e.String(x.Path)
		for _, g := range x.Groups {
			e.Bool(true)
			e.String(g)
		}
		e.Bool(false)
	}
	e.Bool(false)
}

// UnmarshalXDR takes an exports.
func (l *ExportList) UnmarshalXDR(d *xdr.Decoder) {
	for *l = nil; d.Bool(); {
		x := Export{Path: d.String(MaxPath)}
		for d.Bool() {
			x.Groups = append(x.Groups, d.String(MaxName))
		}
		*l = append(*l, x)
	}
}

package localfs

import (
	"slices"

	"github.com/dgrdma/dgrdma/nfs3"
)

const (
	setUID = 0o4000
	setGID = 0o2000
	sticky = 0o1000
)

// caller is for whom an operation is done. nil is user 0.
type caller nfs3.Cred

// root reports whether c may do everything.
func (c *caller) root() bool { return c == nil || c.UID == 0 }

func (c *caller) owns(a *nfs3.Attr) bool { return c.root() || c.UID == a.UID }

func (c *caller) member(gid uint32) bool {
	return c.root() || c.GID == gid || slices.Contains(c.GIDs, gid)
}

// granted returns which rights of want the mode of an object grants.
func (c *caller) granted(a *nfs3.Attr, want nfs3.Access) nfs3.Access {
	return (*nfs3.Cred)(c).Granted(a, want)
}

// may reports whether the mode of an object grants all of the rights.
func (c *caller) may(a *nfs3.Attr, rights nfs3.Access) bool { return c.granted(a, rights) == rights }

// mayTouch reports whether the mode of an object grants writing. That of a directory grants it even if it does not grant lookups.
func (c *caller) mayTouch(a *nfs3.Attr) bool {
	file := *a
	file.Type = nfs3.TypeRegular
	return c.may(&file, nfs3.AccessModify)
}

// readable returns whether data of a file may be read. The protocol has no open: the owner may read and
// write always, as with a file that was opened before its mode was changed, and a right to execute is one to read.
func (c *caller) readable(a *nfs3.Attr) error {
	if err := nfs3.CheckRegular(a); err != nil || c.owns(a) || c.may(a, nfs3.AccessRead) || c.may(a, nfs3.AccessExecute) {
		return err
	}
	return nfs3.ErrAcces
}

// writable is the same for data that is written.
func (c *caller) writable(a *nfs3.Attr) error {
	if err := nfs3.CheckRegular(a); err != nil || c.owns(a) || c.may(a, nfs3.AccessModify) {
		return err
	}
	return nfs3.ErrAcces
}

// directory returns whether a is a directory of which the mode grants the rights.
func (c *caller) directory(a *nfs3.Attr, rights nfs3.Access) error {
	if a.Type != nfs3.TypeDirectory {
		return nfs3.ErrNotDir
	}
	if !c.may(a, rights) {
		return nfs3.ErrAcces
	}
	return nil
}

// removable returns whether an entry may be taken out of its directory: in a sticky one by the owner
// of either.
func (c *caller) removable(dir, entry *nfs3.Attr) error {
	if err := c.directory(dir, nfs3.AccessModify); err != nil {
		return err
	}
	if dir.Mode&sticky != 0 && !c.owns(dir) && !c.owns(entry) {
		return nfs3.ErrPerm
	}
	return nil
}

// settable returns whether attributes may be set, of an object that is there.
func (c *caller) settable(a *nfs3.Attr, set *nfs3.SetAttr) error {
	if set.Size != nil {
		if err := c.writable(a); err != nil {
			return err
		}
	}
	return c.settableFor(a, set)
}

// settableFor is settable without the size, which the maker of an object may always set.
func (c *caller) settableFor(a *nfs3.Attr, set *nfs3.SetAttr) error {
	switch {
	case set.Mode != nil && !c.owns(a),
		set.UID != nil && *set.UID != a.UID && !c.root(),
		set.GID != nil && *set.GID != a.GID && (!c.owns(a) || !c.member(*set.GID)),
		(set.SetAtime == nfs3.ClientTime || set.SetMtime == nfs3.ClientTime) && !c.owns(a):
		return nfs3.ErrPerm
	case (set.SetAtime == nfs3.ServerTime || set.SetMtime == nfs3.ServerTime) && !c.owns(a) && !c.mayTouch(a):
		return nfs3.ErrAcces
	}
	return nil
}

// modeAfter returns the mode of an object once set was applied: a change of owner or
// group leaves no set-user-id and set-group-id.
func (c *caller) modeAfter(a *nfs3.Attr, set *nfs3.SetAttr) uint32 {
	mode, gid := a.Mode, a.GID
	if chown := set.UID != nil || set.GID != nil; chown && a.Type == nfs3.TypeRegular {
		if mode &^= setUID; mode&0o010 != 0 {
			mode &^= setGID
		}
	}
	if set.GID != nil {
		gid = *set.GID
	}
	if set.Mode != nil {
		if mode = *set.Mode & 0o7777; !c.member(gid) && a.Type != nfs3.TypeDirectory {
			mode &^= setGID
		}
	}
	return mode
}

// modeWritten returns the mode of a file once c has written into it.
func (c *caller) modeWritten(a *nfs3.Attr) uint32 {
	if c.root() {
		return a.Mode
	}
	mode := a.Mode &^ setUID
	if mode&0o010 != 0 {
		mode &^= setGID
	}
	return mode
}

// created returns the attributes of an object that c makes in a directory, before set is applied.
func (c *caller) created(dir *nfs3.Attr, t nfs3.FileType, set *nfs3.SetAttr) nfs3.Attr {
	a := nfs3.Attr{Type: t, Mode: 0o644, Links: 1}
	if c != nil {
		a.UID, a.GID = c.UID, c.GID
	}
	if dir.Mode&setGID != 0 {
		a.GID = dir.GID
	}
	switch {
	case t == nfs3.TypeSymlink:
		a.Mode = 0o777
		return a
	case set.Mode != nil:
		a.Mode = c.modeAfter(&a, &nfs3.SetAttr{Mode: set.Mode, GID: set.GID})
	case t == nfs3.TypeDirectory:
		a.Mode = 0o755
	}
	if t == nfs3.TypeDirectory && dir.Mode&setGID != 0 {
		a.Mode |= setGID
	}
	return a
}

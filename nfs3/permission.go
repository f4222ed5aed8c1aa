package nfs3

import "slices"

// Bits of a mode, for one class of users.
const (
	mayRead    = 4
	mayWrite   = 2
	mayExecute = 1
)

const (
	setUID = 0o4000
	setGID = 0o2000
	sticky = 0o1000
)

// root reports whether c may do everything.
func (c *Cred) root() bool { return c == nil || c.UID == 0 }

func (c *Cred) owns(a *Attr) bool { return c.root() || c.UID == a.UID }

func (c *Cred) member(gid uint32) bool {
	return c.root() || c.GID == gid || slices.Contains(c.GIDs, gid)
}

// may reports whether the mode of an object grants all of the bits.
func (c *Cred) may(a *Attr, bits uint32) bool {
	switch {
	case c.root():
		return bits&mayExecute == 0 || a.Type == TypeDirectory || a.Mode&0o111 != 0
	case c.UID == a.UID:
		return a.Mode>>6&bits == bits
	case c.member(a.GID):
		return a.Mode>>3&bits == bits
	}
	return a.Mode&bits == bits
}

// Granted returns which rights of want the mode of an object grants. nil is user 0.
func (c *Cred) Granted(a *Attr, want Access) Access {
	var granted Access
	if c.may(a, mayRead) {
		granted |= AccessRead
	}
	if a.Type == TypeDirectory {
		if c.may(a, mayExecute) {
			granted |= AccessLookup
		}
		if c.may(a, mayWrite|mayExecute) {
			granted |= AccessModify | AccessExtend | AccessDelete
		}
		return granted & want
	}
	if c.may(a, mayWrite) {
		granted |= AccessModify | AccessExtend
	}
	if c.may(a, mayExecute) {
		granted |= AccessExecute
	}
	return granted & want
}

// readable returns whether data of a file may be read. The protocol has no open: the owner may read and
// write always, as with a file that was opened before its mode was changed, and a right to execute is one to read.
func (c *Cred) readable(a *Attr) error {
	if err := regular(a); err != nil || c.owns(a) || c.may(a, mayRead) || c.may(a, mayExecute) {
		return err
	}
	return ErrAcces
}

// writable is the same for data that is written.
func (c *Cred) writable(a *Attr) error {
	if err := regular(a); err != nil || c.owns(a) || c.may(a, mayWrite) {
		return err
	}
	return ErrAcces
}

func regular(a *Attr) error {
	switch a.Type {
	case TypeRegular:
		return nil
	case TypeDirectory:
		return ErrIsDir
	}
	return ErrInval
}

// directory returns whether a is a directory of which the mode grants the bits.
func (c *Cred) directory(a *Attr, bits uint32) error {
	if a.Type != TypeDirectory {
		return ErrNotDir
	}
	if !c.may(a, bits) {
		return ErrAcces
	}
	return nil
}

// removable returns whether an entry may be taken out of its directory: in a sticky one by the owner
// of either.
func (c *Cred) removable(dir, entry *Attr) error {
	if err := c.directory(dir, mayWrite|mayExecute); err != nil {
		return err
	}
	if dir.Mode&sticky != 0 && !c.owns(dir) && !c.owns(entry) {
		return ErrPerm
	}
	return nil
}

// settable returns whether attributes may be set, of an object that is there.
func (c *Cred) settable(a *Attr, set *SetAttr) error {
	if set.Size != nil {
		if err := c.writable(a); err != nil {
			return err
		}
	}
	return c.settableFor(a, set)
}

// settableFor is settable without the size, which the maker of an object may always set.
func (c *Cred) settableFor(a *Attr, set *SetAttr) error {
	switch {
	case set.Mode != nil && !c.owns(a),
		set.UID != nil && *set.UID != a.UID && !c.root(),
		set.GID != nil && *set.GID != a.GID && (!c.owns(a) || !c.member(*set.GID)),
		(set.SetAtime == ClientTime || set.SetMtime == ClientTime) && !c.owns(a):
		return ErrPerm
	case (set.SetAtime == ServerTime || set.SetMtime == ServerTime) && !c.owns(a) && !c.may(a, mayWrite):
		return ErrAcces
	}
	return nil
}

// modeAfter returns the mode of an object once set was applied: a change of owner or
// group leaves no set-user-id and set-group-id.
func (c *Cred) modeAfter(a *Attr, set *SetAttr) uint32 {
	mode, gid := a.Mode, a.GID
	if chown := set.UID != nil || set.GID != nil; chown && a.Type == TypeRegular {
		if mode &^= setUID; mode&0o010 != 0 {
			mode &^= setGID
		}
	}
	if set.GID != nil {
		gid = *set.GID
	}
	if set.Mode != nil {
		if mode = *set.Mode & 0o7777; !c.member(gid) && a.Type != TypeDirectory {
			mode &^= setGID
		}
	}
	return mode
}

// modeWritten returns the mode of a file once c has written into it.
func (c *Cred) modeWritten(a *Attr) uint32 {
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
func (c *Cred) created(dir *Attr, t FileType, set *SetAttr) Attr {
	a := Attr{Type: t, Mode: 0o644, Links: 1}
	if c != nil {
		a.UID, a.GID = c.UID, c.GID
	}
	if dir.Mode&setGID != 0 {
		a.GID = dir.GID
	}
	switch {
	case t == TypeSymlink:
		a.Mode = 0o777
		return a
	case set.Mode != nil:
		a.Mode = c.modeAfter(&a, &SetAttr{Mode: set.Mode, GID: set.GID})
	case t == TypeDirectory:
		a.Mode = 0o755
	}
	if t == TypeDirectory && dir.Mode&setGID != 0 {
		a.Mode |= setGID
	}
	return a
}

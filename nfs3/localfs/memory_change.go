package localfs

import (
	"context"

	"github.com/dgrdma/dgrdma/nfs3"
)

// Create is the method of FS.
func (m *Memory) Create(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, how *nfs3.CreateHow) (nfs3.Object, nfs3.WCC, error) {
	by := (*caller)(c)
	var verifier uint64
	if how.Mode == nfs3.Exclusive {
		verifier = how.Verifier
	}
	o, w, err := m.make(by, dir, name, nfs3.TypeRegular, &how.Set, func(n *memoryNode) { n.exclusive = verifier })
	if err != nfs3.ErrExist || how.Mode == nfs3.Guarded {
		return o, w, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir(by, dir, nfs3.AccessLookup)
	if err != nil {
		return nfs3.Object{}, w, err
	}
	w = d.wcc()
	w.After = nfs3.Post(d.attr)
	n, err := d.find(name)
	switch {
	case err != nil:
		return nfs3.Object{}, w, err
	case how.Mode == nfs3.Exclusive:
		if n.attr.Type != nfs3.TypeRegular || n.exclusive == 0 || n.exclusive != verifier {
			return nfs3.Object{}, w, nfs3.ErrExist
		}
	case n.attr.Type != nfs3.TypeRegular:
		return nfs3.Object{}, w, nfs3.ErrExist
	case how.Set.Size != nil: // the only attribute of a file that is there that CREATE sets
		set := &nfs3.SetAttr{Size: how.Set.Size}
		if err := by.settable(&n.attr, set); err != nil {
			return nfs3.Object{}, w, err
		}
		if err := m.set(by, n, set); err != nil {
			return nfs3.Object{}, w, err
		}
	}
	return n.object(), w, nil
}

// Mkdir is the method of FS.
func (m *Memory) Mkdir(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, set *nfs3.SetAttr) (nfs3.Object, nfs3.WCC, error) {
	return m.make((*caller)(c), dir, name, nfs3.TypeDirectory, set, func(n *memoryNode) { n.attr.Links = 2 })
}

// Symlink is the method of FS.
func (m *Memory) Symlink(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name, target string, set *nfs3.SetAttr) (nfs3.Object, nfs3.WCC, error) {
	if len(target) > nfs3.MaxTarget {
		return nfs3.Object{}, nfs3.WCC{}, nfs3.ErrNameTooLong
	}
	return m.make((*caller)(c), dir, name, nfs3.TypeSymlink, set, func(n *memoryNode) {
		n.target = target
		n.attr.Size = uint64(len(target))
		m.bytes += uint64(len(target))
	})
}

// Mknod is the method of FS.
func (m *Memory) Mknod(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, node *nfs3.NodeSpec) (nfs3.Object, nfs3.WCC, error) {
	switch {
	case node.Type == nfs3.TypeSocket || node.Type == nfs3.TypeFIFO:
	case node.Type != nfs3.TypeBlock && node.Type != nfs3.TypeChar:
		return nfs3.Object{}, nfs3.WCC{}, nfs3.ErrBadType
	case !(*caller)(c).root():
		return nfs3.Object{}, nfs3.WCC{}, nfs3.ErrPerm
	}
	return m.make((*caller)(c), dir, name, node.Type, &node.Set, func(n *memoryNode) { n.attr.Major, n.attr.Minor = node.Major, node.Minor })
}

// make makes an object and its entry. It fails with ErrExist itself, not wrapped, if the name is taken.
func (m *Memory) make(c *caller, dir nfs3.Handle, name string, t nfs3.FileType, set *nfs3.SetAttr, complete func(*memoryNode)) (nfs3.Object, nfs3.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir(c, dir, nfs3.AccessLookup)
	if err != nil {
		return nfs3.Object{}, nfs3.WCC{}, err
	}
	w := d.wcc()
	w.After = nfs3.Post(d.attr)
	if _, err := d.find(name); err != nfs3.ErrNoEnt {
		if err == nil {
			err = nfs3.ErrExist
		}
		return nfs3.Object{}, w, err
	}
	a := c.created(&d.attr, t, set)
	switch {
	case !c.may(&d.attr, nfs3.AccessModify):
		err = nfs3.ErrAcces
	case m.files >= m.maxFiles || m.bytes+nfs3.MaxTarget > m.maxBytes && t == nfs3.TypeSymlink:
		err = nfs3.ErrNoSpc
	case t == nfs3.TypeDirectory && d.attr.Links >= linkMax:
		err = nfs3.ErrMLink
	case set.Size != nil && *set.Size > maxMemoryFile:
		err = nfs3.ErrFBig
	default:
		err = c.settableFor(&a, set)
	}
	if err != nil {
		return nfs3.Object{}, w, err
	}
	n := m.newNode(a)
	complete(n)
	if t != nfs3.TypeRegular {
		without := *set
		without.Size = nil
		set = &without
	}
	if t == nfs3.TypeSymlink {
		set = &nfs3.SetAttr{UID: set.UID, GID: set.GID}
	}
	mode := n.attr.Mode
	if err := m.set(c, n, set); err != nil {
		return nfs3.Object{}, w, err
	}
	n.attr.Mode = mode // with what the directory gives it
	m.add(d, name, n)
	w.After = nfs3.Post(d.attr)
	return n.object(), w, nil
}

// Remove is the method of FS.
func (m *Memory) Remove(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.WCC, error) {
	return m.remove((*caller)(c), dir, name, func(n *memoryNode) error {
		if n.attr.Type == nfs3.TypeDirectory {
			return nfs3.ErrIsDir
		}
		return nil
	})
}

// Rmdir is the method of FS.
func (m *Memory) Rmdir(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.WCC, error) {
	return m.remove((*caller)(c), dir, name, func(n *memoryNode) error {
		switch {
		case n.attr.Type != nfs3.TypeDirectory:
			return nfs3.ErrNotDir
		case len(n.entries) > 0:
			return nfs3.ErrNotEmpty
		}
		return nil
	})
}

func (m *Memory) remove(c *caller, dir nfs3.Handle, name string, check func(*memoryNode) error) (nfs3.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir(c, dir, nfs3.AccessLookup)
	if err != nil {
		return nfs3.WCC{}, err
	}
	w := d.wcc()
	if err = notDots(name); err == nil {
		var n *memoryNode
		if n, err = d.find(name); err == nil {
			if err = c.removable(&d.attr, &n.attr); err == nil {
				if err = check(n); err == nil {
					m.unlink(d, name)
				}
			}
		}
	}
	w.After = nfs3.Post(d.attr)
	return w, err
}

// notDots returns ErrInval for the entries that each directory has.
func notDots(name string) error {
	if name == "." || name == ".." {
		return nfs3.ErrInval
	}
	return nil
}

// Rename is the method of FS.
func (m *Memory) Rename(_ context.Context, c *nfs3.Cred, from nfs3.Handle, name string, to nfs3.Handle, newName string) (nfs3.WCC, nfs3.WCC, error) {
	by := (*caller)(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.dir(by, from, nfs3.AccessLookup)
	if err != nil {
		return nfs3.WCC{}, nfs3.WCC{}, err
	}
	b, err := m.dir(by, to, nfs3.AccessLookup)
	if err != nil {
		return nfs3.WCC{}, nfs3.WCC{}, err
	}
	wa, wb := a.wcc(), b.wcc()
	err = m.rename(by, a, name, b, newName)
	wa.After, wb.After = nfs3.Post(a.attr), nfs3.Post(b.attr)
	return wa, wb, err
}

func (m *Memory) rename(c *caller, from *memoryNode, name string, to *memoryNode, newName string) error {
	for _, name := range []string{name, newName} {
		if err := notDots(name); err != nil {
			return err
		}
	}
	n, err := from.find(name)
	if err != nil {
		return err
	}
	if err := c.removable(&from.attr, &n.attr); err != nil {
		return err
	}
	if err := c.directory(&to.attr, nfs3.AccessModify); err != nil {
		return err
	}
	isDir := n.attr.Type == nfs3.TypeDirectory
	for d := to; isDir; d = d.parent {
		if d == n {
			return nfs3.ErrInval
		}
		if d == d.parent {
			break
		}
	}
	old, err := to.find(newName)
	switch {
	case err == nfs3.ErrNoEnt:
		if isDir && from != to && to.attr.Links >= linkMax {
			return nfs3.ErrMLink
		}
	case err != nil:
		return err
	case old == n:
		return nil
	default:
		if err := c.removable(&to.attr, &old.attr); err != nil {
			return err
		}
		switch oldIsDir := old.attr.Type == nfs3.TypeDirectory; {
		case oldIsDir && !isDir:
			return nfs3.ErrIsDir
		case !oldIsDir && isDir:
			return nfs3.ErrNotDir
		case len(old.entries) > 0:
			return nfs3.ErrNotEmpty
		}
		m.unlink(to, newName)
	}
	m.drop(from, name)
	m.add(to, newName, n)
	n.attr.Ctime = m.change()
	return nil
}

// Link is the method of FS.
func (m *Memory) Link(_ context.Context, c *nfs3.Cred, h, dir nfs3.Handle, name string) (nfs3.PostAttr, nfs3.WCC, error) {
	by := (*caller)(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.node(h)
	if err != nil {
		return nfs3.PostAttr{}, nfs3.WCC{}, err
	}
	d, err := m.dir(by, dir, nfs3.AccessLookup)
	if err != nil {
		return nfs3.Post(n.attr), nfs3.WCC{}, err
	}
	w := d.wcc()
	switch _, err = d.find(name); {
	case err == nil:
		err = nfs3.ErrExist
	case err != nfs3.ErrNoEnt:
	case !by.may(&d.attr, nfs3.AccessModify):
		err = nfs3.ErrAcces
	case n.attr.Type == nfs3.TypeDirectory:
		err = nfs3.ErrIsDir
	case n.attr.Links >= linkMax:
		err = nfs3.ErrMLink
	case m.files >= m.maxFiles:
		err = nfs3.ErrNoSpc
	default:
		err = nil
		n.attr.Links++
		n.attr.Ctime = m.change()
		m.add(d, name, n)
	}
	w.After = nfs3.Post(d.attr)
	return nfs3.Post(n.attr), w, err
}

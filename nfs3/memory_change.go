package nfs3

import "context"

// Create is the method of FS.
func (m *Memory) Create(_ context.Context, c *Cred, dir Handle, name string, how *CreateHow) (Object, WCC, error) {
	var verifier uint64
	if how.Mode == Exclusive {
		verifier = how.Verifier
	}
	o, w, err := m.make(c, dir, name, TypeRegular, &how.Set, func(n *memoryNode) { n.exclusive = verifier })
	if err != ErrExist || how.Mode == Guarded {
		return o, w, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir(c, dir, mayExecute)
	if err != nil {
		return Object{}, w, err
	}
	w = d.wcc()
	w.After = Post(d.attr)
	n, err := d.find(name)
	switch {
	case err != nil:
		return Object{}, w, err
	case how.Mode == Exclusive:
		if n.attr.Type != TypeRegular || n.exclusive == 0 || n.exclusive != verifier {
			return Object{}, w, ErrExist
		}
	case n.attr.Type != TypeRegular:
		return Object{}, w, ErrExist
	case how.Set.Size != nil: // the only attribute of a file that is there that CREATE sets
		set := &SetAttr{Size: how.Set.Size}
		if err := c.settable(&n.attr, set); err != nil {
			return Object{}, w, err
		}
		if err := m.set(c, n, set); err != nil {
			return Object{}, w, err
		}
	}
	return n.object(), w, nil
}

// Mkdir is the method of FS.
func (m *Memory) Mkdir(_ context.Context, c *Cred, dir Handle, name string, set *SetAttr) (Object, WCC, error) {
	return m.make(c, dir, name, TypeDirectory, set, func(n *memoryNode) { n.attr.Links = 2 })
}

// Symlink is the method of FS.
func (m *Memory) Symlink(_ context.Context, c *Cred, dir Handle, name, target string, set *SetAttr) (Object, WCC, error) {
	if len(target) > MaxTarget {
		return Object{}, WCC{}, ErrNameTooLong
	}
	return m.make(c, dir, name, TypeSymlink, set, func(n *memoryNode) {
		n.target = target
		n.attr.Size = uint64(len(target))
		m.bytes += uint64(len(target))
	})
}

// Mknod is the method of FS.
func (m *Memory) Mknod(_ context.Context, c *Cred, dir Handle, name string, node *NodeSpec) (Object, WCC, error) {
	switch {
	case node.Type == TypeSocket || node.Type == TypeFIFO:
	case !node.Type.device():
		return Object{}, WCC{}, ErrBadType
	case !c.root():
		return Object{}, WCC{}, ErrPerm
	}
	return m.make(c, dir, name, node.Type, &node.Set, func(n *memoryNode) { n.attr.Major, n.attr.Minor = node.Major, node.Minor })
}

// make makes an object and its entry. It fails with ErrExist itself, not wrapped, if the name is taken.
func (m *Memory) make(c *Cred, dir Handle, name string, t FileType, set *SetAttr, complete func(*memoryNode)) (Object, WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir(c, dir, mayExecute)
	if err != nil {
		return Object{}, WCC{}, err
	}
	w := d.wcc()
	w.After = Post(d.attr)
	if _, err := d.find(name); err != ErrNoEnt {
		if err == nil {
			err = ErrExist
		}
		return Object{}, w, err
	}
	a := c.created(&d.attr, t, set)
	switch {
	case !c.may(&d.attr, mayWrite):
		err = ErrAcces
	case m.files >= m.maxFiles || m.bytes+MaxTarget > m.maxBytes && t == TypeSymlink:
		err = ErrNoSpc
	case t == TypeDirectory && d.attr.Links >= linkMax:
		err = ErrMLink
	case set.Size != nil && *set.Size > maxMemoryFile:
		err = ErrFBig
	default:
		err = c.settableFor(&a, set)
	}
	if err != nil {
		return Object{}, w, err
	}
	n := m.newNode(a)
	complete(n)
	if t != TypeRegular {
		without := *set
		without.Size = nil
		set = &without
	}
	if t == TypeSymlink {
		set = &SetAttr{UID: set.UID, GID: set.GID}
	}
	mode := n.attr.Mode
	if err := m.set(c, n, set); err != nil {
		return Object{}, w, err
	}
	n.attr.Mode = mode // with what the directory gives it
	m.add(d, name, n)
	w.After = Post(d.attr)
	return n.object(), w, nil
}

// Remove is the method of FS.
func (m *Memory) Remove(_ context.Context, c *Cred, dir Handle, name string) (WCC, error) {
	return m.remove(c, dir, name, func(n *memoryNode) error {
		if n.attr.Type == TypeDirectory {
			return ErrIsDir
		}
		return nil
	})
}

// Rmdir is the method of FS.
func (m *Memory) Rmdir(_ context.Context, c *Cred, dir Handle, name string) (WCC, error) {
	return m.remove(c, dir, name, func(n *memoryNode) error {
		switch {
		case n.attr.Type != TypeDirectory:
			return ErrNotDir
		case len(n.entries) > 0:
			return ErrNotEmpty
		}
		return nil
	})
}

func (m *Memory) remove(c *Cred, dir Handle, name string, check func(*memoryNode) error) (WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir(c, dir, mayExecute)
	if err != nil {
		return WCC{}, err
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
	w.After = Post(d.attr)
	return w, err
}

// notDots returns ErrInval for the entries that each directory has.
func notDots(name string) error {
	if name == "." || name == ".." {
		return ErrInval
	}
	return nil
}

// Rename is the method of FS.
func (m *Memory) Rename(_ context.Context, c *Cred, from Handle, name string, to Handle, newName string) (WCC, WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.dir(c, from, mayExecute)
	if err != nil {
		return WCC{}, WCC{}, err
	}
	b, err := m.dir(c, to, mayExecute)
	if err != nil {
		return WCC{}, WCC{}, err
	}
	wa, wb := a.wcc(), b.wcc()
	err = m.rename(c, a, name, b, newName)
	wa.After, wb.After = Post(a.attr), Post(b.attr)
	return wa, wb, err
}

func (m *Memory) rename(c *Cred, from *memoryNode, name string, to *memoryNode, newName string) error {
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
	if err := c.directory(&to.attr, mayWrite|mayExecute); err != nil {
		return err
	}
	isDir := n.attr.Type == TypeDirectory
	for d := to; isDir; d = d.parent {
		if d == n {
			return ErrInval
		}
		if d == d.parent {
			break
		}
	}
	old, err := to.find(newName)
	switch {
	case err == ErrNoEnt:
		if isDir && from != to && to.attr.Links >= linkMax {
			return ErrMLink
		}
	case err != nil:
		return err
	case old == n:
		return nil
	default:
		if err := c.removable(&to.attr, &old.attr); err != nil {
			return err
		}
		switch oldIsDir := old.attr.Type == TypeDirectory; {
		case oldIsDir && !isDir:
			return ErrIsDir
		case !oldIsDir && isDir:
			return ErrNotDir
		case len(old.entries) > 0:
			return ErrNotEmpty
		}
		m.unlink(to, newName)
	}
	m.drop(from, name)
	m.add(to, newName, n)
	n.attr.Ctime = m.change()
	return nil
}

// Link is the method of FS.
func (m *Memory) Link(_ context.Context, c *Cred, h, dir Handle, name string) (PostAttr, WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.node(h)
	if err != nil {
		return PostAttr{}, WCC{}, err
	}
	d, err := m.dir(c, dir, mayExecute)
	if err != nil {
		return Post(n.attr), WCC{}, err
	}
	w := d.wcc()
	switch _, err = d.find(name); {
	case err == nil:
		err = ErrExist
	case err != ErrNoEnt:
	case !c.may(&d.attr, mayWrite):
		err = ErrAcces
	case n.attr.Type == TypeDirectory:
		err = ErrIsDir
	case n.attr.Links >= linkMax:
		err = ErrMLink
	case m.files >= m.maxFiles:
		err = ErrNoSpc
	default:
		err = nil
		n.attr.Links++
		n.attr.Ctime = m.change()
		m.add(d, name, n)
	}
	w.After = Post(d.attr)
	return Post(n.attr), w, err
}

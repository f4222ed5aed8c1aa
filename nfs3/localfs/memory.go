package localfs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
)

// MemoryOptions are the bounds of a [Memory].
type MemoryOptions struct {
	MaxBytes uint64 // what data of files and targets of links take; 0: 1 GiB
	MaxFiles int    // entries of all directories; 0: 65536
}

// The usual bounds: arbitrary.
const (
	mostBytes = 1 << 30
	mostFiles = 1 << 16
)

// Memory is an [FS] in memory. It is lost with the process, and a handle is stale after that.
// Times of access are not kept.
type Memory struct {
	maxBytes uint64
	maxFiles int
	key      uint64 // in all handles: those of another Memory are stale
	verifier uint64

	mu    sync.RWMutex
	nodes map[uint64]*memoryNode // by file id
	last  uint64                 // file id that was given
	bytes uint64                 // taken
	files int                    // entries
	now   time.Time              // of the last change
}

// memoryNode is an object. Memory.mu is held over all of it.
type memoryNode struct {
	attr      nfs3.Attr
	handle    nfs3.Handle
	exclusive uint64 // verifier of the CREATE that made it
	data      pages
	target    string
	parent    *memoryNode             // of a directory; the root's is the root
	entries   map[string]*memoryEntry // of a directory
	order     []*memoryEntry          // the same, by cookie
	cookie    uint64                  // that was given last
}

type memoryEntry struct {
	name   string
	cookie uint64
	node   *memoryNode
}

// Cookies of the entries that each directory has.
const (
	cookieSelf   = 1
	cookieParent = 2
)

// NewMemory returns an empty file system. Its root has mode 0777 and belongs to user 0.
func NewMemory(o *MemoryOptions) *Memory {
	if o == nil {
		o = new(MemoryOptions)
	}
	m := &Memory{maxBytes: o.MaxBytes, maxFiles: o.MaxFiles, key: random(), verifier: random(), nodes: map[uint64]*memoryNode{}}
	if m.maxBytes == 0 {
		m.maxBytes = mostBytes
	}
	if m.maxFiles == 0 {
		m.maxFiles = mostFiles
	}
	root := m.newNode(nfs3.Attr{Type: nfs3.TypeDirectory, Mode: 0o777, Links: 2})
	root.parent = root
	return m
}

// random returns a number that nothing guesses.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// change returns the time of a change: later than that of the one before, so that clients see both.
func (m *Memory) change() nfs3.Time {
	now := time.Now()
	if !now.After(m.now) {
		now = m.now.Add(1)
	}
	m.now = now
	return nfs3.TimeOf(now)
}

// newNode makes an object without an entry.
func (m *Memory) newNode(a nfs3.Attr) *memoryNode {
	m.last++
	a.FileID, a.FSID = m.last, m.key
	a.Mtime = m.change()
	a.Atime, a.Ctime = a.Mtime, a.Mtime
	n := &memoryNode{attr: a, handle: m.handle(m.last)}
	if a.Type == nfs3.TypeDirectory {
		n.attr.Size, n.entries, n.cookie = 4096, map[string]*memoryEntry{}, cookieParent
	}
	m.nodes[m.last] = n
	return n
}

func (m *Memory) handle(id uint64) nfs3.Handle {
	return nfs3.Handle(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, m.key), id))
}

// node returns the object of a handle.
func (m *Memory) node(h nfs3.Handle) (*memoryNode, error) {
	if len(h) != 16 {
		return nil, nfs3.ErrBadHandle
	}
	b := []byte(h)
	n := m.nodes[binary.BigEndian.Uint64(b[8:])]
	if n == nil || binary.BigEndian.Uint64(b) != m.key {
		return nil, nfs3.ErrStale
	}
	return n, nil
}

// dir returns the directory of a handle, of which the mode grants the rights to c.
func (m *Memory) dir(c *caller, h nfs3.Handle, rights nfs3.Access) (*memoryNode, error) {
	n, err := m.node(h)
	if err != nil {
		return nil, err
	}
	return n, c.directory(&n.attr, rights)
}

// find returns an entry of a directory.
func (n *memoryNode) find(name string) (*memoryNode, error) {
	switch name {
	case ".":
		return n, nil
	case "..":
		return n.parent, nil
	}
	if err := nfs3.CheckName(name); err != nil {
		return nil, err
	}
	if e := n.entries[name]; e != nil {
		return e.node, nil
	}
	return nil, nfs3.ErrNoEnt
}

// add gives a directory one more entry.
func (m *Memory) add(dir *memoryNode, name string, n *memoryNode) {
	dir.cookie++
	e := &memoryEntry{name, dir.cookie, n}
	dir.entries[name] = e
	dir.order = append(dir.order, e)
	m.files++
	if n.attr.Type == nfs3.TypeDirectory {
		n.parent = dir
		dir.attr.Links++
	}
	dir.attr.Mtime = m.change()
	dir.attr.Ctime = dir.attr.Mtime
}

// drop takes an entry out of a directory. The object may have others.
func (m *Memory) drop(dir *memoryNode, name string) {
	e := dir.entries[name]
	delete(dir.entries, name)
	i, _ := dir.search(e.cookie)
	dir.order = slices.Delete(dir.order, i, i+1)
	m.files--
	if e.node.attr.Type == nfs3.TypeDirectory {
		dir.attr.Links--
	}
	dir.attr.Mtime = m.change()
	dir.attr.Ctime = dir.attr.Mtime
}

// unlink is drop for an entry that goes for good.
func (m *Memory) unlink(dir *memoryNode, name string) {
	n := dir.entries[name].node
	m.drop(dir, name)
	if n.attr.Links--; n.attr.Links == 0 || n.attr.Type == nfs3.TypeDirectory {
		delete(m.nodes, n.attr.FileID)
		m.bytes -= n.data.truncate(0) + uint64(len(n.target))
		return
	}
	n.attr.Ctime = m.change()
}

func (n *memoryNode) search(cookie uint64) (int, bool) {
	return slices.BinarySearchFunc(n.order, cookie, func(e *memoryEntry, cookie uint64) int {
		return cmp.Compare(e.cookie, cookie)
	})
}

// wcc returns what a deferred call completes: attributes before and after a change of n.
func (n *memoryNode) wcc() nfs3.WCC { return nfs3.WCC{Before: nfs3.Pre(&n.attr)} }

func (n *memoryNode) object() nfs3.Object { return nfs3.Object{Handle: n.handle, Attr: n.attr} }

// Root is the method of FS.
func (m *Memory) Root(context.Context) (nfs3.Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.nodes[1].object(), nil
}

// GetAttr is the method of FS.
func (m *Memory) GetAttr(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.Attr, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.node(h)
	if err != nil {
		return nfs3.Attr{}, err
	}
	return n.attr, nil
}

// SetAttr is the method of FS.
func (m *Memory) SetAttr(_ context.Context, c *nfs3.Cred, h nfs3.Handle, set *nfs3.SetAttr, guard *nfs3.Time) (nfs3.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.node(h)
	if err != nil {
		return nfs3.WCC{}, err
	}
	by, w := (*caller)(c), n.wcc()
	if guard != nil && *guard != n.attr.Ctime {
		err = nfs3.ErrNotSync
	} else if err = by.settable(&n.attr, set); err == nil {
		err = m.set(by, n, set)
	}
	w.After = nfs3.Post(n.attr)
	return w, err
}

// set sets attributes that c may set.
func (m *Memory) set(c *caller, n *memoryNode, set *nfs3.SetAttr) error {
	if set.Empty() {
		return nil
	}
	if set.Size != nil && *set.Size > maxMemoryFile {
		return nfs3.ErrFBig
	}
	now := m.change()
	n.attr.Mode = c.modeAfter(&n.attr, set)
	if set.UID != nil {
		n.attr.UID = *set.UID
	}
	if set.GID != nil {
		n.attr.GID = *set.GID
	}
	if set.Size != nil {
		m.bytes -= n.data.truncate(*set.Size)
		n.attr.Size, n.attr.Used, n.attr.Mtime = *set.Size, n.data.taken, now
	}
	setTime(&n.attr.Atime, set.SetAtime, set.Atime, now)
	setTime(&n.attr.Mtime, set.SetMtime, set.Mtime, now)
	n.attr.Ctime = now
	return nil
}

func setTime(t *nfs3.Time, how nfs3.SetTime, to, now nfs3.Time) {
	switch how {
	case nfs3.ServerTime:
		*t = now
	case nfs3.ClientTime:
		*t = to
	}
}

// Lookup is the method of FS.
func (m *Memory) Lookup(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d, err := m.dir((*caller)(c), dir, nfs3.AccessLookup)
	if err != nil {
		return nfs3.Object{}, err
	}
	n, err := d.find(name)
	if err != nil {
		return nfs3.Object{}, err
	}
	return n.object(), nil
}

// Access is the method of FS.
func (m *Memory) Access(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, want nfs3.Access) (nfs3.Access, error) {
	a, err := m.GetAttr(ctx, c, h)
	if err != nil {
		return 0, err
	}
	return c.Granted(&a, want), nil
}

// ReadLink is the method of FS.
func (m *Memory) ReadLink(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.node(h)
	if err != nil {
		return "", err
	}
	if n.attr.Type != nfs3.TypeSymlink {
		return "", nfs3.ErrInval
	}
	return n.target, nil
}

// ReadDir is the method of FS.
func (m *Memory) ReadDir(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, from nfs3.DirPosition, plus bool, each func(*nfs3.DirEntry) bool) (nfs3.DirEnd, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d, err := m.dir((*caller)(c), dir, nfs3.AccessRead)
	if err != nil {
		return nfs3.DirEnd{}, err
	}
	end := nfs3.DirEnd{Verifier: m.verifier}
	if from.Cookie != 0 && from.Verifier != m.verifier {
		return end, nfs3.ErrBadCookie
	}
	tell := func(name string, cookie uint64, n *memoryNode) bool {
		e := nfs3.DirEntry{FileID: n.attr.FileID, Name: name, Cookie: cookie}
		if plus {
			e.Attr, e.Object = nfs3.Post(n.attr), nfs3.PostHandle{Present: true, Handle: n.handle}
		}
		return each(&e)
	}
	if from.Cookie < cookieSelf && !tell(".", cookieSelf, d) || from.Cookie < cookieParent && !tell("..", cookieParent, d.parent) {
		return end, nil
	}
	i, found := d.search(from.Cookie)
	if found {
		i++
	}
	for _, e := range d.order[i:] {
		if !tell(e.name, e.cookie, e.node) {
			return end, nil
		}
	}
	end.EOF = true
	return end, nil
}

// FSStat is the method of FS.
func (m *Memory) FSStat(context.Context, *nfs3.Cred, nfs3.Handle) (nfs3.FSStat, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	free, files := m.maxBytes-min(m.bytes, m.maxBytes), uint64(max(m.maxFiles-m.files, 0))
	return nfs3.FSStat{TotalBytes: m.maxBytes, FreeBytes: free, AvailBytes: free, TotalFiles: uint64(m.maxFiles), FreeFiles: files, AvailFiles: files}, nil
}

// FSInfo is the method of FS.
func (m *Memory) FSInfo(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.FSInfo, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, err := m.node(h)
	return nfs3.FSInfo{MaxFileSize: maxMemoryFile, Properties: properties}, err
}

// properties is what both file systems can do.
const properties = nfs3.HasLinks | nfs3.HasSymlinks | nfs3.Homogeneous | nfs3.CanSetTime

// PathConf is the method of FS.
func (m *Memory) PathConf(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.PathConf, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, err := m.node(h)
	return usualPathConf, err
}

const linkMax = 1 << 15 // arbitrary

var usualPathConf = nfs3.PathConf{LinkMax: linkMax, NameMax: nfs3.MaxName, NoTrunc: true, ChownRestricted: true, CasePreserving: true}

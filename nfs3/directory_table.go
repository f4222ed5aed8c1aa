package nfs3

import (
	"encoding/binary"
	"sync"
)

// maxPlaces is how many objects of a [Directory] have a handle that is not stale, whatever clients do.
const maxPlaces = 1 << 16

// identity tells an object from all others, also from one that is there later with the same inode.
type identity struct {
	dev, inode uint64
	born       Time // where the file system knows it
}

// place is where an object was when it was last seen: its name in a directory that is itself one.
// placeTable.mu is held over all but serial.
type place struct {
	serial     uint64
	id         identity
	parent     *place // nil: the root
	name       string
	prev, next *place // by when they were used
}

// placeTable knows places by handle and by identity. Of more than maxPlaces the one that was not
// used for longest is forgotten, and its handle is stale.
//
// A parent was always used after its children; kept by touch. So the oldest place has none.
type placeTable struct {
	mu     sync.Mutex
	key    uint64 // in all handles
	last   uint64 // serial that was given
	root   *place // the newest, and the head of the ring: its prev is the oldest
	handle map[uint64]*place
	object map[identity]*place
	most   int
}

func newPlaceTable(root identity) *placeTable {
	t := &placeTable{key: random(), most: maxPlaces, handle: map[uint64]*place{}, object: map[identity]*place{}}
	t.root = &place{id: root}
	t.root.prev, t.root.next = t.root, t.root
	t.insert(t.root)
	return t
}

// insert gives a place a handle.
func (t *placeTable) insert(p *place) {
	t.last++
	p.serial = t.last
	t.handle[p.serial], t.object[p.id] = p, p
}

// touch makes p, and what is above it, the newest.
func (t *placeTable) touch(p *place) {
	for ; p != t.root; p = p.parent {
		if p.next != nil {
			p.prev.next, p.next.prev = p.next, p.prev
		}
		p.prev, p.next = t.root, t.root.next
		p.prev.next, p.next.prev = p, p
	}
}

func (t *placeTable) handleOf(p *place) Handle {
	return Handle(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, t.key), p.serial))
}

// seen notes that an object was seen under a name, and returns its handle. It fails if the directory was
// forgotten since it was found.
func (t *placeTable) seen(id identity, parent *place, name string) (Handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handle[parent.serial] != parent {
		return "", ErrStale
	}
	t.touch(parent)
	p := t.object[id]
	switch {
	case p == nil:
		if len(t.handle) >= t.most {
			t.forget(t.root.prev)
		}
		p = &place{id: id, parent: parent, name: name}
		t.insert(p)
	case p == t.root:
		return t.handleOf(p), nil
	case !p.above(parent): // else others have moved both, and parent is not where it was
		p.parent, p.name = parent, name
	}
	t.touch(p)
	return t.handleOf(p), nil
}

// above reports whether p is q, or one of what is above q.
func (p *place) above(q *place) bool {
	for ; q != nil; q = q.parent {
		if q == p {
			return true
		}
	}
	return false
}

func (t *placeTable) forget(p *place) {
	p.prev.next, p.next.prev = p.next, p.prev
	p.prev, p.next = nil, nil
	delete(t.handle, p.serial)
	delete(t.object, p.id)
}

// find returns the place of a handle, and the names that lead to it from the root.
func (t *placeTable) find(h Handle) (*place, []string, error) {
	if len(h) != 16 {
		return nil, nil, ErrBadHandle
	}
	b := []byte(h)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.handle[binary.BigEndian.Uint64(b[8:])]
	if p == nil || binary.BigEndian.Uint64(b) != t.key {
		return nil, nil, ErrStale
	}
	t.touch(p)
	depth := 0
	for q := p; q != t.root; q = q.parent {
		depth++
	}
	names := make([]string, depth)
	for q := p; q != t.root; q = q.parent {
		depth--
		names[depth] = q.name
	}
	return p, names, nil
}

// parentOf returns the directory in which p was seen; that of the root is the root.
func (t *placeTable) parentOf(p *place) Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == t.root {
		return t.handleOf(p)
	}
	return t.handleOf(p.parent)
}

package localfs

import (
	"sync"

	"github.com/dgrdma/dgrdma/nfs3"
)

// maxPlaces is of how many objects a [Directory] knows where they are, whatever clients do.
const maxPlaces = 1 << 16

// mostAbove is how many directories are above an object at most: each of them is a step to it, and takes a place. It is arbitrary: half of what a
// path has room for that the system takes.
const mostAbove = 1024

// place is where an object was when it was last seen: its name in a directory that is itself one.
// placeTable.mu is held over all but serial, id and handle.
type place struct {
	serial     uint64
	id         identity
	handle     nfs3.Handle // as it was first seen
	parent     *place      // nil: the root
	name       string
	prev, next *place // by when they were used
}

// placeTable knows places by identity. Of more than maxPlaces the one that was not used for longest is forgotten.
//
// A parent was always used after its children; kept by touch. So the oldest place has none, as long as there are more places than those above
// one, which seen and find see to.
type placeTable struct {
	mu     sync.Mutex
	last   uint64 // serial that was given
	root   *place // the newest, and the head of the ring: its prev is the oldest
	object map[identity]*place
	most   int
	above  int // mostAbove
}

func newPlaceTable(root identity) *placeTable {
	t := &placeTable{most: maxPlaces, above: mostAbove, object: map[identity]*place{}}
	t.root = &place{id: root}
	t.root.prev, t.root.next = t.root, t.root
	t.insert(t.root)
	return t
}

// insert gives a place a handle.
func (t *placeTable) insert(p *place) {
	t.last++
	p.serial = t.last
	p.handle = handleOf(p)
	t.object[p.id] = p
}

// touch makes p, and what is above it, the newest. It returns how many directories are above p.
func (t *placeTable) touch(p *place) (above int) {
	for ; p != t.root; p = p.parent {
		above++
		if p.next != nil {
			p.prev.next, p.next.prev = p.next, p.prev
		}
		p.prev, p.next = t.root, t.root.next
		p.prev.next, p.next.prev = p, p
	}
	return above
}

// seen notes that an object was seen under a name, and returns its place. It fails if the directory was
// forgotten since it was found, or is too deep.
func (t *placeTable) seen(id identity, parent *place, name string) (*place, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.object[parent.id] != parent {
		return nil, nfs3.ErrStale
	}
	if t.touch(parent) >= t.above {
		return nil, nfs3.ErrNameTooLong
	}
	p := t.object[id]
	switch {
	case p == nil:
		if len(t.object) >= t.most {
			t.forget(t.root.prev)
		}
		p = &place{id: id, parent: parent, name: name}
		t.insert(p)
	case p == t.root:
		return p, nil
	case !p.above(parent): // else others have moved both, and parent is not where it was
		p.parent, p.name = parent, name
	}
	t.touch(p)
	return p, nil
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
	delete(t.object, p.id)
}

// find returns the place of an object, and the names that lead to it from the root. It fails with ErrStale if the object was not
// seen, or forgotten, and with ErrNameTooLong if it is too deep by now.
func (t *placeTable) find(id identity) (*place, []string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.object[id]
	if p == nil {
		return nil, nil, nfs3.ErrStale
	}
	depth := t.touch(p)
	if depth > t.above {
		return nil, nil, nfs3.ErrNameTooLong
	}
	names := make([]string, depth)
	for q := p; q != t.root; q = q.parent {
		depth--
		names[depth] = q.name
	}
	return p, names, nil
}

// parentOf returns the directory in which p was seen; that of the root is the root.
func (t *placeTable) parentOf(p *place) nfs3.Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == t.root {
		return p.handle
	}
	return p.parent.handle
}

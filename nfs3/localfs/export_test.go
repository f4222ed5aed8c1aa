package localfs

// BoundPlaces has a Directory remember that many objects.
func (d *Directory) BoundPlaces(n int) { d.table.most = n }

// BoundDepth has a Directory reach objects that have so many directories above them.
func (d *Directory) BoundDepth(n int) { d.table.above = n }

// BoundSearch has a Directory look at that many entries for a handle.
func (d *Directory) BoundSearch(n int) { d.searched = n }

// Places returns how many objects a Directory remembers.
func (d *Directory) Places() int { return len(d.table.object) }

// BeginMove has a Directory be within a rename until end is called.
func (d *Directory) BeginMove() (end func()) {
	d.moves.Lock()
	return d.moves.Unlock
}

// MostSearches is mostSearches.
const MostSearches = mostSearches

// HoldSearches has the searches of a Directory wait until end is called.
func (d *Directory) HoldSearches() (end func()) {
	d.searches.Lock()
	return d.searches.Unlock
}

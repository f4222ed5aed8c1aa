package nfs3

// BoundPlaces has a Directory remember that many objects.
func (d *Directory) BoundPlaces(n int) { d.table.most = n }

// BoundSearch has a Directory look at that many entries for a handle.
func (d *Directory) BoundSearch(n int) { d.searched = n }

// Places returns how many objects a Directory remembers.
func (d *Directory) Places() int { return len(d.table.object) }

package nfs3

// BoundEntries has a Volume list so many entries.
func (v *Volume) BoundEntries(n int) { v.most = n }

package memory

import "fmt"

// Window is a part of a region which peers know by a STag of its own.
type Window struct {
	*Grant
}

// Bind makes a window of length bytes from the offset in the region on, with no more rights than
// the region has. Like a region, it is there for the streams of the domain, or for one alone;
// of a region that is there for one, the windows are too.
func (r *Region) Bind(offset, length int, rights Rights, o *Options) (*Window, error) {
	var own Options
	if o != nil {
		own = *o
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch only := r.by != &r.by.domain.shared; {
	case offset < 0 || length < 0 || length > r.Len()-offset:
		return nil, fmt.Errorf("%w: a window of %d bytes at %d in a region of %d", ErrBounds, length, offset, r.Len())
	case rights&^r.Rights() != 0:
		return nil, fmt.Errorf("%w: the region does not have %v", ErrRights, rights&^r.Rights())
	case only && own.Stream != nil && own.Stream != r.by:
		return nil, fmt.Errorf("%w: the region is there for one stream alone, and so are its windows", ErrAssociation)
	case only:
		own.Stream = r.by
	}
	g, err := r.by.domain.grant(r, r.Bytes()[offset:offset+length], rights, &own)
	if err != nil {
		return nil, err
	}
	if !r.Valid() {
		return nil, ErrInvalidated
	}
	if err := r.by.table.insert(g); err != nil {
		return nil, err
	}
	if r.windows == nil {
		r.windows = make(map[*Grant]struct{})
	}
	r.windows[g] = struct{}{}
	return &Window{g}, nil
}

// Region is that of the window.
func (w *Window) Region() *Region { return w.region }

// Invalidate withdraws the window, as [Region.Invalidate] does a region. The region stays.
func (w *Window) Invalidate() {
	r := w.region
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shutWindow(w.Grant)
	for !w.empty() {
		r.left.Wait()
	}
}

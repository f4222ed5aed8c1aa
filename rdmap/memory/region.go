package memory

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// Options are what need not be said of memory. The zero value, as nil, is every option's
// default.
type Options struct {
	// Base is the TO of the first byte: 0, or whatever suits the program, as the address.
	Base uint64
	// Stream is the only one that may use the memory. Nil: all of the domain may.
	Stream *Stream
	// Algorithm is what Verify computes, and must be there with that right. The windows of a
	// region have the region's.
	Algorithm Algorithm
}

var errNoFile = fmt.Errorf("%w: FlushPersistent needs a file: see RegisterFile", ErrNotPersistent)

// Region is registered memory.
type Region struct {
	*Grant
	algorithm Algorithm
	file      *mapping // nil: plain memory

	mu      sync.Mutex
	left    sync.Cond           // somebody was the last to leave what is shut
	windows map[*Grant]struct{} // those that are valid, or have somebody inside
}

// Register grants bytes to the streams of the domain. It takes as long for many bytes as for
// few, and pins nothing. The bytes are the table's until the region is invalidated.
func (d *Domain) Register(bytes []byte, rights Rights, o *Options) (*Region, error) {
	if rights&FlushPersistent != 0 {
		return nil, errNoFile
	}
	return d.register(bytes, nil, rights, o)
}

func (d *Domain) register(bytes []byte, file *mapping, rights Rights, o *Options) (*Region, error) {
	if o == nil {
		o = new(Options)
	}
	if err := verifiable(rights, o.Algorithm); err != nil {
		return nil, err
	}
	r := &Region{algorithm: o.Algorithm, file: file}
	r.left.L = &r.mu
	g, err := d.grant(r, bytes, rights, o)
	if err != nil {
		return nil, err
	}
	r.Grant = g
	if err := g.by.table.insert(g); err != nil {
		return nil, err
	}
	return r, nil
}

// grantable checks what is said of bytes that are to be granted.
func grantable(bytes []byte, rights Rights, base uint64) error {
	switch {
	case rights&^all != 0:
		return fmt.Errorf("%v: there are no such rights", rights)
	case len(bytes) > 0 && base > math.MaxUint64-uint64(len(bytes)-1):
		return fmt.Errorf("%d bytes from the base %#x on have offsets beyond 2^64: choose a smaller base", len(bytes), base)
	}
	return nil
}

// grant makes a grant that has no STag yet.
func (d *Domain) grant(r *Region, bytes []byte, rights Rights, o *Options) (*Grant, error) {
	by := o.Stream
	switch {
	case by == nil:
		by = &d.shared
	case by.domain != d:
		return nil, fmt.Errorf("%w: the stream belongs to another domain", ErrAssociation)
	}
	if err := grantable(bytes, rights, o.Base); err != nil {
		return nil, err
	}
	g := &Grant{region: r, by: by}
	g.set(bytes, rights, o.Base)
	return g, nil
}

var errOfFile = errors.New("the region is of a file: register the file again")

// Reregister withdraws the region, as Invalidate does, and grants other bytes by it, with other rights and a new STag,
// to the same streams. It allocates nothing. After an error the region stays withdrawn.
func (r *Region) Reregister(bytes []byte, rights Rights, base uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.invalidate()
	if r.file != nil {
		return errOfFile
	}
	if rights&FlushPersistent != 0 {
		return errNoFile
	}
	if err := verifiable(rights, r.algorithm); err != nil {
		return err
	}
	if err := grantable(bytes, rights, base); err != nil {
		return err
	}
	r.set(bytes, rights, base)
	if err := r.by.table.insert(r.Grant); err != nil {
		return err
	}
	r.open()
	return nil
}

// Invalidate withdraws the region and its windows. When it returns, nobody touches the bytes on
// behalf of a peer any more, not even what is on its way, and nobody ever will with the
// STags that they had (RDMAP-102). It waits for those who are inside, which takes no longer
// than a copy. After the first time it only waits.
func (r *Region) Invalidate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.invalidate()
}

// invalidate is called with the lock. The region may be registered again while it waits.
func (r *Region) invalidate() {
	for r.shut(); !r.empty() || len(r.windows) > 0; r.shut() {
		r.left.Wait()
	}
}

// withdraw shuts that one of the region's grants which the STag names, unless it is shut, and waits for nobody.
func (r *Region) withdraw(g *Grant, stag uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !g.Valid() || g.STag() != stag {
		return false
	}
	if g == r.Grant {
		r.shut()
	} else {
		r.shutWindow(g)
	}
	return true
}

// shut shuts the region and its windows. It is called with the lock.
func (r *Region) shut() {
	if !r.Valid() {
		return
	}
	r.shutGate()
	for w := range r.windows {
		r.shutWindow(w)
	}
}

// shutWindow shuts a window, which is forgotten when nobody is inside. It is called with the lock.
func (r *Region) shutWindow(w *Grant) {
	w.shutGate()
	if w.empty() {
		delete(r.windows, w)
	}
}

// emptied says that the last one has left one of the region's grants, which is shut.
func (r *Region) emptied(g *Grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.windows, g)
	r.left.Broadcast()
}

// Close invalidates the region. A file's bytes are unmapped then, when no Flush or Verify is
// at work on them any more, and the program must not touch them after that.
func (r *Region) Close() error {
	r.Invalidate()
	if r.file == nil {
		return nil
	}
	return r.file.close()
}

package verbs

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// Domain is a protection domain: what its queue pairs may touch, and no queue pair of another one.
type Domain struct{ d *memory.Domain }

// RegionOptions are what need not be said of memory. The zero value, as nil, is every option's default.
type RegionOptions struct {
	// Base is the offset that peers give to the first byte: 0, or whatever suits the program, as the
	// address.
	Base uint64
	// Only is the stream of the one queue pair that may use the memory; nil: all queue pairs of the domain may. Its peer, and
	// no other, can withdraw such memory by a Send that invalidates ([Work.Invalidating]).
	Only *Stream
	// Algorithm is what Verify computes, and must be there with that right. It is not on the wire: the
	// peer's program has to know it. The windows of a region have the region's.
	Algorithm Algorithm
}

func (o *RegionOptions) memory() *memory.Options {
	if o == nil {
		return nil
	}
	m := &memory.Options{Base: o.Base, Algorithm: o.Algorithm}
	if o.Only != nil {
		m.Stream = o.Only.s
	}
	return m
}

// Stream stands for the connection of one queue pair, where memory is registered for that alone: [RegionOptions.Only]. An open
// queue pair has one, [QueuePair.Stream]. A program that has to name such memory in its private data, and so before
// there is a queue pair, makes one with [Domain.NewStream], and gives it to the queue pair with [Options.Stream].
type Stream struct {
	of    *Domain
	s     *memory.Stream
	taken atomic.Bool // by a queue pair
}

// NewStream makes the stream of a queue pair that is opened later.
func (d *Domain) NewStream() *Stream { return &Stream{of: d, s: d.d.NewStream()} }

// Register grants bytes to the queue pairs of the domain. It takes as long for many bytes as for
// few, and pins nothing. Until the region is invalidated the bytes must not be used for anything else, but may be
// read, and written where the program and its peers agree on which of them writes when. Of bytes that the program has mapped from a
// file the same holds as of [Domain.RegisterFile] where the file is cut.
func (d *Domain) Register(b []byte, rights Rights, o *RegionOptions) (*Region, error) {
	r, err := d.d.Register(b, rights, o.memory())
	if err != nil {
		return nil, fmt.Errorf("register %d bytes: %w", len(b), err)
	}
	return &Region{r: r}, nil
}

// RegisterFile grants length bytes of a file, from the one at offset on. It maps them: peers write into the file
// itself, and every process sees it. The file may be closed after that; [Region.Close] ends it. Only such
// memory can have the right [FlushPersistent].
//
// With a right to write, the file must be open for both reading and writing, and grows if it
// ends before; the disk's space for all of it is taken at once, where the file system can do
// that, so that a full disk is an error here, and not when a peer writes. Without such a right the file must
// have the bytes, and the program cannot write to [Region.Bytes] either.
//
// The file should keep its length while it is registered. A peer that touches bytes which are gone loses its connection,
// and [QueuePair.Err] has a [FileLostError] that says which region it is; all other connections go on. A program that
// touches them itself ends.
func (d *Domain) RegisterFile(file *os.File, offset, length int64, rights Rights, o *RegionOptions) (*Region, error) {
	r, err := d.d.RegisterFile(file, offset, length, rights, o.memory())
	if err != nil {
		return nil, fmt.Errorf("register a file: %w", err)
	}
	return &Region{r: r}, nil
}

// Region is registered memory: what libibverbs calls a memory region, and libfabric a domain's
// memory registration. Peers know it by its [Key].
type Region struct{ r *memory.Region }

// Key is what a peer has to be told to reach the region.
func (r *Region) Key() Key { return keyOf(r.r.Grant) }

// Bytes are the bytes themselves. Peers touch them at any time until the region is invalidated.
func (r *Region) Bytes() []byte { return r.r.Bytes() }

// Word is the eight bytes at an offset, for the functions of package sync/atomic: the program's operations and those of
// peers exclude each other then. [ErrBounds], [ErrMisaligned]: the address must be a multiple of eight, as that of
// bytes which begin a slice of at least eight is.
func (r *Region) Word(offset int) (*uint64, error) {
	w, err := r.r.Word(offset)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", r, err)
	}
	return w, nil
}

// STag is the name by which peers ask for the region; others call it an rkey.
func (r *Region) STag() uint32 { return r.r.STag() }

// Base is the offset of the first byte as peers name it.
func (r *Region) Base() uint64 { return r.r.Base() }

// Len is the number of bytes.
func (r *Region) Len() int { return r.r.Len() }

// Rights are what may be done.
func (r *Region) Rights() Rights { return r.r.Rights() }

// Valid is false from the moment the program, or the peer, invalidates the region.
func (r *Region) Valid() bool { return r.r.Valid() }

// Bind makes a window of length bytes from the offset in the region on, with no more rights than
// the region has. Of a region that is there for one queue pair, the windows are too.
func (r *Region) Bind(offset, length int, rights Rights, o *RegionOptions) (*Window, error) {
	w, err := r.r.Bind(offset, length, rights, o.memory())
	if err != nil {
		return nil, fmt.Errorf("bind a window: %w", err)
	}
	return &Window{w: w, of: r}, nil
}

// Invalidate withdraws the region and its windows. When it returns, nobody touches the bytes on
// behalf of a peer any more, not even what is on its way, and nobody ever will by the STags that they
// had. It takes no longer than a copy. After a peer has invalidated the region it waits for what is under
// way, so call it then, too, before the bytes are used again.
func (r *Region) Invalidate() { r.r.Invalidate() }

// Reregister withdraws the region, as [Region.Invalidate] does, and then grants b by it: with other rights, another
// base, and a new STag, which is random. The queue pairs that may use it, and its Algorithm, stay. It does not matter
// whether the region is valid before. It allocates nothing, so that a program which tells a peer of memory for one
// request at a time keeps a few regions and registers them again and again. After an error the region stays withdrawn.
// A region of a file cannot be registered again.
//
// All that the region says of itself changes, so the goroutine that calls Reregister is to be the one that asks
// for the new Key.
func (r *Region) Reregister(b []byte, rights Rights, base uint64) error {
	if err := r.r.Reregister(b, rights, base); err != nil {
		return fmt.Errorf("register %d bytes again: %w", len(b), err)
	}
	return nil
}

// Close invalidates the region. A file's bytes are unmapped then, when no Flush or Verify is
// at work on them any more, and the program must not touch them after that.
func (r *Region) Close() error { return r.r.Close() }

// String says what the region is.
func (r *Region) String() string { return describe("region", r.r.Grant) }

// Window is a part of a region which peers know by a [Key] of its own. It can be withdrawn, and
// the region stays.
type Window struct {
	w  *memory.Window
	of *Region
}

// Key is what a peer has to be told to reach the window.
func (w *Window) Key() Key { return keyOf(w.w.Grant) }

// Region is that of the window.
func (w *Window) Region() *Region { return w.of }

// Bytes are the bytes themselves.
func (w *Window) Bytes() []byte { return w.w.Bytes() }

// STag is the name by which peers ask for the window.
func (w *Window) STag() uint32 { return w.w.STag() }

// Base is the offset of the first byte as peers name it.
func (w *Window) Base() uint64 { return w.w.Base() }

// Len is the number of bytes.
func (w *Window) Len() int { return w.w.Len() }

// Rights are what may be done.
func (w *Window) Rights() Rights { return w.w.Rights() }

// Valid is false from the moment the program, or the peer, invalidates the window or its region.
func (w *Window) Valid() bool { return w.w.Valid() }

// Invalidate withdraws the window, as [Region.Invalidate] does a region.
func (w *Window) Invalidate() { w.w.Invalidate() }

// String says what the window is.
func (w *Window) String() string { return describe("window", w.w.Grant) }

func describe(what string, g *memory.Grant) string {
	s := fmt.Sprintf("%s of %d bytes, %v, STag %#x", what, g.Len(), g.Rights(), g.STag())
	if !g.Valid() {
		s += ", invalidated"
	}
	return s
}

package endpoint

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/dgrdma/dgrdma/frame"
)

// Memory is what an endpoint's peers write into, and the hook for layers above:
// every message repeats the whole description of its transaction. Both methods
// run on the goroutine that receives; they must not block.
type Memory interface {
	// Admit returns where the m.Len bytes of a message go, before any byte of
	// its frame is placed. An error refuses the whole frame, which is then not
	// acknowledged; see Swallow for the milder way.
	Admit(src frame.EndpointID, m *frame.Message) (dst []byte, err error)
	// Complete performs the completion write of m's transaction, after all its
	// data is placed. It is not called for transactions without completion.
	Complete(src frame.EndpointID, m *frame.Message)
}

// Placed is implemented by memories that want to know when data arrived, as
// opposed to completions: some peers write flags as data (quirk F15).
type Placed interface {
	Placed(src frame.EndpointID, m *frame.Message)
}

// PerConn is implemented by memories that each peer sees in a way of its own:
// For is asked once for every connection, before anything of its peer is
// admitted, and what it returns stands for the memory from then on. With nil the peer may
// write nothing. For must not call the endpoint.
type PerConn interface {
	For(c *Conn) Memory
}

// Region is flat memory, bounds-checked on data and on completion words. The
// zero Region has no memory.
//
// A Region belongs to no endpoint: it outlives those that peers write into it through, and
// a Wait on it continues after they close. See [Region.Wait].
type Region struct {
	mem     []byte
	watch   watchers
	drivers Drivers // the endpoints whose memory it is
}

var (
	_ Memory = (*Region)(nil)
	_ Placed = (*Region)(nil)
)

// drivenBy is called when an endpoint with that memory is opened, and closed.
func (r *Region) drivenBy(e *Endpoint, on bool) {
	if on {
		r.drivers.Add(e)
	} else {
		r.drivers.Remove(e)
	}
}

// NewRegion makes zeroed memory of size bytes, up to 4 GiB.
func NewRegion(size int) (*Region, error) {
	if uint64(size) > 1<<32 {
		return nil, fmt.Errorf("dgrdma: a region has 0 to 4294967296 bytes, not %d", size)
	}
	words := make([]uint64, size/8+1) // so that the block is 8-aligned whatever its size
	block := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
	return &Region{mem: block[:size:size]}, nil
}

// RegionOver makes a Region of memory that exists, such as a mapped file. It
// must begin at a multiple of 8.
//
// A mapped file must keep its length while the region is in use, and have its disk space: the goroutine that touches
// bytes which are gone ends the program by SIGBUS, the endpoint's own goroutines included. A program that drives its
// endpoint with Progress can have a panic instead, by debug.SetPanicOnFault, and end in good order; the endpoint cannot be
// used after that.
func RegionOver(mem []byte) (*Region, error) {
	if len(mem) > 0 && uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, errMisalignedRegion
	}
	return &Region{mem: mem}, nil
}

// String says how large it is.
func (r *Region) String() string { return fmt.Sprintf("region of %d bytes", r.Size()) }

// Bytes returns the memory. Peers write into it at any time; a completion word
// read with Load32 orders the data before it, nothing else does.
func (r *Region) Bytes() []byte {
	return r.mem
}

// Size returns the length of the memory in bytes.
func (r *Region) Size() uint64 {
	return uint64(len(r.mem))
}

// Admit checks that data and completion word lie inside the memory
// (DGRDMA-037).
func (r *Region) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	at, n, size := uint64(m.Addr), uint64(m.Len), uint64(len(r.mem))
	if n > 0 && at+n > size {
		return nil, &boundsError{what: "data", addr: m.Addr, n: int(n), size: size}
	}
	if m.Completes() && uint64(m.CompletionAddr)+4 > size {
		return nil, &boundsError{what: "completion word", addr: m.CompletionAddr, n: 4, size: size}
	}
	if n == 0 {
		return nil, nil
	}
	return r.mem[at : at+n : at+n], nil
}

// Complete stores the completion word so that everything placed before is
// visible to who reads it with Load32 (DGRDMA-036).
func (r *Region) Complete(_ frame.EndpointID, m *frame.Message) {
	r.Store32(m.CompletionAddr, m.CompletionValue)
}

// Placed wakes who watches a word that was written as data.
func (r *Region) Placed(_ frame.EndpointID, m *frame.Message) {
	if r != nil && m.Len == 4 {
		r.watch.wake(m.Addr)
	}
}

// Load32 reads the little-endian word at addr. At a multiple of 4 the read is
// atomic, and what the word's writer placed before it is visible after it.
// Outside the memory it panics, as an index would: the zero Region has none, so every
// address is outside.
func (r *Region) Load32(addr uint32) uint32 {
	return load32(r.mem[addr : uint64(addr)+4])
}

// Store32 writes the little-endian word at addr and wakes who watches it. At a
// multiple of 4 the write is atomic and ordered after all writes before it. Outside the
// memory it panics, as Load32 does.
func (r *Region) Store32(addr, value uint32) {
	store32(r.mem[addr:uint64(addr)+4], value)
	if addr%4 != 0 {
		r.watch.n.Add(0) // plain stores must be seen before the look at n
	}
	r.watch.wake(addr)
}

func wordAt(b []byte) *uint32 {
	if p := unsafe.Pointer(&b[0]); uintptr(p)%4 == 0 {
		return (*uint32)(p)
	}
	return nil
}

// little returns a word in the machine's order of bytes in little-endian, or back.
func little(v uint32) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Pointer(&v))[:])
}

func load32(b []byte) uint32 {
	if w := wordAt(b); w != nil {
		return little(atomic.LoadUint32(w))
	}
	return binary.LittleEndian.Uint32(b)
}

func store32(b []byte, v uint32) {
	if w := wordAt(b); w != nil {
		atomic.StoreUint32(w, little(v))
		return
	}
	binary.LittleEndian.PutUint32(b, v)
}

// place copies a message's data. Four aligned bytes are stored as a word, for
// they may be a flag (quirk F15).
func place(dst, data []byte) {
	if len(data) == 4 {
		store32(dst, binary.LittleEndian.Uint32(data))
		return
	}
	copy(dst, data)
}

// noMemory refuses everything.
type noMemory struct{}

var errNoMemory = fmt.Errorf("%w: there is none that this peer may write into", ErrBounds)

func (noMemory) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	if m.Len == 0 && !m.Completes() {
		return nil, nil
	}
	return nil, errNoMemory
}

func (noMemory) Complete(frame.EndpointID, *frame.Message) {}
